"""Calls to the addresses that clients gave, once their documents are finished.

Only hosts that the operator names are called, without proxies, and no redirect is followed. A call carries a signature
of its time and body, and is made again with growing pauses until its answer says success.
"""

import asyncio
import hashlib
import hmac
import http.client
import json
import logging
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from urllib.parse import SplitResult, urlsplit

from service.base.errors import InvalidFields, NotStored
from service.base.settings import Settings
from service.jobs.job import Job
from service.jobs.store import DueCall, JobStore
from service.storage.database_threads import in_thread

logger = logging.getLogger(__name__)

TIMEOUT_S = 10.0
"""Seconds that one call may take."""
MAX_CALLS_AT_ONCE = 8
MAX_URL_CHARACTERS = 2_000
CONNECTIONS = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
DEFAULT_PORTS = {"http": 80, "https": 443}


class Callbacks:
    """The calls of one server, which shares them with other servers."""

    def __init__(self, store: JobStore, settings: Settings) -> None:
        self._store = store
        self._hosts = settings.callback_hosts
        self._secret = settings.secret("callback_secret") or ""
        self._calls: set[asyncio.Task[None]] = set()
        self._threads = ThreadPoolExecutor(MAX_CALLS_AT_ONCE, "callback")  # slow hosts hold up nothing else

    def check(self, url: str | None) -> None:
        """Raises InvalidFields: the address is not one that may be called."""
        if url is None:
            return
        try:
            parts = urlsplit(url)
            host, is_usable = (parts.hostname or "").lower(), parts.scheme in CONNECTIONS and parts.port != 0
        except ValueError:
            host, is_usable = "", False
        if not is_usable or not url.isascii() or not url.isprintable() or " " in url or len(url) > MAX_URL_CHARACTERS:
            message = f"must be an http or https address of at most {MAX_URL_CHARACTERS} ASCII characters"
            raise InvalidFields([(("callback_url",), message)])
        if parts.username is not None or host not in self._hosts:
            listed = ", ".join(self._hosts) or "none"
            raise InvalidFields([(("callback_url",), f"must be at a host of ATTEND_CALLBACK_HOSTS ({listed})")])

    async def begin_due(self) -> None:
        """Begin the calls that are due. Raises NotStored."""
        while self._hosts and len(self._calls) < MAX_CALLS_AT_ONCE:
            due = await in_thread(self._store.claim_call)
            if due is None:
                return
            task = asyncio.create_task(self._call(due))
            self._calls.add(task)
            task.add_done_callback(self._calls.discard)

    async def stop(self) -> None:
        """Stop. Calls that were not answered are made again later."""
        for task in self._calls:
            task.cancel()
        await asyncio.gather(*self._calls, return_exceptions=True)
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _call(self, due: DueCall) -> None:
        parts = urlsplit(due.url)
        if (parts.hostname or "").lower() not in self._hosts:  # it was one of them when the document was sent
            logger.warning("a callback for document %s is dropped: its host is not named any more", due.job.id)
            is_over = True
        else:
            is_over = await self._deliver(due, parts)
        if is_over:
            with suppress(NotStored):  # it comes twice then
                await in_thread(self._store.end_call, due.job.id)

    async def _deliver(self, due: DueCall, parts: SplitResult) -> bool:
        body = json.dumps(report_of(due.job), ensure_ascii=False).encode()
        port = parts.port or DEFAULT_PORTS[parts.scheme]
        connection = CONNECTIONS[parts.scheme](parts.hostname or "", port, timeout=TIMEOUT_S)
        call = partial(_post, connection, parts, body, signed_headers(body, self._secret))
        try:
            async with asyncio.timeout(TIMEOUT_S):
                status = await asyncio.get_running_loop().run_in_executor(self._threads, call)
        except (OSError, ValueError, http.client.HTTPException) as error:
            outcome = f"failed: {error or type(error).__name__}"
        else:
            if status // 100 == 2:
                return True
            outcome = f"was answered with {status}"
        finally:
            with suppress(OSError):
                if connection.sock is not None:
                    connection.sock.shutdown(socket.SHUT_RDWR)  # wakes the thread that reads it
        again = f"the next one follows in {due.pause_s:g} s" if due.pause_s else "it was the last one"
        logger.warning("a callback for document %s %s; %s", due.job.id, outcome, again)
        return False


def report_of(job: Job) -> dict[str, object]:
    """Return what a call tells. The key of a document is not part of it."""
    return {
        "id": job.id,
        "status": job.status,
        "source": job.source,
        "target": job.target,
        "characters": job.n_characters,
        "error": job.error,
        "code": job.code,
    }


def signed_headers(body: bytes, secret: str) -> dict[str, str]:
    """Return the headers of a call: the seconds since 1970, and an HMAC-SHA256 of these, a full stop and the body."""
    now = str(int(time.time()))
    digest = hmac.digest(secret.encode(), f"{now}.".encode() + body, hashlib.sha256).hex()
    return {
        "content-type": "application/json",
        "user-agent": "attend",
        "x-attend-timestamp": now,
        "x-attend-signature": f"sha256={digest}",
    }


def _post(connection: http.client.HTTPConnection, parts: SplitResult, body: bytes, headers: dict[str, str]) -> int:
    try:
        path = parts._replace(scheme="", netloc="", fragment="").geturl() or "/"
        connection.request("POST", path if path.startswith("/") else f"/{path}", body, headers)
        status: int = connection.getresponse().status
        return status
    finally:
        connection.close()
