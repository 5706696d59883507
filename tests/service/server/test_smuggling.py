"""Requests that two servers could read in two ways, so that one of them sees a request that the other one does not."""

import socket

import pytest

from tests.service.fakes import PATIENCE_S

HIDDEN = b"GET /hidden HTTP/1.1\r\nConnection: close\r\n\r\n"
CHUNKED, NO_CHUNK = b"Transfer-Encoding: chunked\r\n\r\n", b"0\r\n\r\n"
AMBIGUOUS = {
    "both lengths": b"Content-Length: 5\r\n" + CHUNKED + NO_CHUNK,
    "both lengths, the other way round": b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n" + NO_CHUNK,
    "both lengths and an offer": b"Connection: upgrade\r\nUpgrade: h2c\r\nContent-Length: 5\r\n" + CHUNKED + NO_CHUNK,
    "two lengths": b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
    "one length twice": b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
    "a list of lengths": b"Content-Length: 2, 2\r\n\r\n{}",
    "a signed length": b"Content-Length: +2\r\n\r\n{}",
    "a hexadecimal length": b"Content-Length: 0x2\r\n\r\n{}",
    "a space after a name": b"Content-Length : 2\r\n\r\n{}",
    "a space in a name": b"Content Length: 2\r\n\r\n{}",
    "another coding": b"Transfer-Encoding: xchunked\r\n\r\n" + NO_CHUNK,
    "a coding after chunked": b"Transfer-Encoding: chunked, identity\r\n\r\n" + NO_CHUNK,
    "two codings": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n" + NO_CHUNK,
    "a tab of another kind": b"Transfer-Encoding: \x0bchunked\r\n\r\n" + NO_CHUNK,
    "a folded line": b"A: 1\r\n Content-Length: 2\r\n\r\n{}",
    "a line that ends in LF": b"A: 1\n" + CHUNKED + NO_CHUNK,
    "a line that ends in CR": b"A: 1\rContent-Length: 2\r\n\r\n{}",
    "a null byte": b"A: 1\x00\r\n\r\n",
    "a chunk with 0x": CHUNKED + b"0x2\r\n{}\r\n" + NO_CHUNK,
    "a chunk with a sign": CHUNKED + b"+2\r\n{}\r\n" + NO_CHUNK,
    "a chunk after a space": CHUNKED + b" 2\r\n{}\r\n" + NO_CHUNK,
    "a chunk that ends in LF": CHUNKED + b"2\n{}\n0\n\n",
    "a chunk that is longer": CHUNKED + b"2\r\n{} \r\n" + NO_CHUNK,
    "a chunk of 2^68 bytes": CHUNKED + b"f" * 17 + b"\r\n{}\r\n" + NO_CHUNK,
    "an extension with a LF": CHUNKED + b"0;a\nb\r\n\r\n",
}


@pytest.mark.parametrize("rest", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_a_request_that_can_be_read_in_two_ways_is_refused(address: tuple[str, int], rest: bytes) -> None:
    with socket.create_connection(address, timeout=PATIENCE_S) as connected:
        connected.sendall(b"POST /seen HTTP/1.1\r\nHost: a\r\n" + rest + HIDDEN)
        said = b""
        while chunk := connected.recv(65536):
            said += chunk
    assert said.startswith(b"HTTP/1.1 400 ")
    assert b"hidden" not in said, "the connection is closed before anybody reads the next request"
