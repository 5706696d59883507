"""Models that are loaded when they are asked for, within a budget for three of ten."""

import asyncio
import os
import random
import shutil
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from service.base.artifact import Artifact
from service.base.errors import Broken, DeadlinePassed, StartRefused, WorkerEnded
from service.base.metrics import Metrics, TaskMetrics
from service.engine.scheduler import Sequence
from service.engine.search import Search
from service.pool.pool import Pool
from service.pool.remote_worker import RemoteWorker
from service.worker.budget import MEMORY_FACTOR
from tests.service.fakes import PATIENCE_S
from tests.service.tiny_artifacts import EOS, TinyTranslator
from tests.service.worker_services import Service, answered, make_service, sequence, soon, until

pytestmark = [pytest.mark.anyio, pytest.mark.process]

TEN = [f"tiny-{number}" for number in range(10)]
THREE = 3.5 * MEMORY_FACTOR


def size(artifact: Artifact) -> int:
    """Return the size of the files that are read to load the model."""
    files = artifact.manifest.files
    return sum(file.bytes for name, file in files.items() if name != "tokenizer.json")


async def start(artifact: Artifact, n_workers: int = 1, of_its_size: float = THREE, **options: object) -> Service:
    options = {"models": TEN, "MEASURES_MEMORY": False} | options
    memory = int(of_its_size * size(artifact))
    service: Service = make_service(artifact, n_workers, model_memory=memory, **options)  # type: ignore[arg-type]
    for worker in service.workers:
        worker.start()
    await until(lambda: all(reason(service, model) is None for model in options["models"]))  # type: ignore[attr-defined]
    return service


def reason(service: Service, model: str) -> str | None:
    states = [state for worker in service.workers if (state := worker.state(f"{model}/greedy")) is not None]
    return states[0].unready_reason if states else "starting"


def pool(workers: list[RemoteWorker], model: str) -> Pool[Search]:
    return Pool(f"{model}/greedy", workers, TaskMetrics(Metrics(), "translation"))


async def ask(service: Service, model: str, *words: int, timeout_s: float = PATIENCE_S) -> list[int]:
    request: list[Sequence[Search]] = [sequence(*words)]
    await pool(service.workers, model).run(request, time.monotonic() + timeout_s)
    return request[0].output.best()[0].token_ids


def is_loaded(service: Service, model: str) -> bool:
    return any(state.max_rows > 0 for worker in service.workers if (state := worker.state(f"{model}/greedy")))


def most_at_once(journal: Path) -> int:
    loaded: Counter[str] = Counter()
    most = 0
    for line in journal.read_text().split():
        loaded[line[1:]] += 1 if line[0] == "+" else -1
        assert set(loaded.values()) <= {0, 1}, "a model is loaded once"
        most = max(most, loaded.total())
    return most


@pytest.mark.parametrize("n_workers", [1, 3])
async def test_in_any_order_all_are_answered_and_never_more_are_loaded_than_the_budget_holds(
    translator_artifact: Artifact, tiny_translator: TinyTranslator, tmp_path: Path, n_workers: int
) -> None:
    journal = tmp_path / "journal"
    service = await start(translator_artifact, n_workers, journal=journal)
    assert not journal.exists(), "nothing is loaded at start"
    asked = [(model, [5, word]) for model in TEN for word in (6, 7, 8)]
    random.Random(n_workers).shuffle(asked)
    for crowd in (asked[:4], asked[4:]):
        answers = await asyncio.gather(*(ask(service, model, *words) for model, words in crowd))
        assert answers == [tiny_translator.translate([*words, EOS], 9)[0] for _, words in crowd]
    assert most_at_once(journal) == 3
    await service.stop()


async def test_the_model_unused_for_the_longest_time_is_unloaded(translator_artifact: Artifact, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    service = await start(translator_artifact, journal=journal)
    for model in (*TEN[:3], TEN[0], TEN[3]):
        await ask(service, model, 5)
    assert journal.read_text().split() == ["+tiny-0", "+tiny-1", "+tiny-2", "-tiny-1", "+tiny-3"]
    await until(lambda: [model for model in TEN if is_loaded(service, model)] == ["tiny-0", "tiny-2", "tiny-3"])
    await service.stop()


async def test_while_one_is_loaded_others_go_on_and_deadlines_and_cancellations_are_kept(
    translator_artifact: Artifact, tiny_translator: TinyTranslator, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    service = await start(translator_artifact, gates={"tiny-1": gate})
    await ask(service, "tiny-0", 5)
    staying, leaving = (service.worker.submit("tiny-1/greedy", [sequence(6)], soon()) for _ in range(2))
    assert await ask(service, "tiny-0", 7) == tiny_translator.translate([7, EOS], 9)[0]
    with pytest.raises(DeadlinePassed, match=r"\d+\.\d s in tiny-1/greedy"):
        await answered(service.worker.submit("tiny-1/greedy", [sequence(5)], time.monotonic() + 0.02))
    assert leaving.cancel()
    assert not staying.done()
    gate.touch()
    assert (await answered(staying)).outputs[0].best()[0].token_ids == tiny_translator.translate([6, EOS], 9)[0]
    assert service.worker.load == 0
    await service.stop()


async def test_a_model_that_cannot_be_loaded_is_refused_for_a_while_and_then_tried_again(
    translator_artifact: Artifact, tiny_translator: TinyTranslator, tmp_path: Path
) -> None:
    artifact = Artifact(
        shutil.copytree(translator_artifact.directory, tmp_path / "broken"), translator_artifact.manifest
    )
    encoder = artifact.path("cpu/encoder.onnx")
    for retry_s, tries in ((3600.0, 1), (0.0, 2)):
        journal = tmp_path / f"{retry_s}"
        service = await start(artifact, models=["tiny"], journal=journal, RETRY_S=retry_s)
        encoder.write_bytes(b"no graph")
        for _ in range(2):
            with pytest.raises(Broken, match=r"tiny/greedy .*loaded \(ArtifactRefused\)"):
                await ask(service, "tiny", 5)
        assert journal.read_text().split() == ["+tiny"] * tries
        shutil.copy(translator_artifact.path("cpu/encoder.onnx"), encoder)
        if not retry_s:
            assert await ask(service, "tiny", 5) == tiny_translator.translate([5, EOS], 9)[0]
        else:
            await until(lambda: (reason(service, "tiny") or "").startswith("it cannot be loaded"))  # noqa: B023
        await service.stop()


async def test_a_model_of_which_workers_die_while_they_load_it_is_disabled_and_their_others_go_on(
    translator_artifact: Artifact, tiny_translator: TinyTranslator
) -> None:
    service = await start(translator_artifact, models=["tiny", "tiny-1"], dies_of="its loading")
    for _ in range(2):
        await ask(service, "tiny-1", 5)
        with pytest.raises(WorkerEnded):
            await ask(service, "tiny", 5)
        await until(lambda: reason(service, "tiny-1") is None)
    await until(lambda: (reason(service, "tiny") or "").startswith("it is disabled: two processes have died"))
    assert await ask(service, "tiny-1", 5) == tiny_translator.translate([5, EOS], 9)[0]
    await service.stop()


async def test_memory_of_a_worker_that_died_is_free(translator_artifact: Artifact, tmp_path: Path) -> None:
    service = await start(translator_artifact, n_workers=2, of_its_size=1.5 * MEMORY_FACTOR, models=TEN[:2])
    await ask(service, "tiny-0", 5)
    os.kill(service.process_id(0), signal.SIGKILL)
    await ask(service, "tiny-1", 5)
    await service.stop()


async def test_two_servers_get_their_own_answers(
    translator_artifact: Artifact, tiny_translator: TinyTranslator
) -> None:
    service = await start(translator_artifact, n_workers=2)
    other = service.connections()
    for worker in other:
        worker.start()
    await until(lambda: all(any(worker.state(f"{model}/greedy") for worker in other) for model in TEN))
    first, second = [[sequence(5, 6)] for _ in TEN], [[sequence(5, 7)] for _ in TEN]
    await asyncio.gather(
        *(pool(service.workers, model).run(request, soon()) for model, request in zip(TEN, first, strict=True)),
        *(pool(other, model).run(request, soon()) for model, request in zip(TEN, second, strict=True)),
    )
    for requests, word in ((first, 6), (second, 7)):
        expected = tiny_translator.translate([5, word, EOS], 9)[0]
        assert [request[0].output.best()[0].token_ids for request in requests] == [expected] * 10
    for worker in other:
        await asyncio.to_thread(worker.stop, 0)
    await service.stop()


def test_a_model_that_needs_more_than_the_budget_refuses_the_start(translator_artifact: Artifact) -> None:
    memory = int(size(translator_artifact) * MEMORY_FACTOR) - 1
    with pytest.raises(StartRefused, match=r"tiny needs about 0 MB; ATTEND_MODEL_MEMORY is 0 MB"):
        make_service(translator_artifact, model_memory=memory)
