"""Sends the head of an answer together with the beginning of its body.

uvicorn writes them one after the other. Each write is a system call that may wake the client, which then finds half an
answer.
"""

import asyncio

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

MAX_JOINED_BYTES = 65_536
"""Copying a longer body takes longer than a write."""


class JoinedWrite:
    """The transport of one answer. It keeps the head until the body begins or the answer ends. `cycle` is the request
    that is answered, `transport` that of the connection."""

    def __init__(self, cycle: RequestResponseCycle, transport: asyncio.Transport) -> None:
        self._cycle = cycle
        self._transport = transport
        self._head: bytes | None = None
        """The head while it waits; empty once it was sent."""

    def write(self, data: bytes) -> None:
        if self._head is None and self._cycle.response_started:  # before that, it is 100 Continue
            self._head = data
        elif self._head and len(data) <= MAX_JOINED_BYTES:
            head, self._head = self._head, b""
            self._transport.write(head + data)
        else:
            self.flush()
            self._transport.write(data)

    def flush(self) -> None:
        """Send the head if the answer has no body."""
        if self._head:
            head, self._head = self._head, b""
            self._transport.write(head)

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def close(self) -> None:
        self.flush()
        self._transport.close()
