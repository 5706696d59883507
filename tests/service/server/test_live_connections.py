"""WebSockets on connections of a real server, by clients that send or take too much or too little."""

import asyncio
import socket
import struct
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any
from unittest.mock import Mock

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from benchmarks.live_client import LIVE_PATH, LiveClient
from service.base.metrics import Metrics
from service.server.connections import Connections
from tests.service.fakes import PATIENCE_S
from tests.waiting import until

pytestmark = pytest.mark.anyio
MAX_MESSAGE_BYTES = 1000
HANDSHAKE = (
    f"GET {LIVE_PATH} HTTP/1.1\r\nHost: attend\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
).encode()


class Application:
    """Tells the size of each message, and what the client wants: a large answer, or none."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.ended = threading.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
            await send({"type": "http.response.body", "body": b"ok"})
            return
        await receive()
        await send({"type": "websocket.accept"})
        try:
            while (message := await receive())["type"] == "websocket.receive":
                self.sizes.append(len(message["text"]))
                n = 20_000_000 if message["text"] == "much" else 1
                for _ in range(n // 100_000 + 1):
                    await send({"type": "websocket.send", "text": f'{{"x": "{"x" * min(n, 100_000)}"}}'})
        finally:
            self.ended.set()


class Running:
    def __init__(self, send_timeout_s: float = PATIENCE_S) -> None:
        self.metrics, self.application = Metrics(), Application()
        connections = Connections(
            100, PATIENCE_S, send_timeout_s, 10_000, self.metrics, max_message_bytes=MAX_MESSAGE_BYTES
        )
        listening = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = listening.getsockname()
        options: Any = {"http": connections.protocol, "ws": connections.live_protocol, "ws_per_message_deflate": False}
        config = uvicorn.Config(self.application, lifespan="off", log_config=None, **options)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([listening],))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.address[1]}"

    def n_open(self) -> float:
        return self.metrics.registry.get_sample_value("attend_connections") or 0

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join()


@pytest.fixture
def running() -> Iterator[Running]:
    server = Running()
    yield server
    server.stop()


@pytest.fixture
async def client(running: Running) -> AsyncIterator[LiveClient]:
    client = await LiveClient.open(running.url)
    yield client
    client.leave()


def asked(address: tuple[str, int], *parts: bytes) -> bytes:
    with socket.create_connection(address, timeout=PATIENCE_S) as connected:
        for part in parts:
            connected.sendall(part)
        return connected.recv(65536)


async def test_a_socket_is_one_connection_until_it_is_closed(running: Running, client: LiveClient) -> None:
    client.send(text="a")
    assert await client.receive() == {"x": "x"}
    assert running.n_open() == 1
    client.leave()
    await until(lambda: running.n_open() == 0)
    assert running.application.ended.wait(PATIENCE_S)


async def test_an_offer_at_another_path_or_of_another_protocol_is_declined(running: Running) -> None:
    for offer in (HANDSHAKE.replace(LIVE_PATH.encode(), b"/other"), HANDSHAKE.replace(b"websocket", b"h2c")):
        answer = await asyncio.to_thread(asked, running.address, offer)
        assert answer.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("pause", [None, 5, 60, -2])
async def test_a_handshake_may_come_in_parts(running: Running, pause: int | None) -> None:
    parts = [HANDSHAKE] if pause is None else [HANDSHAKE[:pause], HANDSHAKE[pause:]]
    assert (await asyncio.to_thread(asked, running.address, *parts)).startswith(b"HTTP/1.1 101 ")


async def test_a_wrong_handshake_is_refused(running: Running) -> None:
    wrong = HANDSHAKE.replace(b"Version: 13", b"Version: 8")
    assert (await asyncio.to_thread(asked, running.address, wrong)).startswith(b"HTTP/1.1 4")
    await until(lambda: running.n_open() == 0)


async def test_a_message_is_handed_on_as_soon_as_it_is_too_long(running: Running) -> None:
    def send() -> None:
        with socket.create_connection(running.address, timeout=PATIENCE_S) as connected:
            connected.sendall(HANDSHAKE)
            connected.recv(65536)
            # The first frame of a text, which announces 2**40 bytes, masked with zeros.
            connected.sendall(b"\x01\xff" + struct.pack("!Q", 2**40) + bytes(4) + b"a" * 5000)
            assert connected.recv(65536)

    await asyncio.to_thread(send)
    assert MAX_MESSAGE_BYTES < running.application.sizes[0] <= 5000


@pytest.mark.parametrize(
    "frame",
    [
        b"\x81\x01a",  # not masked
        b"\xc1\x81" + bytes(4) + b"a",  # compressed, as nobody agreed on
        b"\x83\x81" + bytes(4) + b"a",  # an opcode that nothing has
        b"\x80\x81" + bytes(4) + b"a",  # goes on with nothing
        b"\x89\xfe" + struct.pack("!H", 200) + bytes(204),  # a long ping
        b"\x81\x81" + bytes(4) + b"\xff",  # not UTF-8
        b"\x88\x80" + bytes(4) + b"\x88\x80" + bytes(4) + b"\x81\x81" + bytes(4) + b"a",  # goes on after its end
    ],
)
async def test_a_wrong_frame_ends_its_socket_alone(running: Running, client: LiveClient, frame: bytes) -> None:
    def send() -> None:
        with socket.create_connection(running.address, timeout=PATIENCE_S) as connected:
            connected.sendall(HANDSHAKE)
            connected.recv(65536)
            connected.sendall(frame)
            while connected.recv(65536):
                pass

    await asyncio.to_thread(send)
    client.send(text="a")
    assert await client.receive() == {"x": "x"}


async def test_pings_are_not_answered_while_the_client_does_not_read() -> None:
    connections = Connections(100, PATIENCE_S, PATIENCE_S, 10_000, Metrics())
    config = uvicorn.Config(Application(), ws=connections.live_protocol, lifespan="off", log_config=None)  # type: ignore[arg-type]
    protocol = connections.live_protocol(config=config, server_state=ServerState(), app_state={})
    transport = Mock(asyncio.Transport)
    transport.get_extra_info.return_value, transport.is_closing.return_value = None, False
    protocol.connection_made(transport)
    protocol.data_received(HANDSHAKE)
    await until(lambda: protocol.handshake_complete)
    transport.write.reset_mock()
    ping = b"\x89\x80" + bytes(4)
    protocol.pause_writing()
    protocol.data_received(1000 * ping)
    assert not transport.write.called
    protocol.resume_writing()
    protocol.data_received(ping)
    transport.write.assert_called_once_with(b"\x8a\x00")
    protocol.connection_lost(None)
    await asyncio.wait(protocol.tasks)


async def test_a_client_that_takes_nothing_is_left() -> None:
    running = Running(send_timeout_s=0.2)
    try:
        client = await LiveClient.open(running.url)
        client.send_data("much")
        await until(lambda: running.application.ended.is_set())
        closed = running.metrics.registry.get_sample_value(
            "attend_connections_closed_total", {"reason": "send_timeout"}
        )
        assert closed == 1
        client.leave()
    finally:
        running.stop()
