from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from opentelemetry.trace import TracerProvider

from service.access.keys import Keys
from service.base.artifact import Artifact, read_artifact
from service.base.errors import ReloadRefused, RequestError
from service.base.metrics import Metrics
from service.base.settings import Settings
from service.front.catalog import Catalog
from service.front.serving import Serving
from service.memories.store import Memories
from service.server.app import create_app
from service.server.server import Server
from service.storage.database import Database
from tests.postgres import PostgreSQL, running_postgresql, why_missing
from tests.service.fakes import Disk
from tests.service.in_process import load_in_process
from tests.service.tiny_artifacts import TinyTranslator
from tests.service.tiny_classifier import TinyClassifier
from tests.waiting import until

Client = httpx.AsyncClient
Serve = Callable[..., AbstractAsyncContextManager[Client]]


def problem(response: httpx.Response, error: type[RequestError]) -> dict[str, Any]:
    """Return the body of an answer, which must be a whole problem of this error."""
    assert response.status_code == error.status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = response.json()
    assert body.keys() - {"errors"} == {"type", "code", "title", "status", "detail", "request_id"}
    assert (body["code"], body["type"], body["status"]) == (error.code, f"errors#{error.code}", error.status)
    assert body["request_id"] == response.headers["X-Request-ID"]
    assert "Server-Timing" in response.headers
    return body


async def post(client: Client, path: str, **body: Any) -> Any:
    """What the service answers to a body of JSON, which must be right."""
    response = await client.post(path, json=body)
    assert response.status_code == 200, response.text
    return response.json()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    if (reason := why_missing()) is not None:
        pytest.skip(reason)
    with running_postgresql() as running:
        yield running


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.process)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where a new database is: in a folder, or at an address of PostgreSQL."""
    if request.param == "sqlite":
        return tmp_path / "data"
    address: str = request.getfixturevalue("postgresql").address()
    return address


@pytest.fixture
def memories(place: Path | str) -> Iterator[Memories]:
    database = Database(place)
    yield Memories(database)
    database.close()


@pytest.fixture(scope="session")
def tiny_translator() -> TinyTranslator:
    return TinyTranslator(seed=3)


@pytest.fixture(scope="session")
def tiny_classifier() -> TinyClassifier:
    return TinyClassifier(seed=5, pooling="mean")


@pytest.fixture(scope="session")
def artifacts(
    tmp_path_factory: pytest.TempPathFactory, tiny_translator: TinyTranslator, tiny_classifier: TinyClassifier
) -> Path:
    """A directory with one translator and one classifier."""
    root = tmp_path_factory.mktemp("artifacts")
    tiny_translator.save(root / "tiny-en-fr")
    tiny_classifier.save(root / "tiny-sentiment")
    return root


@pytest.fixture(scope="session")
def translator_artifact(artifacts: Path) -> Artifact:
    return read_artifact(artifacts / "tiny-en-fr")


class NoSupplier:
    """Of models that are there from the beginning."""

    async def may_listen(self) -> None:
        pass

    def report(self, state: str) -> None:
        pass

    async def run(self) -> None:
        pass

    async def reload(self) -> None:
        raise ReloadRefused("nobody loads models here")


def server_of(models: Catalog, metrics: Metrics, settings: Settings, **options: Any) -> Server:
    """A real server, on a port that the system chooses.

    Args:
        options: of uvicorn.
    """
    serving, keys, supplier = Serving(settings.probe_interval_s, models), Keys(settings), NoSupplier()
    config = uvicorn.Config(create_app(settings, serving, metrics, keys, supplier.reload), port=0, **options)
    return Server(config, serving, supplier, keys, settings.drain_timeout_s, settings.drain_delay_s)


@pytest.fixture
def serve(artifacts: Path, tmp_path: Path) -> Serve:
    """serve(**settings) is a client of the application, with the tiny artifacts unless given other models."""

    @asynccontextmanager
    async def running(
        models: Catalog | None = None,
        metrics: Metrics | None = None,
        traces: TracerProvider | None = None,
        **settings: object,
    ) -> AsyncIterator[Client]:
        defaults = {"artifacts": artifacts, "threads": 1, "provider": "cpu", "data": tmp_path / "data"}
        configured = Settings(**(defaults | settings))  # type: ignore[arg-type]
        metrics = metrics or Metrics()
        models = models or load_in_process(configured, metrics)
        serving = Serving(configured.probe_interval_s, models)
        app = create_app(configured, serving, metrics, Keys(configured), NoSupplier().reload, traces=traces)
        app.state.serving = serving
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with app.router.lifespan_context(app), Client(transport=transport, base_url="http://attend") as client:
            await until_warm(models)
            yield client

    return running


@pytest.fixture
async def client(serve: Serve) -> AsyncIterator[Client]:
    async with serve() as client:
        yield client


async def until_warm(models: Catalog, unready: str = "starting") -> None:
    """Wait until no engine is unready for this reason."""
    await until(lambda: unready not in (models.unready_reason() or ""))
