"""A service whose connections are fed bytes, without a socket: the real protocol, the whole application, tiny models."""

import asyncio
import logging
import re
import tempfile
from collections.abc import Coroutine
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import Mock

import uvicorn
from uvicorn.server import ServerState

from service.access.keys import Keys
from service.base.metrics import Metrics
from service.base.settings import Settings
from service.front.serving import Serving
from service.glossaries.inflection import lemmatizer
from service.http.live import LIVE_PATH
from service.server.app import create_app
from service.server.connections import Connection, Connections
from tests.service.conftest import NoSupplier, until_warm
from tests.service.in_process import load_in_process
from tests.service.tiny_artifacts import TinyTranslator
from tests.service.tiny_classifier import TinyClassifier

T = TypeVar("T")
HEAD = re.compile(rb"HTTP/1\.1 (\d{3}) [^\r\n]*\r\n((?:[^\r\n]+\r\n)*)\r\n")
"""The head of an answer."""
ANSWER_S = 1.0
"""Time for an answer; then the client leaves, as it does where a request is not complete."""
QUIET_S = 0.05
"""A client of a WebSocket leaves after so many seconds without an answer."""
HANDSHAKE = (
    f"GET {LIVE_PATH} HTTP/1.1\r\nHost: attend\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
).encode()
LEFT_S = 20.0
"""Time in which a request ends whose client has left."""
LIMITS = {
    "max_body_bytes": 2_000_000,
    "max_document_bytes": 2_000_000,
    "max_text_characters": 5_000,
    "max_documents": 20,
    "documents_kept_s": 1.0,
    "default_timeout_s": 5.0,
    "max_timeout_s": 5.0,
}


class Unexpected(logging.Handler):
    """Notes the exceptions in the log: what a client is told is not the cause."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.errors: list[BaseException] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None:
            self.errors.append(record.exc_info[1])
        elif record.levelno >= logging.ERROR:
            self.errors.append(AssertionError(record.getMessage()))


class Watched(Connection):
    """Counts the requests that have come whole."""

    n_complete = 0

    def on_message_complete(self) -> None:
        has_begun = self.cycle is not None and self.cycle.scope is self.scope  # its target is a path
        self.n_complete += has_begun and not self.parser.should_upgrade()
        super().on_message_complete()


class Service:
    """The application with a translator and a classifier, which never ends: the process does."""

    def __init__(self) -> None:
        folder = Path(tempfile.mkdtemp(prefix="attend-fuzz-"))
        TinyTranslator(seed=3).save(folder / "artifacts" / "tiny-en-fr")
        TinyClassifier(seed=5, pooling="mean").save(folder / "artifacts" / "tiny-sentiment")
        places = {"artifacts": folder / "artifacts", "data": folder / "data"}
        settings = Settings(threads=1, provider="cpu", **places, **LIMITS)  # type: ignore[arg-type]
        metrics = Metrics()
        models = load_in_process(settings, metrics)
        self._app = create_app(
            settings, Serving(settings.probe_interval_s, models), metrics, Keys(settings), NoSupplier().reload
        )
        limits: Any = {"max_message_bytes": settings.max_body_bytes}
        connections = Connections(100, 30.0, 30.0, settings.max_document_bytes, metrics, **limits)
        options: Any = {"lifespan": "off", "log_config": None, "access_log": False, "ws": connections.live_protocol}
        protocol = partial(Watched, connections)
        self._config = uvicorn.Config(self._app, http=protocol, proxy_headers=True, **options)  # type: ignore[arg-type]
        self._config.load()
        self._loop = asyncio.new_event_loop()
        self._log = Unexpected()
        logging.getLogger().addHandler(self._log)
        self._run(self._app.router.lifespan_context(self._app).__aenter__())
        self._run(until_warm(models))
        for language in ("en", "fr"):  # its tables are read before memory is limited
            if (lemmatize := lemmatizer(language)) is not None:
                lemmatize("dogs")

    def answer(self, data: bytes) -> bytes:
        """Return what a client gets that sends these bytes, and then leaves. Raises BaseException: the cause of an
        unexpected error."""
        self._log.errors.clear()
        answer = self._run(self._exchange(data))
        if self._log.errors:
            raise self._log.errors[0]
        return answer

    def converse(self, data: bytes) -> bytes:
        """Return what a client gets that opens a WebSocket, sends these bytes, and then leaves. Raises BaseException: the
        cause of an unexpected error."""
        self._log.errors.clear()
        answers = self._run(self._conversation(data))
        if self._log.errors:
            raise self._log.errors[0]
        return answers

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(work)

    async def _exchange(self, data: bytes) -> bytes:
        written: list[bytes] = []
        state = ServerState()
        protocol: Any = self._config.http_protocol_class(config=self._config, server_state=state, app_state={})  # type: ignore[union-attr]
        transport = _transport(written)
        protocol.connection_made(transport)
        half = len(data) // 2
        for piece in (data[:half], data[half:]):
            if not (transport.close.called or transport.abort.called or transport.set_protocol.called):
                protocol.data_received(piece)
            await asyncio.sleep(0)
        if state.tasks:
            await asyncio.wait(state.tasks, timeout=ANSWER_S)
        transport.close()
        protocol.connection_lost(None)
        if state.tasks:
            _, pending = await asyncio.wait(state.tasks, timeout=LEFT_S)
            assert not pending, "a request goes on though its client has left"
        answers = b"".join(written)
        _check_order(answers, protocol.n_complete)
        return answers

    async def _conversation(self, data: bytes) -> bytes:
        written: list[bytes] = []
        state = ServerState()
        protocol: Any = self._config.ws_protocol_class(config=self._config, server_state=state, app_state={})  # type: ignore[misc]
        transport = _transport(written)
        protocol.connection_made(transport)
        protocol.data_received(HANDSHAKE)
        while not protocol.handshake_complete:
            await asyncio.sleep(0)
        written.clear()
        protocol.data_received(data)
        sessions = {*state.tasks}
        n_before = -1
        while not transport.is_closing() and len(written) > n_before:  # as long as answers come
            n_before = len(written)
            await asyncio.wait(sessions, timeout=QUIET_S)
        transport.close()
        protocol.connection_lost(None)
        _, pending = await asyncio.wait(sessions, timeout=LEFT_S)
        assert not pending, "a session goes on though its client has left"
        return b"".join(written)


def _transport(written: list[bytes]) -> Mock:
    transport = Mock(asyncio.Transport)
    transport.write.side_effect = written.append
    transport.writelines.side_effect = written.extend
    transport.is_closing.side_effect = lambda: transport.close.called or transport.abort.called
    transport.get_write_buffer_size.return_value = 0
    addresses = {"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)}
    transport.get_extra_info.side_effect = lambda name, default=None: addresses.get(name, default)
    return transport


def _check_order(answers: bytes, n_complete: int) -> None:
    """Raise AssertionError: 400 to what is no HTTP stands where the answer to a request before it belongs."""
    is_own = [b"x-request-id: " in head for status, head in HEAD.findall(answers) if status != b"100"]
    if not all(is_own):
        assert all(is_own[:-1]), "answers follow the one that closes the connection"
        assert len(is_own) - 1 >= n_complete, f"{n_complete} requests came whole, {len(is_own) - 1} were answered"
