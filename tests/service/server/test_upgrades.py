"""Requests that offer another protocol."""

import json
import socket

import pytest

from tests.service.fakes import PATIENCE_S

H2C = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAAB\r\n"
WEBSOCKET = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAA\r\n"
PLAIN = b"GET /plain HTTP/1.1\r\nConnection: close\r\n\r\n"


def told(address: tuple[str, int], *parts: bytes) -> list[dict[str, object]]:
    """What the application told of the requests that are made of these parts, sent one after the other."""
    with socket.create_connection(address, timeout=PATIENCE_S) as connected:
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for part in parts:
            connected.sendall(part)
        said = b""
        while chunk := connected.recv(65536):
            said += chunk
    answers = said.split(b"HTTP/1.1 ")[1:]
    assert all(answer.startswith(b"200 ") for answer in answers), said
    return [json.loads(answer.partition(b"\r\n\r\n")[2]) for answer in answers]


@pytest.mark.parametrize("offer", [H2C, WEBSOCKET])
@pytest.mark.parametrize("pause", [None, 4, 40, -3])
@pytest.mark.parametrize(
    "framed", [b"Content-Length: 5\r\n\r\nhello", b"Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"]
)
def test_an_offer_is_declined_and_the_body_read(
    address: tuple[str, int], offer: bytes, framed: bytes, pause: int | None
) -> None:
    request = b"POST /offered?x=1 HTTP/1.1\r\nA: 1\r\na: 2\r\n" + offer + framed
    parts = [request] if pause is None else [request[:pause], request[pause:]]
    offered = {"path": "/offered", "body": "hello", "a": ["1", "2"]}
    plain = {"path": "/plain", "body": "", "a": []}
    assert told(address, *parts, PLAIN) == [offered, plain]
    assert told(address, b"".join(parts) + request + PLAIN) == [offered, offered, plain]


def test_many_offers_at_once_are_declined(address: tuple[str, int]) -> None:
    n = 2000
    offers = (b"GET /offered HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n") * n
    assert len(told(address, offers + PLAIN)) == n + 1


def test_this_is_no_proxy(address: tuple[str, int]) -> None:
    with socket.create_connection(address, timeout=PATIENCE_S) as connected:
        connected.sendall(b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\n\r\n")
        assert connected.recv(65536).startswith(b"HTTP/1.1 400 ")
