"""The server of a client, which the service calls when a batch is finished."""

import asyncio
import hashlib
import hmac
import json
from collections import defaultdict
from contextlib import suppress

SECRET = "of the soak"
HOST = "127.0.0.1"


class CalledServer:
    """Takes the calls of the service.

    Attributes:
        wrong: what is wrong with calls that came.
    """

    def __init__(self) -> None:
        self.wrong = list[str]()
        self._statuses = dict[str, str]()
        self._called = defaultdict[str, asyncio.Event](asyncio.Event)
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._take, HOST, 0)

    def stop(self) -> None:
        assert self._server is not None
        self._server.close()

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://{HOST}:{self._server.sockets[0].getsockname()[1]}/finished"

    async def status(self, job_id: str) -> str:
        """Wait for the call about a job, and return the status that it tells."""
        await self._called[job_id].wait()
        return self._statuses[job_id]

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):  # a killed server leaves: the call is made again
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            headers = dict(line.lower().split(": ", 1) for line in head.splitlines()[1:] if line)
            body = await reader.readexactly(int(headers["content-length"]))
            signed = f"{headers['x-attend-timestamp']}.".encode() + body
            expected = f"sha256={hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()}"
            if headers["x-attend-signature"] != expected:
                self.wrong.append(f"a call with a wrong signature: {body!r}")
            call = json.loads(body)
            self._statuses[call["id"]] = call["status"]
            self._called[call["id"]].set()
            writer.write(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
            await writer.drain()
        writer.close()
