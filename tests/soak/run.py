"""One soak from the start of the service to the last count."""

import asyncio
import logging
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tests.postgres import PostgreSQL, running_postgresql
from tests.soak import faults as make
from tests.soak import small_disks
from tests.soak.clock import Clock, own_clock
from tests.soak.counts import differences
from tests.soak.faults import Fault
from tests.soak.glossaries import delete_forgotten
from tests.soak.http import Lost
from tests.soak.ledger import Ledger
from tests.soak.leftovers import WORK, Census, census, memory_bytes, rested
from tests.soak.models import SHIPPED, TINY, save_tiny_models
from tests.soak.oracle import Window
from tests.soak.requests import Needs
from tests.soak.result import Options, Result, Strikes
from tests.soak.service import Folders, Soaked, soaked_service
from tests.soak.storm import Storm

logger = logging.getLogger(__name__)

SAMPLE_S = 1.0
GRACE_S = 0.5
"""How long after a fault is over a request may still feel it: its error may be on its way."""
SWEEP_S = 30.0
"""Time in which documents of a server that died are translated by another one, and old ones are deleted."""


def run(options: Options) -> Result:
    """Run a soak."""
    with TemporaryDirectory(prefix="soak-") as name:
        folders = Folders(Path(name))
        folders.make()
        settings: dict[str, object] = {"documents_kept_s": options.documents_kept_s}
        if options.artifacts is None:
            save_tiny_models(folders.artifacts)
        else:
            settings["artifacts"] = options.artifacts.absolute()
        with (
            running_postgresql() if options.postgresql else nullcontext() as postgresql,
            small_disks.mounted(folders.root) as has_disks,
            own_clock(folders.root) as (clock, variables),
            soaked_service(folders, settings | _database(postgresql), variables) as soaked,
        ):
            soak = _Soak(options, soaked, _Means(has_disks, clock, postgresql))
            try:
                asyncio.run(soak.run())
            finally:
                if options.log is not None:
                    shutil.copy(folders.log, options.log)
            return soak.result


def _database(postgresql: PostgreSQL | None) -> dict[str, object]:
    return {} if postgresql is None else {"database": postgresql.address()}


class _Means(NamedTuple):
    """What this machine has for faults."""

    has_disks: bool
    clock: Clock | None
    postgresql: PostgreSQL | None


def _faults(
    options: Options, means: _Means, folders: Folders, storm: Storm, random: Random
) -> list[Fault | tuple[str, str]]:
    """Return the faults that can be made here; in place of others their names, and why they cannot."""
    seconds = options.fault_s
    found: list[Fault | tuple[str, str]] = [make.killed(role, random) for role in ("worker", "loader", "server")]
    found += [make.stopped(2 * seconds, random), make.without_memory(seconds / 2, random)]
    found += [make.without_descriptors(seconds, random)]
    found += [make.locked(seconds) if means.postgresql is None else make.restarted(means.postgresql, seconds)]
    if not means.has_disks:
        found += [("a full disk", "this process may not mount a small disk")]
    else:
        found += [make.full_disk("log", folders.log.parent, seconds, make.NOTHING)]
        if means.postgresql is None:
            found += [make.full_disk("data", folders.data, seconds, Needs.DATABASE)]
    if options.artifacts is None:
        found += [make.replaced(storm.oracle.versions)]
    else:
        found += [("a model replaced and reloaded", "the shipped models stay as they are")]
    found += [("the clock set forward", "no C compiler") if means.clock is None else make.clock_forward(means.clock)]
    return found


class _Soak:
    """The phases of a soak."""

    def __init__(self, options: Options, soaked: Soaked, means: _Means) -> None:
        self._options, self._soaked = options, soaked
        self._random = random = Random(options.seed)
        served = TINY if options.artifacts is None else SHIPPED
        self._storm = Storm(soaked, served, random, options.n_different)
        self._closing: list[asyncio.Task[None]] = []
        self.result = Result(options, self._storm.ledger)
        found = _faults(options, means, soaked.folders, self._storm, random)
        self._faults = [fault for fault in found if isinstance(fault, Fault)]
        self.result.skipped = dict(one for one in found if isinstance(one, tuple))

    async def run(self) -> None:
        soaked, storm, result = self._soaked, self._storm, self.result
        await storm.called.start()
        logger.info("asking in calm")
        beating = asyncio.create_task(self._beat())
        await storm.calm()
        logger.info("warming up")
        await self._warm_up()
        logger.info("counting what there is")
        calm, before = await census(soaked), await soaked.metrics()
        self._began = time.monotonic()
        striking, measuring = asyncio.create_task(self._strike()), asyncio.create_task(self._measure_memory())
        await storm.rage(self._is_over)
        logger.info("coming to rest")
        result.seconds = time.monotonic() - self._began
        await striking
        await asyncio.gather(*self._closing)
        measuring.cancel()
        beating.cancel()
        await self._settle(calm, before)

    async def _warm_up(self) -> None:
        """Let clients ask for a while without faults: caches and pools fill."""
        ledger, ends_at = Ledger(), time.monotonic() + self._options.warm_up_s
        await self._storm.rage(lambda: time.monotonic() > ends_at, ledger=ledger)
        self.result.failures += [f"before any fault: {wrong}" for wrong in ledger.wrong]
        await self._rest(Census(), (*WORK, "rows"))

    async def _settle(self, calm: Census, before: Mapping[str, float]) -> None:
        """Compare what there is with calm, and what was counted with what was sent."""
        soaked, storm, result = self._soaked, self._storm, self.result
        standstills = [window for window in storm.oracle.windows if window.fault is make.STANDSTILL]
        if standstills:
            n_excused = sum(window.n_excused for window in standstills)
            result.strikes[make.STANDSTILL.name] = Strikes(len(standstills), n_excused=n_excused)
        await soaked.wait_until_complete()
        await self._rest(Census(), WORK)
        n_dead_servers = result.strikes.get("a server killed", Strikes()).n
        result.failures += differences(before, await soaked.metrics(), storm.ledger, n_dead_servers)
        result.failures += await delete_forgotten(soaked, storm.ledger)
        await self._rest(calm)
        storm.called.stop()
        result.failures += storm.called.wrong

    async def _rest(self, calm: Census, kinds: Sequence[str] = ("",)) -> None:
        """Wait until nothing of these kinds is left over; what still is after a while is a failure."""
        patience_s = self._options.documents_kept_s + SWEEP_S
        self.result.failures += await rested(self._soaked, calm, patience_s, kinds)

    def _is_over(self) -> bool:
        asked, options = self._storm.ledger.n_requests, self._options
        is_late = time.monotonic() - self._began > 60 * options.minutes
        return is_late or (options.n_requests is not None and asked >= options.n_requests)

    async def _strike(self) -> None:
        """Let each fault strike once, in random order and at random times, again and again."""
        while True:
            for fault in self._random.sample(self._faults, len(self._faults)):
                ends_at = time.monotonic() + self._random.expovariate(1 / self._options.pause_s)
                while time.monotonic() < ends_at and not self._is_over():
                    await asyncio.sleep(0.05)
                if self._is_over():
                    return
                await self._strike_once(fault)

    async def _strike_once(self, fault: Fault) -> None:
        window = Window(fault, time.monotonic())
        self._storm.oracle.windows.append(window)
        strikes = self.result.strikes.setdefault(fault.name, Strikes())
        strikes.n += 1
        logger.info("%d requests, now: %s", self.result.ledger.n_requests, fault.name)
        try:
            await fault.strike(self._soaked)
            over_at = time.monotonic()
            strikes.seconds_until_ready.append(await self._soaked.seconds_until_ready(over_at))
        except (AssertionError, OSError, Lost) as error:
            self.result.failures.append(f"{fault.name}: {error!r}")
        self._closing.append(asyncio.create_task(self._close(window, strikes)))

    async def _close(self, window: Window, strikes: Strikes) -> None:
        """Close the window of a fault when the processes that died are replaced. Others may strike meanwhile."""
        try:
            await self._soaked.wait_until_complete()
        except AssertionError as error:
            self.result.failures.append(f"{window.fault.name}: {error}")
        await asyncio.sleep(GRACE_S)
        window.ended = time.monotonic()
        strikes.n_excused += window.n_excused

    async def _measure_memory(self) -> None:
        while True:
            self.result.memory.append((time.monotonic() - self._began, memory_bytes(self._soaked)))
            await asyncio.sleep(SAMPLE_S)

    async def _beat(self) -> None:
        while True:
            self._storm.oracle.note_beat()
            await asyncio.sleep(SAMPLE_S)
