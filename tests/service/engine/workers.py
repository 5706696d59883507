"""Workers in processes of their own, whole and fragile ones."""

import asyncio
import os
import sys
import threading
import time
from functools import partial
from typing import Literal, cast

from service.artifact import Artifact
from service.contract import Answer
from service.engine.beam_search import Search
from service.engine.engine import Engine
from service.engine.scheduler import Sequence
from service.engine.worker import Worker
from service.loading import translation_engine
from service.metrics import Metrics, TaskMetrics
from service.runner.provider import Provider
from tests.service.fakes import PATIENCE_S
from tests.service.tiny_artifacts import EOS

SLOTS, MAX_WAITING = 8, 3
RESTART_PATIENCE_S = 12 * PATIENCE_S
"""For a process that imports everything anew."""

FATAL = 13
"""Who reads this token dies."""


def make_worker(artifact: Artifact, metrics: Metrics | None = None) -> Worker[Search]:
    make_engine = partial(translation_engine, artifact, Provider("cpu", 1), SLOTS, MAX_WAITING, 100, 3600.0, "tiny")
    worker = Worker("tiny", make_engine, SLOTS, TaskMetrics(metrics or Metrics(), "translation"))
    worker.wait_until_loaded()
    return worker


class Unreadable:
    def __reduce__(self) -> tuple[type[int], tuple[str]]:
        return int, ("not a number",)


def fragile_engine(
    artifact: Artifact,
    dies_of: Literal[
        "its engine", "itself", "its warm-up", "an answer that nobody can read", "an answer that cannot be sent"
    ],
    events: TaskMetrics,
) -> Engine[Search]:
    """The engine of a worker process in which something dies."""
    engine = translation_engine(artifact, Provider("cpu", 1), SLOTS, MAX_WAITING, 100, 3600.0, "fragile", events)
    computation = engine._computation
    prefill = computation.prefill
    outputs = {"an answer that nobody can read": Unreadable(), "an answer that cannot be sent": threading.Lock()}

    def read(first_place: int, sequences: list[Sequence[Search]]) -> None:
        if not any(FATAL in sequence.source_ids for sequence in sequences):
            prefill(first_place, sequences)
        elif dies_of.startswith("an answer"):
            for sequence in sequences:
                sequence.output, sequence.finished = cast(Search, outputs[dies_of]), True
        else:
            die()

    def die() -> None:
        if dies_of == "its engine":
            raise SystemExit  # no Exception, and so the end of the engine's thread
        os._exit(1)

    computation.prefill = read  # type: ignore[method-assign]
    if dies_of == "its warm-up":
        computation.warm_up = die  # type: ignore[method-assign]
    return engine


def make_fragile_worker(artifact: Artifact, dies_of: str) -> Worker[Search]:
    make_engine = partial(fragile_engine, artifact, dies_of)
    worker = Worker("fragile", make_engine, SLOTS, TaskMetrics(Metrics(), "translation"))
    worker.wait_until_loaded()
    return worker


def server_that(artifact: Artifact, then: str) -> list[str]:
    """The command of a process that loads a worker and then does something."""
    script = (
        "import sys; from pathlib import Path; from service.artifact import read_artifact; "
        "from tests.service.engine.workers import make_worker; "
        f"worker = make_worker(read_artifact(Path(sys.argv[1]))); {then}"
    )
    return [sys.executable, "-c", script, str(artifact.directory)]


async def start(worker: Worker[Search]) -> None:
    worker.start()
    assert await asyncio.to_thread(worker.warm.wait, PATIENCE_S)


async def answered(future: "asyncio.Future[Answer[Search]]") -> Answer[Search]:
    return await asyncio.wait_for(future, PATIENCE_S)


def process_id(worker: Worker[Search]) -> int:
    process_id = worker._process.child.pid
    assert process_id is not None
    return process_id


def sequence(*words: int, beam_size: int = 1, max_target_tokens: int = 9) -> Sequence[Search]:
    return Sequence([*words, EOS], Search(max_target_tokens, beam_size), slots=beam_size)


def soon() -> float:
    return time.monotonic() + PATIENCE_S
