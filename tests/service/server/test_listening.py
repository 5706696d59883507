import errno
import os
import socket
from typing import Any

import pytest

from service.base.errors import StartRefused
from service.server.listening import address_of, listen, share


def reachable(address: str, port: int) -> bool:
    try:
        with socket.create_connection((address, port), timeout=5):
            return True
    except OSError:
        return False


@pytest.mark.parametrize(
    ("host", "reached"),
    [
        ("*", {"127.0.0.1", "::1"}),
        ("0.0.0.0", {"127.0.0.1"}),
        ("::", {"::1"}),
        ("127.0.0.1", {"127.0.0.1"}),
        ("::1", {"::1"}),
    ],
)
def test_a_host_is_reached_at_its_addresses_alone(host: str, reached: set[str]) -> None:
    if not has_ipv6():
        pytest.skip("this machine has no IPv6")
    sockets = listen(host, 0)
    port = sockets[0].getsockname()[1]
    assert {address for address in ("127.0.0.1", "::1") if reachable(address, port)} == reached
    assert {address_of(bound).rsplit(":", 1)[1] for bound in sockets} == {str(port)}
    for bound in sockets:
        bound.close()


@pytest.mark.parametrize("reason", [errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL])
def test_without_ipv6_everywhere_is_ipv4_for_each_server(monkeypatch: pytest.MonkeyPatch, reason: int) -> None:
    bind = socket.socket.bind

    def bind_ipv4(bound: socket.socket, address: Any) -> None:
        if bound.family == socket.AF_INET6:
            raise OSError(reason, os.strerror(reason))
        bind(bound, address)

    monkeypatch.setattr(socket.socket, "bind", bind_ipv4)
    held = listen("*", 0, shared=True)
    server = share("*", held[0].getsockname()[1])
    assert [bound.family for bound in (*held, *server)] == [socket.AF_INET] * 2
    for bound in (*held, *server):
        bound.close()


def has_ipv6() -> bool:
    try:
        (bound,) = listen("::1", 0)
    except StartRefused:
        return False
    bound.close()
    return True


@pytest.mark.parametrize("shared", [False, True])
def test_a_port_that_is_taken_is_refused(shared: bool) -> None:
    (taken,) = listen("127.0.0.1", 0)
    port = taken.getsockname()[1]
    with pytest.raises(StartRefused, match=rf"127\.0\.0\.1:{port}: Address already in use"):
        listen("127.0.0.1", port, shared)
    taken.close()


def test_a_port_is_held_for_others_that_share_it() -> None:
    (held,) = listen("127.0.0.1", 0, shared=True)
    port = held.getsockname()[1]
    assert not reachable("127.0.0.1", port), "whoever holds it does not listen"
    servers = [share("127.0.0.1", port)[0] for _ in range(2)]
    for server in servers:
        server.listen()
    assert reachable("127.0.0.1", port)
    for bound in (held, *servers):
        bound.close()


def test_a_host_that_is_none_is_refused() -> None:
    with pytest.raises(StartRefused, match="ATTEND_HOST is 'no such host'"):
        listen("no such host", 0)
