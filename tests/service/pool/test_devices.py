"""Several GPUs: which ones are meant, and what becomes of requests when one is lost. Here a device is a process on the
CPU that sees its name, and is lost while a file of this name exists."""

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest
from pydantic import ValidationError

from service.base.errors import InferenceFailed, ProviderUnavailable, StartRefused, Unavailable
from service.base.metrics import Metrics, TaskMetrics
from service.base.settings import Settings
from service.engine.scheduler import Sequence
from service.engine.search import Search
from service.front.assembly import load_catalog
from service.front.catalog import Catalog
from service.pool import loader
from service.pool.devices import devices_of
from service.pool.pool import Pool
from service.runner.provider import Provider
from service.worker import loader_process
from service.worker.artifact_source import ArtifactSource
from service.worker.on_demand import Engines
from tests.service.fakes import NAME, Tally, sequences
from tests.service.pool.test_pool import Worker
from tests.service.tiny_artifacts import TinyTranslator
from tests.service.worker_services import sequence, soon
from tests.waiting import until

DEVICES = "GPU-a", "GPU-b"


def test_a_gpu_that_is_not_listed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,6")
    with pytest.raises(ProviderUnavailable, match=r"ATTEND_DEVICES .*2.*4,6"):
        devices_of(Settings(devices=("2",)))


LIST = """GPU 0: NVIDIA H200 (UUID: GPU-1)
GPU 1: NVIDIA H200 (UUID: GPU-2)
  MIG 1g.18gb     Device  0: (UUID: MIG-21)
  MIG 3g.71gb     Device  1: (UUID: MIG-22)
GPU 2: NVIDIA H200 (UUID: GPU-3)
"""


@pytest.mark.parametrize(
    ("devices", "visible", "meant"),
    [
        ("all", None, ["GPU-1", "MIG-21", "MIG-22", "GPU-3"]),
        ("all", "2,0", ["2", "0"]),
        ("0,1", "GPU-5,MIG-6", ["GPU-5", "MIG-6"]),
        ("1, 3", None, ["1", "3"]),
        ("GPU-1,MIG-GPU-2/1/0", "0,1", ["GPU-1", "MIG-GPU-2/1/0"]),
        ("", "0,1", [None]),
    ],
)
def test_devices_have_the_names_that_cuda_takes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, devices: str, visible: str | None, meant: list[str | None]
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    driver_that(monkeypatch, tmp_path, f"cat <<'END'\n{LIST}END")
    assert devices_of(Settings(devices=devices)) == meant  # type: ignore[arg-type]


@pytest.mark.parametrize(("says", "refusal"), [("exit 9", "cannot list .* 9"), ("true", "lists no GPU")])
def test_all_devices_of_a_machine_without_any_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, says: str, refusal: str
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    driver_that(monkeypatch, tmp_path, says)
    with pytest.raises(ProviderUnavailable, match=f"ATTEND_DEVICES is all, but nvidia-smi {refusal}"):
        devices_of(Settings(devices=("all",)))


@pytest.mark.parametrize("listed", ["", " , "])
def test_all_of_no_visible_device_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, listed: str) -> None:
    driver_that(monkeypatch, tmp_path, f"cat <<'END'\n{LIST}END")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", listed)
    with pytest.raises(ProviderUnavailable, match="CUDA_VISIBLE_DEVICES lists no GPU"):
        devices_of(Settings(devices=("all",)))


@pytest.mark.parametrize("devices", [("all",), ("0", "1")])
def test_a_device_that_is_listed_twice_counts_once(monkeypatch: pytest.MonkeyPatch, devices: tuple[str, ...]) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a, GPU-a")
    assert devices_of(Settings(devices=devices)) == ["GPU-a"]


def driver_that(monkeypatch: pytest.MonkeyPatch, folder: Path, says: str) -> None:
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{says}\n")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


@pytest.mark.parametrize(
    ("settings", "refusal"),
    [
        ({"devices": "0", "provider": "cpu"}, "ATTEND_PROVIDER is cpu"),
        ({"devices": "first"}, "must be all, or numbers"),
        ({"devices": "0,all"}, "must be all, or numbers"),
        ({"devices": "1,1"}, "once"),
    ],
)
def test_settings_that_contradict_devices_are_refused(settings: dict[str, Any], refusal: str) -> None:
    with pytest.raises(ValidationError, match=refusal):
        Settings(**settings)


class Source(ArtifactSource):
    """Models that are loaded in each worker, as on a GPU. `ATTEND_DATA` is the folder of lost devices."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        loader_process.MIN_PAUSE_S = loader_process.MAX_PAUSE_S = 0.05

    def resolved(self) -> ArtifactSource:
        return replace(self, provider=Provider("cpu", threads=1))

    @property
    def forks(self) -> bool:
        return False

    def is_lost(self, how: str) -> bool:
        assert self.settings.data is not None
        file = self.settings.data / os.environ["CUDA_VISIBLE_DEVICES"]
        return file.exists() and file.read_text() == how

    def load(self, model: str, alone: bool) -> Engines:
        if self.is_lost("dies"):
            raise StartRefused("no GPU")
        loaded = super().load(model, alone)
        for engine in loaded.values():
            computation = cast(Any, engine).computation
            computation.encode = self.on_device(computation.encode)
            computation.warm_up = self.on_device(computation.warm_up)
        return loaded

    def on_device(self, call: Any) -> Any:
        def run(*arguments: Any) -> Any:
            if self.is_lost("dies"):
                os._exit(1)
            if self.is_lost("fails"):
                raise RuntimeError("the device is lost")
            return call(*arguments)

        return run


@pytest.fixture
def settings(tmp_path: Path, tiny_translator: TinyTranslator, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setattr(loader, "SOURCE", f"{__name__}:Source")
    tiny_translator.save(tmp_path / "artifacts" / "tiny", name="tiny")
    (tmp_path / "lost").mkdir()
    return Settings(
        artifacts=tmp_path / "artifacts", devices=DEVICES, workers=1, data=tmp_path / "lost", probe_interval_s=0.2
    )


@pytest.fixture
async def catalog(settings: Settings) -> AsyncIterator[Catalog]:
    catalog = await asyncio.to_thread(load_catalog, settings, Metrics())
    catalog.start()
    await until(lambda: list(catalog.devices().values()) == [None, None])
    yield catalog
    await asyncio.to_thread(catalog.stop, 0.0)


async def translated(catalog: Catalog, n: int = 1) -> int:
    """Return how many of n requests were answered, one after the other."""
    pool, n_answered = catalog.translators[0].greedy, 0
    for _ in range(n):
        work: list[Sequence[Search]] = [sequence(5, 6)]
        try:
            n_answered += len((await pool.run(work, soon())).outputs)
        except (Unavailable, InferenceFailed):
            continue
    return n_answered


@pytest.mark.anyio
@pytest.mark.parametrize("how", ["dies", "fails"])
@pytest.mark.process
async def test_a_lost_gpu_takes_out_its_device_and_not_its_models(
    settings: Settings, catalog: Catalog, how: str
) -> None:
    assert settings.data is not None
    lost, other = (settings.data / device for device in DEVICES)
    lost.write_text(how)
    assert await translated(catalog, 30) >= 28, "it gets one request, or a probe shows that it is lost"
    await until(lambda: catalog.devices()["GPU-a"] is not None)
    assert (catalog.devices()["GPU-a"] or "").startswith("tiny: ")
    assert catalog.devices()["GPU-b"] is None
    assert catalog.unready_reason() is None
    assert [state.ready for state in catalog.states()] == [True] * len(catalog.states())
    assert await translated(catalog, 20) == 20
    lost.unlink()
    await until(lambda: catalog.devices()["GPU-a"] is None)
    for file in (lost, other):
        file.write_text(how)
    await until(lambda: catalog.unready_reason() is not None)
    assert await translated(catalog) == 0


@pytest.mark.anyio
async def test_requests_go_to_all_devices() -> None:
    """A CPU keeps its last worker free for the server; a GPU would only be idle."""
    workers = [Worker(NAME, device=device, load=load) for device, load in zip(DEVICES, (9, 0), strict=True)]
    pool: Pool[Tally] = Pool(NAME, workers, TaskMetrics(Metrics(), "fake"))
    await pool.run(sequences(1), soon())
    assert [len(worker.given) for worker in workers] == [0, 1]


def test_a_device_that_is_not_there_refuses_the_start_and_ends_the_others(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    class OfDevice:
        ended: ClassVar[list[str]] = []

        def __init__(self, *arguments: Any) -> None:
            self.device = arguments[-1]

        def wait_until_loaded(self) -> None:
            if self.device == "GPU-b":
                raise StartRefused("CUDA cannot be used here")

        def end(self) -> None:
            self.ended.append(self.device)

    monkeypatch.setattr(loader, "RemoteLoader", OfDevice)
    with pytest.raises(StartRefused, match=r"^Device GPU-b: CUDA cannot be used here"):
        loader.Loader(settings).wait()
    assert OfDevice.ended == [*DEVICES]


def test_metrics_tell_of_lost_devices() -> None:
    metrics = Metrics()
    metrics.watch(list, bool, lambda: {"GPU-a": "lost", "GPU-b": None})
    said = metrics.render().decode()
    assert 'attend_device_ready{device="GPU-a"} 0.0' in said
    assert 'attend_device_ready{device="GPU-b"} 1.0' in said
