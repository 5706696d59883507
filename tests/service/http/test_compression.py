"""Responses that are compressed for clients that accept it."""

import gzip
import threading

import pytest
from starlette.requests import Request

from service.http import compression
from service.http.compression import MIN_COMPRESSED_BYTES, MIN_THREAD_BYTES, accepts_gzip, compressed_response

pytestmark = pytest.mark.anyio


def asking(*accepted: str) -> Request:
    headers = [(b"accept-encoding", value.encode()) for value in accepted]
    return Request({"type": "http", "method": "GET", "path": "/", "headers": headers})


@pytest.mark.parametrize(
    ("accepted", "takes"),
    [
        ([], False),
        (["gzip"], True),
        (["GZIP"], True),
        (["br, gzip;q=0.5"], True),
        (["deflate", "gzip"], True),
        (["*"], True),
        (["deflate , gzip ; q=0.001"], True),
        (["gzip;q=0"], False),
        (["gzip; q=0.000, *"], False),
        (["*;q=0"], False),
        (["identity"], False),
        (["x-gzipped"], False),
        (["gzip;q=nonsense"], False),
        ([""], False),
    ],
)
def test_a_client_takes_gzip_if_it_says_so(accepted: list[str], takes: bool) -> None:
    assert accepts_gzip(asking(*accepted)) is takes


@pytest.mark.parametrize("size", [MIN_COMPRESSED_BYTES, MIN_THREAD_BYTES])
async def test_a_large_answer_is_compressed(size: int) -> None:
    content = b"abcdefgh" * (size // 8)
    response = await compressed_response(content, asking("gzip"), "application/json", {"ETag": "e"})
    assert gzip.decompress(response.body) == content
    assert response.headers["content-encoding"] == "gzip"
    assert response.headers["content-length"] == str(len(response.body))
    assert response.headers["vary"] == "Accept-Encoding"
    assert response.headers["etag"] == "e"


async def test_an_answer_for_who_does_not_ask_is_as_it_was_and_tells_caches_that_it_varies() -> None:
    content = b"x" * MIN_COMPRESSED_BYTES
    response = await compressed_response(content, asking(), "application/json")
    assert response.body == content
    assert "content-encoding" not in response.headers
    assert response.headers["vary"] == "Accept-Encoding"


async def test_a_small_answer_is_never_compressed() -> None:
    response = await compressed_response(b"x" * (MIN_COMPRESSED_BYTES - 1), asking("gzip"), "application/json")
    assert response.headers.items() == [
        ("content-length", str(MIN_COMPRESSED_BYTES - 1)),
        ("content-type", "application/json"),
    ]


async def test_a_very_large_answer_is_compressed_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    used = []

    def compress(*_: object, **__: object) -> bytes:
        used.append(threading.current_thread())
        return b""

    monkeypatch.setattr(compression.gzip, "compress", compress)
    for size in (MIN_COMPRESSED_BYTES, MIN_THREAD_BYTES):
        await compressed_response(bytes(size), asking("gzip"), "application/json")
    assert [thread is threading.current_thread() for thread in used] == [True, False]
