"""Python objects as messages on a stream socket: a length, then a pickle."""

import pickle
import struct
from collections.abc import Iterator
from typing import Any

READ_BYTES = 1 << 18
"""How much is asked of a socket at a time."""

_LENGTH = struct.Struct("!Q")


def packed(*content: Any) -> bytes:
    """One message."""
    body = pickle.dumps(content, pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(body)) + body


class Unpacker:
    """Finds the messages in what a socket gives, which may end anywhere."""

    def __init__(self) -> None:
        self._received = bytearray()

    def feed(self, received: bytes) -> Iterator[tuple[Any, ...]]:
        """The messages that are complete with these bytes."""
        self._received += received
        while len(self._received) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._received)
            end = _LENGTH.size + length
            if len(self._received) < end:
                return
            body = bytes(self._received[_LENGTH.size : end])
            del self._received[:end]
            yield pickle.loads(body)  # noqa: S301  of a process that the server began
