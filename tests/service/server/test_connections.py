"""Connections of a real server, by clients that send or take too little, or are too many."""

import asyncio
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from service.base.metrics import Metrics
from service.server.connections import MAX_LINGERING, Connections
from tests.service.fakes import PATIENCE_S

GET = b"GET / HTTP/1.1\r\nHost: attend\r\n\r\n"
MAX_BODY_BYTES = 10_000
LARGE = 20_000_000
"""Bytes, more than the buffers of the system hold."""
Running = Callable[..., AbstractContextManager[SimpleNamespace]]


class Application:
    """Answers at once; /large with much; /held when it may, and tells whether the client left it."""

    def __init__(self) -> None:
        self.held = threading.Event()
        self.left = threading.Event()
        self.may_answer = threading.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = b"x" * (LARGE if scope["path"] == "/large" else 2)
        if scope["path"] == "/held":
            self.held.set()
            await asyncio.to_thread(self.may_answer.wait, PATIENCE_S)
        headers = [(b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body, "more_body": True})
        await send({"type": "http.response.body"})
        message = await receive()
        while message["type"] != "http.disconnect":
            message = await receive()
        self.left.set()


@pytest.fixture
def running() -> Running:
    """running(**limits) serves; it has connect(), application and metrics."""

    @contextmanager
    def run(
        limit: int = 100, head_timeout_s: float = PATIENCE_S, send_timeout_s: float = PATIENCE_S
    ) -> Iterator[SimpleNamespace]:
        metrics, application = Metrics(), Application()
        connections = Connections(limit, head_timeout_s, send_timeout_s, MAX_BODY_BYTES, metrics)
        listening = socket.create_server(("127.0.0.1", 0))
        options: Any = {"lifespan": "off", "log_config": None, "timeout_graceful_shutdown": 1}
        config = uvicorn.Config(application, http=connections.protocol, **options)  # type: ignore[arg-type]
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()

        def connect(send: bytes = b"", buffer: int | None = None) -> socket.socket:
            connected = socket.socket()
            connected.settimeout(PATIENCE_S)
            if buffer is not None:
                connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
            connected.connect(listening.getsockname())
            connected.sendall(send)
            opened.append(connected)
            return connected

        opened: list[socket.socket] = []
        try:
            yield SimpleNamespace(connect=connect, application=application, metrics=metrics)
        finally:
            application.may_answer.set()
            for connected in opened:
                connected.close()
            server.should_exit = True
            thread.join()

    return run


def all_of(connected: socket.socket) -> bytes:
    """What comes until the service closes the connection."""
    said = b""
    while chunk := connected.recv(65536):
        said += chunk
    return said


def is_broken_off(connected: socket.socket, piece: bytes) -> bool:
    """Whether the service closes the connection when it gets more and more of this."""
    try:
        for _ in range(20_000_000 // len(piece)):
            connected.sendall(piece)
    except OSError:
        return True
    return False


def answer_of(connected: socket.socket) -> bytes:
    """A small answer, of a connection that stays open."""
    said = b""
    while not said.endswith(b"\r\n\r\nxx"):
        chunk = connected.recv(65536)
        assert chunk, said
        said += chunk
    return said


def use(connected: socket.socket) -> None:
    """Ask, for longer than a millisecond, in which the server's clock counts."""
    ends_at = time.monotonic() + 0.005
    while time.monotonic() < ends_at:
        connected.sendall(GET)
        answer_of(connected)


def closed(running: SimpleNamespace, reason: str) -> float | None:
    value: float | None = running.metrics.registry.get_sample_value(
        "attend_connections_closed_total", {"reason": reason}
    )
    return value


def test_a_connection_that_sends_nothing_is_closed(running: Running) -> None:
    with running(head_timeout_s=0.1) as service:
        assert all_of(service.connect()) == b""
        assert closed(service, "head_timeout") == 1


@pytest.mark.parametrize("part", [b"GET", GET[:-2]])
def test_half_a_head_gets_408(running: Running, part: bytes) -> None:
    with running(head_timeout_s=0.5) as service:
        said = all_of(service.connect(part))
        assert said.startswith(b"HTTP/1.1 408 ")
        assert b"connection: close\r\n" in said


def test_half_a_second_head_gets_408(running: Running) -> None:
    with running(head_timeout_s=0.5) as service:
        connected = service.connect(GET)
        assert answer_of(connected).startswith(b"HTTP/1.1 200 ")
        connected.sendall(GET[:-2])
        assert all_of(connected).startswith(b"HTTP/1.1 408 ")


def test_half_a_head_that_came_with_the_request_before_gets_408(running: Running) -> None:
    with running(head_timeout_s=0.5) as service:
        said = all_of(service.connect(GET + GET[:-2]))
        assert said.startswith(b"HTTP/1.1 200 ")
        assert b"HTTP/1.1 408 " in said


def test_a_head_that_comes_byte_by_byte_gets_no_more_time(running: Running) -> None:
    with running(head_timeout_s=0.5) as service:
        connected = service.connect(b"GET / HTTP/1.1\r\nX: ")
        connected.settimeout(0.01)
        for _ in range(1000):
            try:
                connected.sendall(b"x")
                said = connected.recv(65536)
                break
            except TimeoutError:
                pass
        assert said.startswith(b"HTTP/1.1 408 ")


def test_empty_lines_after_an_answer_do_not_keep_a_connection(running: Running) -> None:
    with running(head_timeout_s=0.5) as service:
        connected = service.connect(GET)
        answer_of(connected)
        connected.sendall(b"\r\n")
        assert all_of(connected) == b""


def test_a_kept_connection_may_be_idle_longer_than_a_head_may_take(running: Running) -> None:
    with running(head_timeout_s=0.5) as service:
        kept, silent = service.connect(GET), service.connect()
        answer_of(kept)
        all_of(silent)
        all_of(service.connect())
        kept.sendall(GET)
        assert answer_of(kept).startswith(b"HTTP/1.1 200 ")


def test_a_request_may_be_answered_later_than_a_head_may_take(running: Running) -> None:
    with running(head_timeout_s=0.5) as service:
        held = service.connect(GET.replace(b"/", b"/held", 1))
        all_of(service.connect())
        all_of(service.connect())
        service.application.may_answer.set()
        assert answer_of(held).startswith(b"HTTP/1.1 200 ")


def test_a_client_that_takes_nothing_is_left_and_its_request_is_freed(running: Running) -> None:
    with running(send_timeout_s=0.2) as service:
        service.connect(GET.replace(b"/", b"/large", 1))
        assert service.application.left.wait(PATIENCE_S)
        assert closed(service, "send_timeout") == 1


def test_requests_behind_an_answer_that_nobody_takes_end_without_an_error(
    running: Running, caplog: pytest.LogCaptureFixture
) -> None:
    with running(head_timeout_s=0.5, send_timeout_s=0.2) as service:
        service.connect(3 * GET.replace(b"/", b"/large", 1))
        while not closed(service, "send_timeout"):
            all_of(service.connect())
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


def test_a_client_that_takes_its_answer_slowly_gets_all_of_it(running: Running) -> None:
    with running(head_timeout_s=0.5, send_timeout_s=2.0) as service:
        slow = service.connect(GET.replace(b"/", b"/large", 1), buffer=65536)
        taken = 0
        for _ in range(5):
            taken += len(slow.recv(200_000, socket.MSG_WAITALL))  # more than a window, by which TCP tells
            all_of(service.connect())  # it takes a quarter of what a client may be slow
        assert not service.application.left.is_set()
        while taken < LARGE and (chunk := slow.recv(65536)):
            taken += len(chunk)
        assert (taken >= LARGE, closed(service, "send_timeout")) == (True, 0)


@pytest.mark.parametrize("piece", [b"x" * 10_000, b"X: 1\r\n" * 2000], ids=["one long header", "many headers"])
@pytest.mark.parametrize("before", [b"", GET])
def test_a_head_without_end_is_refused(running: Running, before: bytes, piece: bytes) -> None:
    with running() as service:
        said = all_of(service.connect(before + b"GET / HTTP/1.1\r\nX: " + 100 * piece))
        assert b"HTTP/1.1 431 " in said
        assert said.startswith(b"HTTP/1.1 200 " if before else b"HTTP/1.1 431 ")


def test_a_head_without_end_is_broken_off_while_another_request_is_answered(running: Running) -> None:
    with running() as service:
        connected = service.connect(GET.replace(b"/", b"/held", 1) + b"GET / HTTP/1.1\r\n")
        assert service.application.held.wait(PATIENCE_S)
        assert is_broken_off(connected, b"X: 1\r\n" * 2000)


@pytest.mark.parametrize(
    "noise",
    [
        pytest.param(b"\0\r\n\r\n", id="no request"),
        pytest.param(GET.replace(b"Host", b"Host ") + GET, id="a head that is wrong"),
        pytest.param(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab", id="a body that is wrong"),
        pytest.param(GET.replace(b"/", b"x"), id="a target that is wrong"),
    ],
)
@pytest.mark.parametrize("n_before", [1, 2])
def test_noise_behind_requests_takes_no_answer_from_them(running: Running, n_before: int, noise: bytes) -> None:
    with running() as server:
        connected = server.connect(GET.replace(b"/", b"/held", 1) + GET * (n_before - 1) + noise)
        assert server.application.held.wait(PATIENCE_S)
        server.application.may_answer.set()
        answers = all_of(connected)
    assert answers.count(b"HTTP/1.1 200 OK") == answers.count(b"HTTP/1.1") == n_before
    assert answers.count(b"connection: close") == 1


def test_noise_in_a_body_gets_400(running: Running) -> None:
    with running() as server:
        start = b"POST /held HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        connected = server.connect(start + b"1\r\nab")
        assert all_of(connected).startswith(b"HTTP/1.1 400")
        server.application.may_answer.set()


def test_trailers_without_end_are_not_read(running: Running) -> None:
    with running() as service:
        connected = service.connect(b"POST /held HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n")
        assert service.application.held.wait(PATIENCE_S)
        assert is_broken_off(connected, b"X: 1\r\n" * 2000)


def test_a_body_in_the_smallest_chunks_is_read(running: Running) -> None:
    with running() as service:
        connected = service.connect(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(MAX_BODY_BYTES):
            connected.sendall(b"1\r\nx\r\n")
        connected.sendall(b"0\r\n\r\n" + GET)
        answer_of(connected)
        assert service.application.left.wait(PATIENCE_S)


NOISE = {
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
    "TLS": bytes.fromhex("16030100c8010000c403035c") + bytes(range(180)),
    "zeros": bytes(64),
    "SSH": b"SSH-2.0-OpenSSH_9.6\r\n",
    "Redis": b"*1\r\n$4\r\nPING\r\n",
    "a proxy's request": b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\n\r\n",
    "a path that is not ASCII": b"GET /\xff HTTP/1.1\r\nHost: attend\r\n\r\n",
    "a wrong chunk": b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
}


def test_noise_of_strangers_fills_no_log(running: Running, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with running() as service:
        answers = {what: all_of(service.connect(noise)) for what, noise in NOISE.items()}
    assert [what for what, said in answers.items() if not said.startswith(b"HTTP/1.1 400 ")] == []
    assert [record.getMessage() for record in caplog.records if record.levelno > logging.INFO] == []
    assert caplog.text.count("did not send valid HTTP/1.1") == 1


def test_one_more_connection_closes_that_which_has_been_idle_longest(
    running: Running, caplog: pytest.LogCaptureFixture
) -> None:
    with running(limit=3) as service:
        kept = [service.connect() for _ in range(3)]
        for connected in (*kept, kept[0]):
            use(connected)
        assert answer_of(service.connect(GET)).startswith(b"HTTP/1.1 200 ")
        assert all_of(kept[1]).startswith(b"HTTP/1.1 503 ")
        assert answer_of(service.connect(GET)).startswith(b"HTTP/1.1 200 ")
        assert all_of(kept[2]).startswith(b"HTTP/1.1 503 ")
        kept[0].sendall(GET)
        assert answer_of(kept[0]).startswith(b"HTTP/1.1 200 ")
        assert closed(service, "limit") == 2
        assert service.metrics.registry.get_sample_value("attend_connections") == 3
    assert [record.message for record in caplog.records if "connections are open" in record.message] == [
        "all 3 connections are open, idle ones are closed for new ones"
    ]


def test_a_connection_closed_before_its_first_request_is_told_why(running: Running) -> None:
    with running(limit=1) as service:
        silent = service.connect()
        answer_of(service.connect(GET))
        said = all_of(silent)
        assert said.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: 1\r\n" in said


def test_where_no_connection_is_idle_a_newcomer_gets_503(running: Running, caplog: pytest.LogCaptureFixture) -> None:
    with running(limit=1) as service:
        held = service.connect(GET.replace(b"/", b"/held", 1))
        assert service.application.held.wait(PATIENCE_S)
        for _ in range(2 * MAX_LINGERING):  # requests that are under way must not make the system reset the connection
            said = all_of(service.connect(GET))
            assert said.startswith(b"HTTP/1.1 503 ")
            assert b"retry-after: 1\r\n" in said
            assert b"connection: close\r\n" in said
        service.application.may_answer.set()
        assert answer_of(held).startswith(b"HTTP/1.1 200 ")
    assert "none is idle: new ones get 503" in caplog.text
