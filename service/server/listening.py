"""Where the service listens."""

import errno
import logging
import socket

from service.base.errors import StartRefused

logger = logging.getLogger(__name__)

EVERYWHERE = "*"
"""As a host: every address of this machine, of IPv4 and of IPv6. One socket of IPv6 for both would tell the addresses
of IPv4 clients in another form, which proxies and limits would not know."""

BACKLOG = 2048
"""Connections that wait to be accepted, such as while the service still imports its libraries."""


def listen(host: str, port: int, shared: bool = False) -> list[socket.socket]:
    """Sockets at every address that a host has.

    Args:
        shared: among several processes (SO_REUSEPORT), of which each listens for itself: what is returned does not
            listen yet.

    Raises:
        StartRefused: somebody else listens there, or there is no such address.
    """
    sockets: list[socket.socket] = []
    for family, address in _addresses(host, port):
        try:
            if shared and port and not sockets:
                _bound(family, address, port, shared=False).close()  # a port that is shared would not tell
            bound = _bound(family, address, port, shared)
            if not shared:
                bound.listen(BACKLOG)
        except OSError as error:
            raise StartRefused(f"Cannot listen on {_shown(address)}:{port}: {error.strerror}") from error
        sockets.append(bound)
        port = bound.getsockname()[1]
    if host == EVERYWHERE and len(sockets) == 1:
        logger.info("there is no IPv6 here")
    return sockets


def share(host: str, port: int) -> list[socket.socket]:
    """Sockets of one of several processes, at a port which another one holds for all of them."""
    return [_bound(family, address, port, shared=True) for family, address in _addresses(host, port)]


def address_of(bound: socket.socket) -> str:
    """As in an URL."""
    host, port, *_ = bound.getsockname()
    return f"{_shown(host)}:{port}"


def _addresses(host: str, port: int) -> list[tuple[int, str]]:
    if host == EVERYWHERE:
        of_ipv6 = [(socket.AF_INET6, "::")] if _has_ipv6() else []
        return [(socket.AF_INET, "0.0.0.0"), *of_ipv6]  # noqa: S104  what it asks for
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise StartRefused(
            f"ATTEND_HOST is {host!r}, which is not an address of this machine: {error.strerror}"
        ) from error
    return list(dict.fromkeys((family, str(address[0])) for family, _, _, _, address in found))


def _has_ipv6() -> bool:
    try:
        _bound(socket.AF_INET6, "::", 0, shared=False).close()
    except OSError as error:
        return error.errno not in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)
    return True


def _bound(family: int, address: str, port: int, shared: bool) -> socket.socket:
    """Raises OSError: it cannot be."""
    bound = socket.socket(family)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind((address, port))
    except OSError:
        bound.close()
        raise
    return bound


def _shown(address: str) -> str:
    return f"[{address}]" if ":" in address else address
