"""Regular expressions of clients: of RE2's kind, which takes linear time whatever it is given."""

import re2

MAX_MEMORY = 1 << 20
"""Bytes for one of them."""


def compiled(pattern: str) -> "re2._Regexp[str]":
    """What finds a pattern in texts.

    Raises:
        ValueError: it is no such regular expression, or one that needs too much memory.
    """
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_MEMORY
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error)
        raise ValueError(f"must be an RE2 regular expression: {reason}") from None
