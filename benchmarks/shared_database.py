"""Servers that share a database of PostgreSQL: `python -m benchmarks shared ADDRESS`.

The database must be one that nobody else uses: its tables of attend are deleted.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import sqlalchemy as sa

from benchmarks.servers import Server, Variant
from service.access.tables import USAGE
from service.glossaries.tables import DICTIONARIES, GLOSSARIES
from service.jobs.store import JobStore
from service.jobs.tables import FILES, JOBS
from service.storage.database import Database
from service.storage.tables import METADATA, SCHEMA

N_CLAIMERS, N_CLAIMS = 4, 1200
N_DOCUMENTS = 40
PATIENCE_S = 300.0
MODEL = "translate-en-de"


def empty(address: str) -> None:
    """Delete all tables of attend."""
    engine = sa.create_engine(address.replace("postgresql://", "postgresql+psycopg://"))
    METADATA.drop_all(engine, tables=[SCHEMA, JOBS, FILES, GLOSSARIES, DICTIONARIES, USAGE])
    engine.dispose()


def claims_per_second(place: Path | str) -> float:
    """Let processes claim jobs. Return how many in a second, and check that each was claimed once."""
    with closing(Database(place)) as database:
        store = JobStore(database, 3600, N_CLAIMS)
        for number in range(N_CLAIMS):
            store.add(b"a", f"{number}.txt", "txt", ("en", "de"), "{}", 1, 3600)
    with multiprocessing.get_context("spawn").Pool(N_CLAIMERS) as pool:
        pool.map(_opened, [place] * N_CLAIMERS, chunksize=1)
        begun_at = time.monotonic()
        claimed = [name for names in pool.map(_claim_all, [place] * N_CLAIMERS, chunksize=1) for name in names]
        seconds = time.monotonic() - begun_at
    assert len(claimed) == len(set(claimed)) == N_CLAIMS, "each is claimed once"
    return N_CLAIMS / seconds


def starts(address: str, n_services: int, n_times: int) -> Iterator[float]:
    """Start services together on an empty database, again and again. Yield the seconds until all are ready."""
    for _ in range(n_times):
        empty(address)
        begun_at = time.monotonic()
        with ExitStack() as stack:
            for server in [_server(address) for _ in range(n_services)]:
                stack.enter_context(server)
                httpx.get(f"http://{server.address}/glossaries").raise_for_status()
            yield time.monotonic() - begun_at


def ends_of_documents(address: str, restart: str | None) -> Counter[str]:
    """Send documents to two services, kill one of them, and restart the database by a command.

    Returns:
        How many documents ended how. A document that one service had when it was killed is translated by the other.
    """
    empty(address)
    with _server(address) as one, _server(address) as other, httpx.Client(timeout=60) as client:
        sent = [_send(client, server, number) for number in range(N_DOCUMENTS // 2) for server in (one, other)]
        _wait_for(address, N_DOCUMENTS // 8)
        os.kill(one.process_id, signal.SIGKILL)
        if restart is not None:
            _wait_for(address, N_DOCUMENTS // 4)
            subprocess.run(restart, shell=True, check=True)
        _wait_for(address, N_DOCUMENTS)
        return Counter(_end(client, other, *document) for document in sent)


def _opened(place: Path | str) -> None:
    """Import and connect before time is taken."""
    with closing(Database(place)) as database:
        database.open()


def _claim_all(place: Path | str) -> list[str]:
    with closing(Database(place)) as database:
        store, names = JobStore(database, 3600, N_CLAIMS), []
        while (job := store.claim(f"{os.getpid()}")) is not None:
            names.append(job.file_name)
        return names


def _server(address: str) -> Server:
    settings = {"ATTEND_DATABASE": address, "ATTEND_MODELS": MODEL, "ATTEND_MAX_DOCUMENTS": "100", "ATTEND_CACHE": "0"}
    return Server(
        Variant(
            server="attend",
            label="shared",
            command=lambda port: ["env", f"ATTEND_PORT={port}", sys.executable, "-m", "service"],
            environment=os.environ | settings,
            health="/health/ready",
            body=lambda text: {"text": text},
            texts=lambda answer: [translation["text"] for translation in answer["translations"]],
        )
    )


def _text(number: int) -> str:
    return "\n\n".join(f"This is sentence {i} of the document with the number {number}." for i in range(60))


def _send(client: httpx.Client, server: Server, number: int) -> tuple[str, str, int]:
    file = f"{number}.txt", _text(number).encode()
    form = {"source": "en", "target": "de"}
    answer = client.post(f"http://{server.address}/translate/document", files={"file": file}, data=form)
    card = answer.raise_for_status().json()
    return card["id"], card["key"], number


def _end(client: httpx.Client, server: Server, job: str, key: str, number: int) -> str:
    address, query = f"http://{server.address}/translate/document/{job}", {"key": key}
    card = client.get(address, params=query).raise_for_status().json()
    if card["status"] != "done":
        return str(card.get("error", card["status"]))
    text = client.get(f"{address}/result", params=query).raise_for_status().text
    assert text.count(str(number)) >= 60, "it is the translation of this document"
    return "done"


def _wait_for(address: str, n_documents: int) -> None:
    """Wait until so many documents are finished."""
    ends_at = time.monotonic() + PATIENCE_S
    while _n_finished(address) < n_documents:
        assert time.monotonic() < ends_at, f"{n_documents} documents are not finished within {PATIENCE_S:.0f} s"
        time.sleep(0.2)


def _n_finished(address: str) -> int:
    with closing(Database(address)) as database, database.reading() as connection:
        finished = sa.select(sa.func.count()).where(JOBS.c.finished_at.is_not(None))
        return connection.scalar(finished) or 0
