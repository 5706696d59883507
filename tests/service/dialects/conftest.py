"""A real server, for the clients of other services."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from service.base.metrics import Metrics
from service.base.settings import Settings
from service.models.assembly import load_catalog
from tests.service.conftest import server_of
from tests.service.fakes import PATIENCE_S
from tests.service.tiny_artifacts import TinyTranslator
from tests.service.tiny_classifier import TinyClassifier

Listen = Callable[..., str]


@contextmanager
def listening(**given: object) -> Iterator[str]:
    """Run a server in a thread, and yield its address."""
    settings, metrics = Settings(provider="cpu", threads=1, loops=0, **given), Metrics()  # type: ignore[arg-type]
    models = load_catalog(settings, metrics)
    server = server_of(models, metrics, settings, log_config=None)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        ends_at = time.monotonic() + PATIENCE_S
        while not server.started or models.unready_reason() is not None:
            assert thread.is_alive()
            assert time.monotonic() < ends_at, models.unready_reason()
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(PATIENCE_S)


@pytest.fixture(scope="session")
def artifacts(
    tmp_path_factory: pytest.TempPathFactory, tiny_translator: TinyTranslator, tiny_classifier: TinyClassifier
) -> Path:
    """A directory with a translator, a classifier whose name has a slash, and a model for embeddings."""
    root = tmp_path_factory.mktemp("artifacts")
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
