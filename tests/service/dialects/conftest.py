"""A real server, for the clients of other services."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import deepl
import httpx
import pytest

from service.base.metrics import Metrics
from service.base.settings import Settings
from tests.service.conftest import server_of
from tests.service.fakes import PATIENCE_S
from tests.service.in_process import load_in_process
from tests.service.tiny_artifacts import TinyTranslator, save_translators
from tests.service.tiny_classifier import TinyClassifier
from tests.waiting import look_later, wait_until

Listen = Callable[..., str]


@contextmanager
def listening(**given: object) -> Iterator[str]:
    """Run a server in a thread, and yield its address."""
    settings, metrics = Settings(provider="cpu", threads=1, **given), Metrics()  # type: ignore[arg-type]
    models = load_in_process(settings, metrics)
    server = server_of(models, metrics, settings, log_config=None)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        wait_until(lambda: not thread.is_alive() or (server.started and models.unready_reason() is None))
        assert thread.is_alive()
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(PATIENCE_S)


@pytest.fixture(scope="module")
def artifacts(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    tiny_translator: TinyTranslator,
    tiny_classifier: TinyClassifier,
) -> Path:
    """A directory with a translator, a classifier whose name has a slash, and a model for embeddings.

    A module that has TRANSLATORS gets these translators and a classifier.
    """
    root = tmp_path_factory.mktemp("artifacts")
    if hasattr(request.module, "TRANSLATORS"):
        tiny_classifier.save(root / "reviews")
        return save_translators(root, request.module.TRANSLATORS)
    tiny_translator.save(root / "translator")
    tiny_classifier.save(root / "classifier", "org/tiny-sentiment")
    tiny_classifier.save_for_embeddings(root / "encoder")
    return root


@pytest.fixture(scope="module")
def listen(artifacts: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listen]:
    """listen(**settings) starts a server of the tiny artifacts, and returns its address. Equal settings share one."""
    with ExitStack() as stack:
        addresses: dict[str, str] = {}

        def address(**settings: object) -> str:
            if str(settings) not in addresses:
                given = {"artifacts": artifacts, "data": tmp_path_factory.mktemp("data")} | settings
                addresses[str(settings)] = stack.enter_context(listening(**given))
            return addresses[str(settings)]

        yield address


@pytest.fixture(scope="module")
def settings(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The SETTINGS of the test module, or none."""
    return getattr(request.module, "SETTINGS", {})


@pytest.fixture(scope="module")
def address(listen: Listen, settings: dict[str, Any]) -> str:
    """Address of a server with the settings of the test module."""
    return listen(**settings)


@pytest.fixture
def client(
    address: str, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[deepl.DeepLClient]:
    """DeepL's client. It does not wait five seconds before it asks again, and does not retry after an error."""
    monkeypatch.setattr("deepl.http_client.max_network_retries", 0)
    monkeypatch.setattr("deepl.translator.time", SimpleNamespace(time=time.time, sleep=look_later))
    client = deepl.DeepLClient(settings.get("api_keys", "any"), server_url=address + getattr(request, "param", ""))
    yield client
    client.close()


def post_json(url: str, **body: Any) -> Any:
    return httpx.post(url, json=body).raise_for_status().json()
