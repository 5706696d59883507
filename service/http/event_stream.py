"""Streamed answers: each piece is sent as soon as it is ready, as a server-sent event or a line of JSON."""

import re
from collections.abc import AsyncGenerator

from fastapi import Request, Response
from pydantic import BaseModel
from starlette.types import Receive, Scope, Send

from service.base.errors import RequestError, unexpected
from service.http.problems import refusal
from service.schemas.answers import StreamedPiece

EVENTS, LINES, JSON = "text/event-stream", "application/x-ndjson", "application/json"
QUALITY = re.compile(r"\bq\s*=\s*(\d(?:\.\d*)?)")
LINE_ENDS = str.maketrans({character: f"\\u{ord(character):04x}" for character in "\x85\u2028\u2029"})
"""Characters that are escaped: JSON allows them, but some clients end a line there."""


def accepted_stream(request: Request) -> str | None:
    """Return the media type of the stream that a client accepts; None if it accepts none, or prefers JSON."""
    header = ",".join(request.headers.getlist("accept")).lower()
    if EVENTS not in header and LINES not in header:
        return None
    accepted: dict[str, float] = {}
    for item in header.split(","):
        media_type, _, parameters = item.partition(";")
        quality = QUALITY.search(parameters)
        accepted[media_type.strip()] = float(quality[1]) if quality else 1
    best = max(EVENTS, LINES, JSON, key=lambda media_type: accepted.get(media_type, 0))
    return best if best != JSON and accepted.get(best) else None


class EventStream(Response):
    """A stream of pieces, and then the whole answer. An error after the first piece is the last event.

    Args:
        first: the first piece. It is made before the stream begins, so that an earlier error has its own status.
        further: the later pieces, and the answer.
    """

    def __init__(
        self, first: BaseModel, further: AsyncGenerator[BaseModel, None], media_type: str, request: Request
    ) -> None:
        # Without these headers, proxies would collect pieces before sending them.
        super().__init__(headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}, media_type=media_type)
        del self.headers["content-length"]
        self._first = first
        self._further = further
        self._request = request

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            await self._send_piece(send, self._first)
            async for piece in self._further:
                await self._send_piece(send, piece)
        except RequestError as error:
            await self._send(send, "error", bytes(refusal(self._request, error).body))
        except Exception:  # the middleware logs it and closes the connection
            failed = unexpected(self._request.state.request_id)
            await self._send(send, "error", bytes(refusal(self._request, failed).body))
            raise
        finally:
            await self._further.aclose()
        await send({"type": "http.response.body", "body": b""})

    async def _send_piece(self, send: Send, piece: BaseModel) -> None:
        name = "piece" if isinstance(piece, StreamedPiece) else "answer"
        await self._send(send, name, piece.model_dump_json(exclude_none=True).translate(LINE_ENDS).encode())

    async def _send(self, send: Send, name: str, content: bytes) -> None:
        is_event = self.media_type == EVENTS
        body = b"event: %s\ndata: %s\n\n" % (name.encode(), content) if is_event else content + b"\n"
        await send({"type": "http.response.body", "body": body, "more_body": True})
