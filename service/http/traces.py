"""The trace of a request, which its header `traceparent` names (W3C Trace Context, level 1)."""

import re
from collections.abc import Iterable

TRACEPARENT = re.compile(
    rb"(?P<version>(?!ff)[0-9a-f]{2})-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?P<rest>-[\x21-\x7e]{0,128})?"
)
TRACE_ID = slice(3, 35)
"""Place of the trace's id in a `traceparent`."""


def traceparent_of(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """Return the `traceparent` of a request; None without one, with several, or with one that the standard forbids."""
    given = [value.strip(b" \t") for name, value in headers if name == b"traceparent"]
    match = TRACEPARENT.fullmatch(given[0]) if len(given) == 1 else None
    if match is None or (match["version"] == b"00" and match["rest"] is not None):  # later versions may say more
        return None
    return match[0].decode()
