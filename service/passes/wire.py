"""Messages between the processes of one service, over Unix sockets: a length, and a pickle.

A server sends a worker `("submit", number, engine, sequences, deadline)` and `("cancel", number)`. A worker sends a
server `("answer", number, answer or error)` and `("report", states, counts)`, with the states of the engines that have
changed, and with what the engines did since the last report. Sequences, searches and answers are sent as tuples, which
take a tenth of the time of objects.
"""

import asyncio
import pickle
import socket
import struct
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from operator import attrgetter
from typing import Any

from service.engine.search import Search

READ_BYTES = 1 << 18
"""Most bytes that one read of a socket returns."""
_LENGTH = struct.Struct("!Q")

fields_of = attrgetter("source_ids", "n_rows", "n_target", "background", "accepted", "client")
"""Returns the fields from which a worker makes the same `Sequence`, without the output."""


def plain(output: Any) -> Any:
    """Return an output as it is sent."""
    return output.values() if isinstance(output, Search) else output


def output_of(sent: Any) -> Any:
    """Return the output that was sent so."""
    return Search.of(sent) if isinstance(sent, tuple) else sent


def packed(*content: Any) -> bytes:
    """Return a message as bytes."""
    body = pickle.dumps(content, pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(body)) + body


class Unpacker:
    """Splits the bytes that a socket receives into messages; a read may end anywhere in a message."""

    def __init__(self) -> None:
        self._received = bytearray()

    def feed(self, received: bytes) -> Iterator[tuple[Any, ...]]:
        """Yield the messages that these bytes complete."""
        self._received += received
        while len(self._received) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._received)
            end = _LENGTH.size + length
            if len(self._received) < end:
                return
            body = bytes(self._received[_LENGTH.size : end])
            del self._received[:end]
            yield pickle.loads(body)  # noqa: S301  sent by a process of this service


def messages_of(connection: socket.socket) -> Iterator[tuple[Any, ...]]:
    """Yield each message, waiting for it, until the other end has closed. Raises OSError: the connection is broken, or
    its timeout has passed."""
    unpacker = Unpacker()
    while received := connection.recv(READ_BYTES):
        yield from unpacker.feed(received)


async def read_messages(incoming: asyncio.StreamReader) -> AsyncIterator[tuple[Any, ...]]:
    """Yield each message, waiting for it, until the other end has closed or the connection is broken."""
    unpacker = Unpacker()
    with suppress(OSError):
        while received := await incoming.read(READ_BYTES):
            for message in unpacker.feed(received):
                yield message


class Receiver(asyncio.Protocol):
    """Takes each message in the event loop as soon as it has arrived; a task that reads messages would be woken first.
    `take` gets the contents of a message. `ended` is done when the other end has closed or the connection is broken;
    then it raises what reading a message raised."""

    def __init__(self, take: Callable[..., None]) -> None:
        self._take = take
        self._unpacker = Unpacker()
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        try:
            for content in self._unpacker.feed(data):
                self._take(*content)
        except Exception as error:
            if not self.ended.done():
                self.ended.set_exception(error)

    def connection_lost(self, _error: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_result(None)
