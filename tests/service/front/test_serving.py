"""Catalog that take the place of others, as requests see it."""

import asyncio
import shutil
from pathlib import Path

import httpx
import pytest

from service.access.keys import Keys
from service.base.errors import Draining, NotReady, Starting, StartRefused
from service.base.metrics import Metrics
from service.base.settings import Settings
from service.front import serving as serving_module
from service.front.catalog import Catalog
from service.front.serving import Serving
from service.front.suppliers import in_daemon_thread
from service.server.app import create_app
from tests.service.conftest import NoSupplier, problem, until_warm
from tests.service.fakes import PATIENCE_S
from tests.service.in_process import LoopThread, load_in_process

pytestmark = pytest.mark.anyio


@pytest.fixture
def make(artifacts: Path) -> "Make":
    return Make(artifacts)


class Make:
    def __init__(self, artifacts: Path) -> None:
        self._settings = Settings(artifacts=artifacts, provider="cpu", threads=1)

    def __call__(self) -> Catalog:
        return load_in_process(self._settings, Metrics())

    def broken(self) -> Catalog:
        models = self()
        (worker,) = models._workers
        assert isinstance(worker, LoopThread)
        for served in worker.loop._served.values():
            served.engine.probe = broken_probe  # type: ignore[union-attr, assignment]
        return models


def broken_probe() -> None:
    raise RuntimeError("it cannot")


async def serving_with(models: Catalog) -> Serving:
    serving = Serving(3600, models)
    serving.start()
    await until_warm(models)
    return serving


async def test_without_models_requests_are_told_that_it_starts_or_drains(make: Make) -> None:
    serving = Serving(3600)
    assert serving.unready_reason() == "starting"
    with pytest.raises(Starting):
        serving.catalog  # noqa: B018
    serving.drain()
    assert serving.unready_reason() == "draining"
    with pytest.raises(Draining):
        serving.catalog  # noqa: B018


@pytest.mark.slow
async def test_models_end_when_the_last_request_that_uses_them_is_answered(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving_module, "LOOK_S", 0)
    former, later = make(), make()
    serving = await serving_with(former)
    assert serving.catalog is former
    former.n_users += 1
    retiring = await serving.replace(later)
    assert serving.catalog is later
    for _ in range(10):  # looks at the number of users
        await asyncio.sleep(0)
    assert not retiring.done()
    assert former.unready_reason() is None
    former.n_users -= 1
    await asyncio.wait_for(retiring, PATIENCE_S)
    assert "draining" in (former.unready_reason() or "")
    assert serving.unready_reason() is None
    await serving.stop(0)


async def test_models_that_cannot_do_a_forward_pass_do_not_take_over(make: Make) -> None:
    former, broken = make(), make.broken()
    serving = await serving_with(former)
    with pytest.raises(StartRefused, match=r"tiny-en-fr: the last forward pass failed \(RuntimeError\)"):
        await serving.replace(broken)
    assert serving.catalog is former
    assert serving.unready_reason() is None
    await serving.stop(0)


async def test_models_that_come_while_it_drains_take_no_requests(make: Make) -> None:
    serving = Serving(3600)
    serving.drain()
    await serving.replace(make())
    with pytest.raises(Draining):
        await serving.catalog.translators[0].greedy.run([], 0)
    await serving.stop(0)


async def test_files_that_change_are_told_until_they_are_put_back_and_the_service_stays_ready(
    artifacts: Path, tmp_path: Path
) -> None:
    """On a volume that servers share, one copied file would otherwise take out all of them at the same time."""
    models = Make(Path(shutil.copytree(artifacts, tmp_path / "artifacts")))()
    serving = await serving_with(models)
    weights = tmp_path / "artifacts" / "tiny-en-fr" / "weights.safetensors"
    content = weights.read_bytes()
    for there, is_changed in ((b"", True), (content, False)):
        weights.write_bytes(there)
        models.look_at_files()
        assert serving.unready_reason() is None
        told = {state.model: (state.ready, state.files_changed) for state in serving.states()}
        assert told == {"tiny-en-fr": (True, is_changed), "tiny-sentiment": (True, False)}
    await serving.stop(0)


async def test_an_application_whose_models_are_loading_says_so(artifacts: Path) -> None:
    settings, metrics, serving = Settings(), Metrics(), Serving(3600)
    app = create_app(settings, serving, metrics, Keys(settings), NoSupplier().reload)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://attend") as client:
        assert (await client.get("/health/live")).status_code == 200
        assert "starting" in problem(await client.get("/health/ready"), NotReady)["detail"]
        for answer in (await client.post("/translate", json={"text": "a"}), await client.get("/models")):
            problem(answer, Starting)
            assert int(answer.headers["Retry-After"]) > 0
        assert "attend_ready 0.0" in (await client.get("/metrics")).text


async def test_the_end_of_a_process_does_not_wait_for_what_loads() -> None:
    loading = in_daemon_thread(asyncio.Event)
    assert isinstance(await loading, asyncio.Event)
    with pytest.raises(ZeroDivisionError):
        await in_daemon_thread(lambda: 1 // 0)
