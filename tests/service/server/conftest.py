"""A real server that tells what it was asked, for tests of bytes on a connection."""

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from service.base.metrics import Metrics
from service.server.connections import Connections
from tests.service.fakes import PATIENCE_S


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    request = Request(scope, receive)
    told = {"path": request.url.path, "body": (await request.body()).decode(), "a": request.headers.getlist("a")}
    await JSONResponse(told)(scope, receive, send)


@pytest.fixture(scope="module")
def address() -> Iterator[tuple[str, int]]:
    listening = socket.create_server(("127.0.0.1", 0))
    connections = Connections(100, PATIENCE_S, PATIENCE_S, 10_000, Metrics())
    http: Any = connections.protocol
    config = uvicorn.Config(echo, http=http, ws="none", lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    yield listening.getsockname()
    server.should_exit = True
    thread.join()
