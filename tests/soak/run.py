"""One soak from the start of the service to the last count."""

import asyncio
import logging
import shutil
import time
from contextlib import nullcontext
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

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
SWEEP_S = 8.0
"""Time in which every server has deleted what is to be deleted."""


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
            soak = _Soak(options, soaked)
            soak.add_faults(has_disks, clock, postgresql)
            try:
                asyncio.run(soak.run())
            finally:
                if options.log is not None:
                    shutil.copy(folders.log, options.log)
            return soak.result


def _database(postgresql: PostgreSQL | None) -> dict[str, object]:
    return {} if postgresql is None else {"database": postgresql.address()}


class _Soak:
    """The phases of a soak."""

    def __init__(self, options: Options, soaked: Soaked) -> None:
        self._options, self._soaked = options, soaked
        self._random = random = Random(options.seed)
        served = TINY if options.artifacts is None else SHIPPED
        self._storm = Storm(soaked, served, random, options.n_different)
        self._faults: list[Fault] = []
        self._closing: list[asyncio.Task[None]] = []
        self.result = Result(options, self._storm.ledger)

    def add_faults(self, has_disks: bool, clock: Clock | None, postgresql: PostgreSQL | None) -> None:
        """Add the faults that can be made here, and note why others cannot."""
        random, seconds, folders = self._random, self._options.fault_s, self._soaked.folders
        self._faults += [make.killed(role, random) for role in ("worker", "loader", "server")]
        self._faults += [make.stopped(seconds, random), make.without_memory(seconds / 2, random)]
        self._faults.append(make.locked(seconds) if postgresql is None else make.restarted(postgresql, seconds))
        self._faults.append(make.without_descriptors(seconds, random))
        skipped = self.result.skipped
        if has_disks:
            if postgresql is None:
                self._faults.append(make.full_disk("data", folders.data, seconds, Needs.DATABASE))
            self._faults.append(make.full_disk("log", folders.log.parent, seconds, make.NOTHING))
        else:
            skipped["a full disk"] = "this process may not mount a small disk"
        if self._options.artifacts is None:
            self._faults.append(make.replaced(self._storm.oracle.versions))
        else:
            skipped["a model replaced and reloaded"] = "the shipped models stay as they are"
        if clock is not None:
            self._faults.append(make.clock_forward(clock))
        else:
            skipped["the clock set forward"] = "no C compiler"

    async def run(self) -> None:
        soaked, storm, options, result = self._soaked, self._storm, self._options, self.result
        beating = asyncio.create_task(self._beat())
        logger.info("asking in calm")
        await storm.calm()
        logger.info("warming up")
        warming, warm_until = Ledger(), time.monotonic() + options.warm_up_s
        await storm.rage(lambda: time.monotonic() > warm_until, ledger=warming)
        result.failures += [f"before any fault: {wrong}" for wrong in warming.wrong]
        result.failures += await rested(soaked, Census(), options.documents_kept_s + SWEEP_S, (*WORK, "rows"))
        logger.info("counting what there is")
        calm, before = await census(soaked), await soaked.metrics()
        self._began = time.monotonic()
        tasks = [asyncio.create_task(self._strike()), asyncio.create_task(self._measure_memory())]
        await storm.rage(self._is_over)
        logger.info("coming to rest")
        result.seconds = time.monotonic() - self._began
        await tasks[0]  # the last fault comes to its end
        await asyncio.gather(*self._closing)
        tasks[1].cancel()
        beating.cancel()
        if standstills := [window for window in storm.oracle.windows if window.fault is make.STANDSTILL]:
            n_excused = sum(window.n_excused for window in standstills)
            result.strikes[make.STANDSTILL.name] = Strikes(len(standstills), n_excused=n_excused)
        await soaked.wait_until_complete()
        result.failures += await rested(soaked, Census(), options.documents_kept_s + SWEEP_S, WORK)
        n_dead_servers = result.strikes.get("a server killed", Strikes()).n
        result.failures += differences(before, await soaked.metrics(), storm.ledger, n_dead_servers)
        result.failures += await delete_forgotten(soaked, storm.ledger)
        result.failures += await rested(soaked, calm, options.documents_kept_s + SWEEP_S)

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
