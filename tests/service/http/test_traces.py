"""Which headers of a request name its trace."""

import pytest

from service.http.traces import TRACE_ID, traceparent_of

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
GOOD = f"00-{TRACE}-{PARENT}-01"


@pytest.mark.parametrize("value", [GOOD, f"00-{TRACE}-{PARENT}-fe", f"cc-{TRACE}-{PARENT}-01-more", f" {GOOD}\t"])
def test_a_trace_that_the_standard_allows_is_found(value: str) -> None:
    found = traceparent_of([(b"host", b"attend"), (b"traceparent", value.encode())])
    assert found == value.strip()
    assert found[TRACE_ID] == TRACE


@pytest.mark.parametrize(
    "value",
    [
        "",
        f"ff-{TRACE}-{PARENT}-01",
        f"ff-{TRACE}-{PARENT}-01-more",
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        GOOD.upper(),
        f"0-{TRACE}-{PARENT}-01",
        f"00-{TRACE[1:]}-{PARENT}-01",
        f"00-{TRACE}0-{PARENT}-01",
        f"00-{TRACE}-{PARENT}0-01",
        f"00-{TRACE}-{PARENT}-1",
        f"00-{TRACE}-{PARENT}",
        f"00-{TRACE.replace('a', 'g')}-{PARENT}-01",
        GOOD.replace("-", "_"),
        f"{GOOD}-",
        f"{GOOD}-more",
        f"cc-{TRACE}-{PARENT}-01.more",
        f"{GOOD},{GOOD}",
        f"{GOOD}\n",
    ],
)
def test_a_trace_that_the_standard_forbids_is_none(value: str) -> None:
    assert traceparent_of([(b"traceparent", value.encode())]) is None


def test_of_two_traces_neither_is_taken() -> None:
    assert traceparent_of([(b"traceparent", GOOD.encode())] * 2) is None
