"""Regular expressions of clients, run by RE2, which takes linear time for every pattern and text."""

import re2

MAX_MEMORY = 1 << 20
"""Most memory of one compiled pattern, in bytes."""


def compiled(pattern: str) -> "re2._Regexp[str]":
    """Compile a pattern. Raises ValueError: it is not a regular expression of RE2, or needs too much memory."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_MEMORY
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error)
        raise ValueError(f"must be an RE2 regular expression: {reason}") from None
