"""Worker processes for tests, some of which are made to die."""

import asyncio
import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import Sequence as SequenceOf
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import ByteSize

from service.base.artifact import Artifact
from service.base.contract import Answer, ForwardPass
from service.base.log import Log
from service.base.metrics import Metrics
from service.base.settings import Settings
from service.engine.scheduler import Sequence
from service.engine.search import Search
from service.pool.remote_loader import RemoteLoader
from service.pool.remote_worker import RemoteWorker
from service.worker import loader_process, on_demand
from service.worker.artifact_source import ArtifactSource
from service.worker.on_demand import Engines
from tests.service.fakes import PATIENCE_S
from tests.service.tiny_artifacts import EOS
from tests.waiting import until, wait_until

SLOTS, MAX_WAITING = 8, 3

FATAL = 13
"""A process that reads this token dies."""
DiesOf = Literal[
    "its loop",
    "itself",
    "its warm-up",
    "its loading",
    "an answer that nobody can read",
    "an answer that cannot be sent",
]


class Unreadable:
    def __reduce__(self) -> tuple[type[int], tuple[str]]:
        return int, ("not a number",)


@dataclass(frozen=True)
class FragileSource(ArtifactSource):
    """A source of models in which something dies, and whose loader has shorter timeouts."""

    dies_of: DiesOf | None = None
    patches: dict[str, float] = field(default_factory=dict)
    """Constants of loader_process and on_demand to replace."""
    journal: Path = Path(os.devnull)
    """A file with a line "+MODEL" for each model that was loaded, "-MODEL" for each that was freed; and "trim" when
    memory is returned, unless models are loaded on demand."""
    gates: dict[str, Path] = field(default_factory=dict)
    """A model is not loaded before its file exists."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name, value in self.patches.items():
            setattr(loader_process if hasattr(loader_process, name) else on_demand, name, value)

    def load(self, model: str, alone: bool) -> Engines:
        if self.dies_of == "its loading" and model == "tiny":
            os._exit(1)
        wait_until(lambda: model not in self.gates or self.gates[model].exists())
        note(self.journal, f"+{model}")
        loaded = super().load(model, alone)
        weakref.finalize(loaded[f"{model}/greedy"], note, self.journal, f"-{model}")
        computation = cast(Any, loaded[f"{model}/greedy"]).computation
        encode = computation.encode
        outputs = {"an answer that nobody can read": Unreadable(), "an answer that cannot be sent": threading.Lock()}

        def read(sequences: list[Sequence[Search]]) -> None:
            if not any(FATAL in sequence.source_ids for sequence in sequences):
                encode(sequences)
            elif (self.dies_of or "").startswith("an answer"):
                for sequence in sequences:
                    sequence.output, sequence.finished = cast(Search, outputs[cast(str, self.dies_of)]), True
            else:
                die()

        def die() -> None:
            if self.dies_of == "its loop":
                raise SystemExit  # no Exception, and so the end of the loop
            os._exit(1)

        computation.encode = read
        if self.dies_of == "its warm-up" and not alone:
            parent, warm_up = os.getpid(), computation.warm_up
            computation.warm_up = lambda: warm_up() if os.getpid() == parent else die()
        if model == "slow":
            cast(Any, loaded["slow/greedy"]).probe = lambda: ForwardPass("probe", seconds=60.0)
        return loaded

    def trim(self) -> None:
        super().trim()
        if self.model_memory is None:
            note(self.journal, "trim")


def note(journal: Path, line: str) -> None:
    with journal.open("a") as file:
        file.write(f"{line}\n")


@dataclass
class Service:
    """A loader, and a server's connections to its workers."""

    loader: RemoteLoader
    metrics: Metrics = field(default_factory=Metrics)
    workers: list[RemoteWorker] = field(init=False)

    def __post_init__(self) -> None:
        self.workers = self.connections()

    def connections(self) -> list[RemoteWorker]:
        """Return the workers as another server sees them."""
        return [RemoteWorker(path, self.metrics.add) for path in self.loader.paths]

    @property
    def worker(self) -> RemoteWorker:
        return self.workers[0]

    async def start(self) -> "Service":
        for worker in self.workers:
            worker.start()
        await until(lambda: all(unready_reason(worker) is None for worker in self.workers))
        return self

    async def stop(self) -> None:
        for worker in self.workers:
            await asyncio.to_thread(worker.stop, 0)
        await asyncio.to_thread(self.loader.end)

    def process_id(self, number: int = 0) -> int:
        """Return the process id of a worker: the loader forks them in order."""
        return children(self.loader._process.pid)[number]


def make_service(
    artifact: Artifact,
    n_workers: int = 1,
    dies_of: DiesOf | None = None,
    models: SequenceOf[str] = ("tiny",),
    model_memory: int | None = None,
    journal: Path = Path(os.devnull),
    gates: dict[str, Path] | None = None,
    **patches: float,
) -> Service:
    settings = Settings(
        provider="cpu",
        workers=n_workers,
        model_memory=ByteSize(model_memory) if model_memory else None,
        rows=SLOTS,
        max_waiting=MAX_WAITING,
        probe_interval_s=3600,
    )
    artifacts = {name: artifact_named(artifact, name) for name in models}
    arguments = (artifacts, settings, None, dies_of, {"SLOW_S": 1.0} | patches, journal, gates or {})
    loader = RemoteLoader("tests.service.worker_services:FragileSource", arguments, 3600, Log("warning"))
    loader.wait_until_loaded()
    return Service(loader)


def artifact_named(artifact: Artifact, name: str) -> Artifact:
    return Artifact(artifact.directory, artifact.manifest.model_copy(update={"name": name}))


def server_that(artifact: Artifact, then: str) -> list[str]:
    """Return the command of a process that loads models and then runs a statement."""
    script = (
        "import sys; from pathlib import Path; from service.base.artifact import read_artifact; "
        "from tests.service.worker_services import make_service; "
        f"service = make_service(read_artifact(Path(sys.argv[1]))); {then}"
    )
    return [sys.executable, "-c", script, str(artifact.directory)]


def children(process_id: int, of_command: str = "") -> list[int]:
    """Return the children whose command contains these words."""
    said = _told_of(process_id, f"task/{process_id}/children").split()
    return [int(child) for child in said if of_command in _told_of(child, "cmdline")]


def _told_of(process_id: int | str, file: str) -> str:
    with suppress(FileNotFoundError, ProcessLookupError):  # it has ended since
        return Path(f"/proc/{process_id}/{file}").read_text()
    return ""


def unready_reason(worker: RemoteWorker, engine: str = "tiny/greedy") -> str | None:
    state = worker.state(engine)
    return "starting" if state is None else state.unready_reason


async def answered(future: "asyncio.Future[Answer[Search]]") -> Answer[Search]:
    return await asyncio.wait_for(future, PATIENCE_S)


def sequence(*words: int, beam_size: int = 1, max_target_tokens: int = 9) -> Sequence[Search]:
    return Sequence([*words, EOS], Search(max_target_tokens, beam_size), n_rows=beam_size)


def soon() -> float:
    return time.monotonic() + PATIENCE_S


def pause(process_id: int) -> None:
    os.kill(process_id, signal.SIGSTOP)
