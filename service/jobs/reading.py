"""Read and write documents beside the event loop: small text files in a thread, all others in a process."""

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from service.base.errors import InvalidDocument, RequestError, TooLarge, UnsupportedFileType
from service.base.settings import PREFIX
from service.documents.contents import DEFAULT_OPTIONS, ReadOptions
from service.documents.kinds import KINDS_BY_NAME, is_text, kind_of
from service.documents.messages import LENGTHS, pack_message
from service.schemas.requests import Format

MAX_SMALL_BYTES = 32_768
"""Reading a text file of this size takes less time than the start of a process."""
TIMEOUT_S = 60.0
"""Maximum time to read or write one document."""
IDLE_TIMEOUT_S = 60.0
"""Time after which a process without work ends."""
ERRORS: dict[str, type[RequestError]] = {
    error.__name__: error for error in (InvalidDocument, TooLarge, UnsupportedFileType)
}


@dataclass(frozen=True)
class DocumentTexts:
    """The texts of a document, in order, and the kind of the document."""

    kind: str
    format: Format
    texts: list[str]
    source: str | None = None
    """The language of the texts, if the document tells."""


class DocumentReader:
    """Reads and writes one document at a time, since each takes memory.

    Args:
        max_bytes: the size limit of an unpacked document.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._lock = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._stopping: asyncio.Task[None] | None = None

    async def read(
        self, file_name: str, data: bytes, kind: str | None = None, options: ReadOptions = DEFAULT_OPTIONS
    ) -> DocumentTexts:
        """Return the texts of a document.

        Args:
            kind: the kind of the document; None: found by name and content.
            options: how to read it; the size limit is this reader's own.

        Raises:
            UnsupportedMediaType, UnprocessableRequest, TooLarge: the document cannot be read.
        """
        if _is_small(data):
            return await asyncio.to_thread(self._read, file_name, data, kind, options)
        which = {"file_name": file_name} if kind is None else {"kind": kind}
        return DocumentTexts(**(await self._ask(which, options, data))[0])

    async def write(
        self, kind: str, data: bytes, translations: Sequence[str], options: ReadOptions = DEFAULT_OPTIONS
    ) -> bytes:
        """Return the document with its texts replaced by these translations."""
        if _is_small(data):
            return await asyncio.to_thread(KINDS_BY_NAME[kind].write, data, self._limited(options), translations)
        return (await self._ask({"kind": kind, "translations": translations}, options, data))[1]

    async def stop(self) -> None:
        """End the process; the next document starts another one."""
        async with self._lock:
            await self._kill()

    def _limited(self, options: ReadOptions) -> ReadOptions:
        return replace(options, max_bytes=self._max_bytes)

    def _read(self, file_name: str, data: bytes, name: str | None, options: ReadOptions) -> DocumentTexts:
        kind = KINDS_BY_NAME[name] if name is not None else kind_of(file_name, data)
        return DocumentTexts(kind.name, **vars(kind.read(data, self._limited(options))))

    async def _ask(self, request: dict[str, Any], options: ReadOptions, data: bytes) -> tuple[dict[str, Any], bytes]:
        message = await asyncio.to_thread(pack_message, request | {"options": asdict(self._limited(options))}, data)
        async with self._lock:
            header, file = await self._exchange(message)
        if "error" in header:
            raise ERRORS.get(header["error"], InvalidDocument)(header["detail"])
        return header, file

    async def _exchange(self, message: bytes) -> tuple[dict[str, Any], bytes]:
        process = await self._running_process()
        requests, answers = process.stdin, process.stdout
        assert requests is not None
        assert answers is not None
        is_answered = False
        try:
            async with asyncio.timeout(TIMEOUT_S):
                requests.write(message)
                await requests.drain()
                n_text, n_file = LENGTHS.unpack(await answers.readexactly(LENGTHS.size))
                text = await answers.readexactly(n_text)
                file = await answers.readexactly(n_file)
            is_answered = True
        except TimeoutError:
            raise InvalidDocument(f"The document cannot be read within {TIMEOUT_S:g} s") from None
        except (asyncio.IncompleteReadError, ConnectionError):
            raise InvalidDocument("The document cannot be read: the process that reads it ended") from None
        finally:
            if is_answered:
                self._idle_timer = asyncio.get_running_loop().call_later(IDLE_TIMEOUT_S, self._stop_later)
            else:
                await self._kill()
        return await asyncio.to_thread(json.loads, text), file

    async def _running_process(self) -> asyncio.subprocess.Process:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if self._process is None or self._process.returncode is not None:
            # The process gets no settings, since some are keys.
            environment = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "service.documents",
                str(self._max_bytes),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env=environment,
            )
        return self._process

    def _stop_later(self) -> None:
        self._stopping = asyncio.create_task(self.stop())

    async def _kill(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.kill()
            await process.wait()


def _is_small(data: bytes) -> bool:
    return len(data) <= MAX_SMALL_BYTES and is_text(data)
