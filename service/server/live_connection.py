"""A connection that has become a WebSocket: uvicorn's protocol, with limits.

Each side may be slow: uvicorn reads on only when the application has taken a message, and writes only while the client
reads. What is added here is that neither control frames nor a message without end take more memory.
"""

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.websockets.wsproto_impl import WSProtocol
from wsproto.events import BytesMessage, Ping, TextMessage
from wsproto.utilities import ProtocolError

from service.server.send_buffer import SendProgress

if TYPE_CHECKING:
    from service.server.connections import Connections


class LiveConnection(WSProtocol):
    """The WebSocket of one client. A message over `max_message_bytes` is handed on as soon as it is too long; the
    application refuses it."""

    def __init__(self, connections: "Connections", max_message_bytes: int, **uvicorn_arguments: Any) -> None:
        super().__init__(**uvicorn_arguments)
        self._all = connections
        self._max_message_bytes = max_message_bytes
        self._sending = SendProgress()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if not self._all.admit(self):
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._all.forget(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        try:
            super().data_received(data)
        except ProtocolError:  # a frame that must not come now
            self.transport.abort()

    def handle_message(self, event: TextMessage | BytesMessage) -> None:
        if self.buffer.length + len(event.data) > self._max_message_bytes:
            event = replace(event, message_finished=True)
        super().handle_message(event)

    def handle_ping(self, event: Ping) -> None:
        if self.writable.is_set():  # a client that does not read gets no more answers
            super().handle_ping(event)

    def check_timeouts(self, now: float) -> None:
        """Close the connection if its client takes nothing of what is sent."""
        if self._sending.stuck_s(self.transport, now) >= self._all.send_timeout_s:
            self._all.count_closed("send_timeout")
            self.transport.abort()
