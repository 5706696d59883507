"""The command that containers ask: `python -m service.server.health`."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx
import pytest

from tests.running_service import ROOT

pytestmark = pytest.mark.process

NO_PROXY_ANSWERS = {"http_proxy": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}


def ask(host: str, port: int | None) -> "subprocess.CompletedProcess[str]":
    """The command, in the environment of a container whose Docker was given a proxy."""
    settings = {"ATTEND_HOST": host, "ATTEND_PORT": str(port)}
    return subprocess.run(
        [sys.executable, "-m", "service.server.health"],
        cwd=ROOT,
        env=os.environ | NO_PROXY_ANSWERS | settings,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0"])
def test_a_ready_service_is_healthy_on_whatever_port_and_past_any_proxy(server: httpx.Client, host: str) -> None:
    asked = ask(host, server.base_url.port)
    assert (asked.returncode, asked.stderr) == (0, "")


def test_every_ipv6_interface_is_asked_by_ipv6() -> None:
    with answering(200, "::1") as port:
        assert ask("::", port).returncode == 0


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_where_both_families_are_listened_on_one_that_answers_is_enough(address: str) -> None:
    with answering(200, address) as port:
        assert ask("*", port).returncode == 0


def test_a_service_that_is_not_ready_is_not_healthy_and_its_reason_is_said() -> None:
    with answering(503, "127.0.0.1") as port:
        asked = ask("127.0.0.1", port)
    assert (asked.returncode, asked.stderr) == (1, "not ready: a reason\n")


def test_a_service_that_does_not_listen_is_not_healthy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    asked = ask("127.0.0.1", port)
    assert asked.returncode == 1
    assert f"127.0.0.1 does not answer on port {port}" in asked.stderr


@contextmanager
def answering(status: int, address: str) -> Iterator[int]:
    """The port of a server that has one answer for everything."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(b"a reason")

        def log_message(self, *arguments: object) -> None:
            pass

    class Server(HTTPServer):
        address_family = socket.AF_INET6 if ":" in address else socket.AF_INET

    try:
        server = Server((address, 0), Handler)
    except OSError:
        pytest.skip(f"this machine has no {address}")
    with server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()
