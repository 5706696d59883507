"""The sockets on which the service listens."""

import errno
import logging
import socket

from service import __version__
from service.base.errors import StartRefused

logger = logging.getLogger(__name__)

EVERYWHERE = "*"
"""The host that means every IPv4 and IPv6 address of this machine. Each family has a socket. One IPv6 socket for both
would show IPv4 clients in another form (::ffff:10.0.0.1), which proxies and limits would not know."""
BACKLOG = 2048
"""Connections that may wait to be accepted, for example while the service imports its libraries."""


def listen(host: str, port: int, shared: bool = False) -> list[socket.socket]:
    """Return a socket for every address of a host. If several processes share the port (SO_REUSEPORT), each listens on
    sockets of its own, and these only hold the port. Raises StartRefused: another program uses the port, or the address
    is not one of this machine."""
    sockets: list[socket.socket] = []
    for family, address in _addresses(host, port):
        try:
            if shared and port and not sockets:
                _bound(family, address, port, shared=False).close()  # binding a shared port would not fail
            bound = _bound(family, address, port, shared)
            if not shared:
                bound.listen(BACKLOG)
        except OSError as error:
            raise StartRefused(f"Cannot listen on {_url_host(address)}:{port}: {error.strerror}") from error
        sockets.append(bound)
        port = bound.getsockname()[1]
    if host == EVERYWHERE and len(sockets) == 1:
        logger.info("this machine has no IPv6")
    return sockets


def share(host: str, port: int) -> list[socket.socket]:
    """Return the sockets of one of several processes that share a port; another process holds the port."""
    return [_bound(family, address, port, shared=True) for family, address in _addresses(host, port)]


def announce_addresses(sockets: list[socket.socket]) -> None:
    """Log where the service listens."""
    addresses = ", ".join(f"http://{address_of(bound)}" for bound in sockets)
    logger.info("attend %s running on %s", __version__, addresses)


def address_of(bound: socket.socket) -> str:
    """Return the address of a socket as a URL has it."""
    host, port, *_ = bound.getsockname()
    return f"{_url_host(host)}:{port}"


def _addresses(host: str, port: int) -> list[tuple[int, str]]:
    if host == EVERYWHERE:
        of_ipv6 = [(socket.AF_INET6, "::")] if _has_ipv6() else []
        return [(socket.AF_INET, "0.0.0.0"), *of_ipv6]  # noqa: S104  this host asks for it
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise StartRefused(
            f"ATTEND_HOST is {host!r}, which is not an address of this machine: {error.strerror}"
        ) from error
    return list(dict.fromkeys((family, str(address[0])) for family, _, _, _, address in addresses))


def _has_ipv6() -> bool:
    try:
        _bound(socket.AF_INET6, "::", 0, shared=False).close()
    except OSError as error:
        return error.errno not in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)
    return True


def _bound(family: int, address: str, port: int, shared: bool) -> socket.socket:
    """Raises OSError: the address cannot be bound."""
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


def _url_host(address: str) -> str:
    return f"[{address}]" if ":" in address else address
