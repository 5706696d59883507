"""HTTP/1.1 over one connection, with single bytes in the hands of the caller.

A usual client hides what matters here: where a connection was cut, and whether bytes come that nobody asked for.
"""

import asyncio
import json
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import httptools

READ_BYTES = 1 << 16
JSON = "application/json"
RESET = struct.pack("ii", 1, 0)
"""The linger option by which a closed connection is reset."""


class Lost(Exception):  # noqa: N818
    """The connection ended before the answer was whole."""


class Surplus(Exception):  # noqa: N818
    """Bytes came that belong to no request."""


@dataclass
class Answer:
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0]

    @property
    def keeps_alive(self) -> bool:
        return self.headers.get("connection", "").lower() != "close"

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Message:
    """A request as bytes."""

    method: str
    path: str
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()

    def data(self, request_id: str) -> bytes:
        lines = [f"{self.method} {self.path} HTTP/1.1", "host: soak", f"x-request-id: {request_id}"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        if self.body or self.method in ("POST", "PUT", "PATCH"):
            lines.append(f"content-length: {len(self.body)}")
        return "\r\n".join([*lines, "", ""]).encode() + self.body


def json_message(method: str, path: str, body: object, **headers: str) -> Message:
    given = tuple((name.replace("_", "-"), value) for name, value in {"content-type": JSON, **headers}.items())
    return Message(method, path, json.dumps(body).encode(), given)


def form_message(path: str, file_name: str, content: bytes, **fields: str) -> Message:
    """A form with a file."""
    boundary = "soak-boundary"
    parts = [
        f'--{boundary}\r\ncontent-disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, value in fields.items()
    ]
    head = f'--{boundary}\r\ncontent-disposition: form-data; name="file"; filename="{file_name}"\r\n\r\n'
    parts += [head.encode(), content, f"\r\n--{boundary}--\r\n".encode()]
    return Message("POST", path, b"".join(parts), (("content-type", f"multipart/form-data; boundary={boundary}"),))


class Connection:
    """One connection, which takes one request at a time."""

    def __init__(self, host: str, port: int) -> None:
        self._address = host, port
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def begin(self) -> None:
        """Open the connection, unless it is open. Raises Lost."""
        if self._reader is None or self._reader.at_eof():
            await self.close()
            try:
                self._reader, self._writer = await asyncio.open_connection(*self._address)
            except OSError:
                raise Lost("no connection") from None

    async def send(self, data: bytes) -> None:
        """Send bytes. If the connection breaks, what was answered before is still to be read."""
        assert self._writer is not None, "the connection was opened"
        with suppress(OSError):
            self._writer.write(data)
            await self._writer.drain()

    async def answer(self, first_event: asyncio.Event | None = None) -> Answer:
        """Read one whole answer.

        Args:
            first_event: is set when a part of the body has come.

        Raises:
            Lost: the connection ended before.
            Surplus: more came than one answer.
        """
        assert self._reader is not None
        receiver = _Receiver(first_event)
        parser = httptools.HttpResponseParser(receiver)
        while not receiver.is_complete:
            try:
                received = await self._reader.read(READ_BYTES)
            except OSError:  # what came before the connection was reset is still there
                received = bytes(self._reader._buffer)  # type: ignore[attr-defined]
                self._reader._buffer.clear()  # type: ignore[attr-defined]
            if not received:
                await self.close()
                raise Lost(f"after {len(receiver.body)} bytes of a body with status {receiver.answer.status}")
            parser.feed_data(received)
        if receiver.n_answers > 1 or self._reader._buffer:  # type: ignore[attr-defined]
            raise Surplus(repr(receiver.answer.body[:200]))
        receiver.answer.status = parser.get_status_code()
        receiver.answer.body = bytes(receiver.body)
        if not receiver.answer.keeps_alive:
            await self.close()
        return receiver.answer

    def half_close(self) -> None:
        if self._writer is not None and not self._writer.is_closing():
            with suppress(OSError):  # the other end may have closed it
                self._writer.write_eof()

    def reset(self) -> None:
        """End the connection at once, as a machine does whose process has died."""
        if self._writer is not None:
            own: socket.socket | None = self._writer.get_extra_info("socket")
            if own is not None and own.fileno() >= 0:
                own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            self._writer.transport.abort()
        self._reader = self._writer = None

    def drop(self) -> None:
        """End the connection as usual, whatever may still come."""
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None

    async def close(self) -> None:
        """Raises Surplus: bytes came that nobody asked for."""
        reader, writer, self._reader, self._writer = self._reader, self._writer, None, None
        if writer is not None:
            writer.close()
        if reader is not None and reader._buffer:  # type: ignore[attr-defined]
            raise Surplus(repr(bytes(reader._buffer)[:200]))  # type: ignore[attr-defined]


class _Receiver:
    """What httptools calls."""

    def __init__(self, first_event: asyncio.Event | None) -> None:
        self.answer = Answer()
        self.body = bytearray()
        self.is_complete = False
        self.n_answers = 0
        self._first_event = first_event

    def on_message_begin(self) -> None:
        self.n_answers += 1

    def on_header(self, name: bytes, value: bytes) -> None:
        self.answer.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        self.body += body
        if self._first_event is not None:
            self._first_event.set()

    def on_message_complete(self) -> None:
        self.is_complete = True


async def ask(host: str, port: int, message: Message, request_id: str = "soak") -> Answer:
    """Send one request over a connection of its own. Raises Lost."""
    connection = Connection(host, port)
    try:
        await connection.begin()
        await connection.send(message.data(request_id))
        return await connection.answer()
    finally:
        await connection.close()
