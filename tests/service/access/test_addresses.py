"""Which addresses are one client for the rate limit."""

from ipaddress import IPv4Address, IPv6Address, IPv6Network

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from service.access.addresses import client_at, trusted_hosts
from tests.service.conftest import Serve

PROXIES = "127.0.0.1, 10.0.0.0/8, ::ffff:192.0.2.7, 2001:db8:ffff::/48"
BODY = {"text": "the dog"}


@given(st.integers(0, 2**32 - 1).map(IPv4Address))
def test_an_address_of_ipv4_is_one_client_in_every_spelling(ip: IPv4Address) -> None:
    low, high = int(ip) % 2**16, int(ip) >> 16
    spellings = [f"::ffff:{ip}", f"::FFFF:{high:x}:{low:x}", f"0:0:0:0:0:ffff:{high:04X}:{low:04x}", f"64:ff9b::{ip}"]
    assert {client_at(spelling) for spelling in (str(ip), *spellings)} == {str(ip)}


@given(st.integers(2**125, 2**126 - 1), st.integers(0, 2**64 - 1), st.integers(0, 127))
def test_a_network_of_64_bits_is_one_client(address: int, host: int, bit: int) -> None:
    client = client_at(IPv6Address(address).exploded.upper())
    other = address ^ (1 << bit)
    assert client_at(str(IPv6Address(address >> 64 << 64 | host))) == client
    assert (client_at(str(IPv6Address(other))) == client) == (bit < 64)
    assert IPv6Address(address) in IPv6Network(client)


@pytest.mark.parametrize("text", ["unknown", "", "attend.example.org", "1.2.3", "::ffff:1.2.3.4.5", "_hidden"])
def test_a_text_that_is_no_address_is_a_client_as_it_is_written(text: str) -> None:
    assert client_at(text) == text


@pytest.mark.parametrize("zone", ["", "%eth0"])
def test_an_address_may_name_its_interface(zone: str) -> None:
    assert client_at(f"fe80::1{zone}") == "fe80::/64"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("first", "second", "is_one_client"),
    [
        ("1.2.3.4", "::ffff:1.2.3.4", True),
        ("1.2.3.4", "1.2.3.4:5678", True),
        ("1.2.3.4", "[::FFFF:102:304]:443", True),
        ("1.2.3.4", "9.9.9.9, 1.2.3.4", True),
        ("1.2.3.4", "1.2.3.4, ::ffff:10.1.2.3", True),
        ("1.2.3.4", "::ffff:1.2.3.4, 192.0.2.7, [2001:db8:ffff::1]:80, 10.0.0.1", True),
        ("1.2.3.4", "1.2.3.5", False),
        ("1.2.3.4, 5.6.7.8", "1.2.3.4", False),
        ("2001:db8:1:2::1", "[2001:DB8:1:2:ffff::9]:443", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
    ],
)
async def test_a_client_behind_proxies_is_known_in_every_spelling(
    serve: Serve, first: str, second: str, is_one_client: bool
) -> None:
    async with serve(rate_limit="1/hour") as client:
        app = ProxyHeadersMiddleware(client._transport.app, trusted_hosts(PROXIES))  # type: ignore[attr-defined]
        transport = httpx.ASGITransport(app)  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url="http://attend") as proxied:
            answers = [
                await proxied.post("/classify", json=BODY, headers={"X-Forwarded-For": forwarded})
                for forwarded in (first, second)
            ]
    assert [answer.status_code for answer in answers] == [200, 429 if is_one_client else 200]


@pytest.mark.anyio
async def test_a_client_without_a_proxy_is_known_in_every_spelling(serve: Serve) -> None:
    addresses = ["2001:db8:1:2::1", "2001:DB8:1:2:3::4", "1.2.3.4", "::ffff:1.2.3.4", "2001:db8:1:3::1"]
    async with serve(rate_limit="1/hour") as client:
        app, statuses = client._transport.app, []  # type: ignore[attr-defined]
        for address in addresses:
            transport = httpx.ASGITransport(app, client=(address, 1234))
            async with httpx.AsyncClient(transport=transport, base_url="http://attend") as direct:
                headers = {"X-Forwarded-For": "5.6.7.8"}
                statuses.append((await direct.post("/classify", json=BODY, headers=headers)).status_code)
    assert statuses == [200, 429, 200, 429, 200]


def test_proxies_are_trusted_as_they_are_listed() -> None:
    assert [trusted_hosts(proxies) for proxies in (None, "*")] == [[], ["*"]]
    trusted = ProxyHeadersMiddleware(None, trusted_hosts(PROXIES)).trusted_hosts  # type: ignore[arg-type]
    inside = ["127.0.0.1", "::ffff:127.0.0.1", "10.9.8.7", "::ffff:a09:807", "192.0.2.7", "2001:db8:ffff:1::"]
    outside = ["127.0.0.2", "::ffff:127.0.0.2", "11.0.0.1", "::ffff:11.0.0.1", "192.0.2.8", "2001:db8:fffe::", "::1"]
    assert [address for address in inside + outside if address in trusted] == inside
