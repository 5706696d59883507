"""What a service has, by kinds: after a storm it may have no more than it had before."""

import asyncio
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import sqlalchemy as sa

from tests.soak.http import Lost
from tests.soak.service import Soaked, n_descriptors, status_value

TABLES = ("attend_jobs", "attend_files", "attend_glossaries", "attend_dictionaries", "attend_memories")
WORK = ("attend_waiting", "attend_running")
GAUGES = (*WORK, "attend_connections")
LOOK_S = 0.25
POOLED = {"threads: server": 10, "descriptors: server": 14}
"""What a server may still begin and then keeps: threads of its pools, and connections to the database in four of them,
each with three files."""


@dataclass
class Census:
    """Counts by what is counted; of a role's processes the largest."""

    counts: dict[str, float] = field(default_factory=dict)

    def beyond(self, calm: "Census") -> dict[str, tuple[float, float]]:
        """Return what there is more of than in calm: now, and then."""
        return {
            name: (n, before)
            for name, n in self.counts.items()
            if n > (before := calm.counts.get(name, 0.0)) + POOLED.get(name, 0)
        }


async def census(soaked: Soaked) -> Census:
    """Count everything that a request could leave behind. Raises Lost: the service does not answer."""
    counts: dict[str, float] = {}
    for role, process_ids in soaked.processes().items():
        if role == "reader":  # it ends a minute after the last document
            continue
        counts[f"processes: {role}"] = len(process_ids)
        with suppress(FileNotFoundError, ProcessLookupError):
            counts[f"threads: {role}"] = max([status_value(one, "Threads") for one in process_ids], default=0)
            counts[f"descriptors: {role}"] = max([n_descriptors(one) for one in process_ids], default=0)
    for folder in (soaked.folders.run, soaked.folders.temporary, soaked.folders.data):
        counts[f"files: {folder.name}"] = sum(path.is_file() or path.is_socket() for path in folder.rglob("*"))
    counts |= {f"rows: {table}": n for table, n in rows(soaked.database).items()}
    metrics = await soaked.metrics()
    for gauge in GAUGES:
        counts[gauge] = sum(value for name, value in metrics.items() if re.match(rf"{gauge}({{|$)", name))
    return Census(counts)


def rows(database: str) -> dict[str, int]:
    """Return the number of rows of each table; nothing if there are none yet."""
    engine = sa.create_engine(database, poolclass=sa.NullPool)
    with engine.connect() as connection:
        known = sa.inspect(connection).get_table_names()
        counted = ((table, sa.text(f"SELECT count(*) FROM {table}")) for table in TABLES if table in known)
        return {table: connection.scalar(query) or 0 for table, query in counted}


async def rested(soaked: Soaked, calm: Census, patience_s: float, kinds: Sequence[str] = ("",)) -> list[str]:
    """Wait until nothing is left over. Return what still is after `patience_s`.

    Args:
        kinds: what to look for; by default everything.
    """
    ends_at = time.monotonic() + patience_s
    while True:
        try:
            left = (await census(soaked)).beyond(calm)
            left = {name: of for name, of in left.items() if name.startswith(tuple(kinds))}
        except Lost:
            left = {"lost answers to /metrics": (1, 0)}
        if not left or time.monotonic() > ends_at:
            return [f"left over: {name}: {now:g}, in calm {before:g}" for name, (now, before) in left.items()]
        await asyncio.sleep(LOOK_S)


def memory_bytes(soaked: Soaked) -> int:
    """Return the memory of all processes together; what several share counts once."""
    total = 0
    for process_ids in soaked.processes().values():
        for process_id in process_ids:
            with suppress(OSError):
                text = Path(f"/proc/{process_id}/smaps_rollup").read_text()
                total += 1024 * int(text.partition("\nPss:")[2].split()[0])
    return total
