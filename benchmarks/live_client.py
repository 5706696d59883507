"""A client of WebSockets, for the benchmark of live translation and for tests."""

import asyncio
import json
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, BytesMessage, CloseConnection, Event, Ping, Request, TextMessage

LIVE_PATH = "/translate/live"


class RefusedError(Exception):
    """The server did not accept the WebSocket."""


class LiveClient:
    """One WebSocket. Messages are objects of JSON.

    Attributes:
        n_sent: messages that were sent.
        close: the code and the reason with which the server has closed; None if it has not.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._connection = WSConnection(ConnectionType.CLIENT)
        self.close: tuple[int, str | None] | None = None
        self.n_sent = 0

    @classmethod
    async def open(cls, url: str, headers: Iterable[tuple[bytes, bytes]] = ()) -> "LiveClient":
        """Open a WebSocket of the service at this address. Raises RefusedError: it was not accepted."""
        host, port = urlsplit(url).hostname, urlsplit(url).port
        client = cls(*await asyncio.open_connection(host, port))
        client._send(Request(host=f"{host}:{port}", target=LIVE_PATH, extra_headers=list(headers)))
        if not isinstance(answer := await client._event(), AcceptConnection):
            client.leave()
            raise RefusedError(str(answer))
        return client

    def send(self, **message: Any) -> None:
        """Send a message, and do not wait."""
        self.send_data(json.dumps(message))

    def send_data(self, data: str | bytes) -> None:
        """Send a message of text, or a binary one."""
        self.n_sent += 1
        self._send(TextMessage(data=data) if isinstance(data, str) else BytesMessage(data=data))

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message; None if the server has closed."""
        text = ""
        while isinstance(event := await self._event(), TextMessage):
            text += event.data
            if event.message_finished:
                answer: dict[str, Any] = json.loads(text)
                return answer
        if isinstance(event, CloseConnection):
            self.close = int(event.code), event.reason
        return None

    def leave(self) -> None:
        """Close the connection."""
        self._writer.close()

    async def _event(self) -> Event:
        while True:
            for event in self._connection.events():
                if not isinstance(event, Ping):
                    return event
                self._send(event.response())
            self._connection.receive_data(await self._reader.read(65_536) or None)

    def _send(self, event: Event) -> None:
        self._writer.write(self._connection.send(event))
