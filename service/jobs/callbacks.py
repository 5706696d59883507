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
import time
from contextlib import suppress
from urllib.parse import urlsplit

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


class Callbacks:
    """The calls of one server, which shares them with other servers."""

    def __init__(self, store: JobStore, settings: Settings) -> None:
        self._store = store
        self._hosts = settings.callback_hosts
        self._secret = settings.secret("callback_secret") or ""
        self._calls: set[asyncio.Task[None]] = set()

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

    async def _call(self, due: DueCall) -> None:
        body = json.dumps(report_of(due.job), ensure_ascii=False).encode()
        try:
            status = await asyncio.to_thread(_post, due.url, body, signed_headers(body, self._secret))
            outcome, is_delivered = f"was answered with {status}", status // 100 == 2
        except (OSError, http.client.HTTPException) as error:
            outcome, is_delivered = f"failed: {error}", False
        if is_delivered:
            with suppress(NotStored):  # it comes twice then
                await in_thread(self._store.end_call, due.job.id)
        else:
            again = f"the next one follows in {due.pause_s:g} s" if due.pause_s else "it was the last one"
            logger.warning("a callback for document %s %s; %s", due.job.id, outcome, again)


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


def _post(url: str, body: bytes, headers: dict[str, str]) -> int:
    parts = urlsplit(url)
    connection = CONNECTIONS[parts.scheme](parts.hostname or "", parts.port, timeout=TIMEOUT_S)
    try:
        path = parts._replace(scheme="", netloc="", fragment="").geturl() or "/"
        connection.request("POST", path if path.startswith("/") else f"/{path}", body, headers)
        status: int = connection.getresponse().status
        return status
    finally:
        connection.close()
