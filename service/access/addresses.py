"""Addresses of clients and proxies. An address may be written in several ways, and a client of IPv6 has many."""

from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

MAPPED, TRANSLATED = IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96")
"""Networks of IPv6 that have every address of IPv4 in their last bits: RFC 4291 (2.5.5.2) and RFC 6052 (2.1)."""
CLIENT_BITS = 64
"""Bits of an IPv6 address that name a network, whose hosts choose the other bits themselves (RFC 4291, 2.5.1)."""


@lru_cache(1000)
def client_at(address: str) -> str:
    """Return the client that has an address: an IPv4 address, a network of IPv6, or a text that is no address."""
    try:
        ip = ip_address(address)
    except ValueError:
        return address
    if isinstance(ip, IPv6Address):
        if ip not in MAPPED and ip not in TRANSLATED:
            return str(IPv6Network((int(ip), CLIENT_BITS), strict=False))
        ip = IPv4Address(int(ip) % 2**32)
    return str(ip)


def trusted_hosts(proxies: str | None) -> list[str]:
    """Return the addresses and networks of a list. IPv4 also gets its forms in IPv6; * is any, None is none."""
    if proxies in (None, "*"):
        return [] if proxies is None else [proxies]
    networks = [ip_network(proxy.strip()) for proxy in proxies.split(",")]
    return [str(spelling) for network in networks for spelling in _spellings(network)]


def _spellings(network: IPv4Network | IPv6Network) -> list[IPv4Network | IPv6Network]:
    if isinstance(network, IPv4Network):
        mapped = int(MAPPED.network_address) + int(network.network_address)
        return [network, IPv6Network((mapped, MAPPED.prefixlen + network.prefixlen))]
    if network.subnet_of(MAPPED):
        return [network, IPv4Network((int(network.network_address) % 2**32, network.prefixlen - MAPPED.prefixlen))]
    return [network]
