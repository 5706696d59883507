"""Documents as texts, and back, beside the event loop: small files of text in a thread, others in a process."""

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from service.base.errors import InvalidDocument, RequestError, TooLarge, UnsupportedFileType
from service.base.settings import PREFIX
from service.documents.archive import is_zip
from service.documents.kinds import BY_NAME, kind_of
from service.documents.messages import N_LENGTHS, lengths_of, packed
from service.schemas.requests import Format

SMALL = 32_768
"""Bytes of a file of text that is read faster than a process begins."""
LONGEST_S = 60.0
"""After which a document that is still being read is refused."""
IDLE_S = 60.0
"""For so long the process waits for the next document."""
ERRORS: dict[str, type[RequestError]] = {
    error.__name__: error for error in (InvalidDocument, TooLarge, UnsupportedFileType)
}


@dataclass(frozen=True)
class Texts:
    """What a document of a kind has to translate."""

    kind: str
    format: Format
    texts: list[str]


class Reading:
    """One document at a time, as that takes memory.

    Args:
        most_bytes: how large a document may be, unpacked.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._turn = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None
        self._end: asyncio.TimerHandle | None = None
        self._ending: asyncio.Task[None] | None = None

    async def read(self, file_name: str, data: bytes, kind: str | None = None) -> Texts:
        """What a document has to translate.

        Args:
            kind: by default its name and its content tell.

        Raises:
            UnsupportedMediaType, UnprocessableRequest, TooLarge: it cannot be read.
        """
        if _is_small(data):
            return await asyncio.to_thread(self._read, file_name, data, kind)
        which = {"file_name": file_name} if kind is None else {"kind": kind}
        return Texts(**(await self._asked(which, data))[0])

    async def written(self, kind: str, data: bytes, translations: Sequence[str]) -> bytes:
        """The document with these translations for its texts."""
        if _is_small(data):
            return await asyncio.to_thread(lambda: BY_NAME[kind].read(data, self._most_bytes).written(translations))
        return (await self._asked({"kind": kind, "translations": translations}, data))[1]

    async def stop(self) -> None:
        """End the process; another one begins if it is needed."""
        async with self._turn:
            await self._stopped()

    def _read(self, file_name: str, data: bytes, name: str | None) -> Texts:
        kind = BY_NAME[name] if name is not None else kind_of(file_name, data)
        contents = kind.read(data, self._most_bytes)
        return Texts(kind.name, contents.format, contents.texts)

    async def _asked(self, question: dict[str, Any], data: bytes) -> tuple[dict[str, Any], bytes]:
        message = await asyncio.to_thread(packed, question, data)
        async with self._turn:
            header, file = await self._exchanged(message)
        if "error" in header:
            raise ERRORS.get(header["error"], InvalidDocument)(header["detail"])
        return header, file

    async def _exchanged(self, message: bytes) -> tuple[dict[str, Any], bytes]:
        process = await self._begun()
        questions, answers = process.stdin, process.stdout
        assert questions is not None
        assert answers is not None
        is_answered = False
        try:
            async with asyncio.timeout(LONGEST_S):
                questions.write(message)
                await questions.drain()
                n_said, n_file = lengths_of(await answers.readexactly(N_LENGTHS))
                said = await answers.readexactly(n_said)
                file = await answers.readexactly(n_file)
            is_answered = True
        except TimeoutError:
            raise InvalidDocument(f"The document cannot be read within {LONGEST_S:g} s") from None
        except (asyncio.IncompleteReadError, ConnectionError):
            raise InvalidDocument("The document cannot be read: the process that reads it ended") from None
        finally:
            if is_answered:
                self._end = asyncio.get_running_loop().call_later(IDLE_S, self._let_go)
            else:
                await self._stopped()
        return await asyncio.to_thread(json.loads, said), file

    async def _begun(self) -> asyncio.subprocess.Process:
        if self._end is not None:
            self._end.cancel()
        if self._process is None or self._process.returncode is not None:
            # It needs to know no key.
            environment = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "service.documents",
                str(self._most_bytes),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env=environment,
            )
        return self._process

    def _let_go(self) -> None:
        self._ending = asyncio.create_task(self.stop())

    async def _stopped(self) -> None:
        if self._end is not None:
            self._end.cancel()
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.kill()
            await process.wait()


def _is_small(data: bytes) -> bool:
    return len(data) <= SMALL and not is_zip(data)
