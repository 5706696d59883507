"""Documents are read beside the event loop, and whatever becomes of the process that reads them, the next one is."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from service.base.errors import TooLarge, UnprocessableRequest, UnsupportedMediaType
from service.documents import __main__ as reader
from service.documents import word
from service.documents.messages import N_LENGTHS, lengths_of
from service.jobs import reading
from service.jobs.reading import SMALL, Reading, Texts
from tests.service.documents.word_files import by_hand, paragraph, run
from tests.service.fakes import PATIENCE_S
from tests.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.process]

MOST_BYTES = 2**22
LARGE = b"a word\n\n" * SMALL
WORD = by_hand(paragraph(run("a "), run("word", "<w:b/>")))


@pytest.fixture
async def documents() -> AsyncIterator[Reading]:
    opened = Reading(MOST_BYTES)
    yield opened
    await opened.stop()


async def test_a_document_is_the_same_wherever_it_is_read(documents: Reading) -> None:
    small = await documents.read("a.txt", b"a word")
    assert small == Texts("txt", "text", ["a word"])
    assert await documents.written("txt", b"a word", ["ein Wort"]) == b"ein Wort"
    assert documents._process is None, "a small text needs none"
    large = await documents.read("a.TXT", LARGE)
    assert "".join(large.texts).encode() == LARGE
    assert await documents.written("txt", LARGE, large.texts) == LARGE
    contents = word.read(WORD, MOST_BYTES)
    assert await documents.read("a.docx", WORD) == Texts("docx", "html", contents.texts)
    assert await documents.read("", WORD, "docx") == Texts("docx", "html", contents.texts)
    assert await documents.written("docx", WORD, ["ein <b>"]) == contents.written(["ein <b>"])


@pytest.mark.parametrize("padding", [b"", b" " * SMALL])
async def test_what_cannot_be_read_is_refused_wherever_it_is_read(documents: Reading, padding: bytes) -> None:
    for name, data, error, detail in (
        ("a.pdf", b"%PDF", UnsupportedMediaType, "the file is a PDF"),
        ("a.srt", b"x", UnprocessableRequest, "no subtitles"),
        ("a.docx", by_hand("", more={"zeros": bytes(MOST_BYTES)}), TooLarge, "unpacked the file has"),
    ):
        with pytest.raises(error, match=detail):
            await documents.read(name, data + padding)


async def test_one_process_reads_all_documents_and_ends_when_there_are_none(
    documents: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asyncio.gather(*(documents.read("a.txt", LARGE) for _ in range(3)))
    process = documents._process
    monkeypatch.setattr(reading, "IDLE_S", 0)
    await documents.read("a.docx", WORD)
    assert process is not None
    async with asyncio.timeout(PATIENCE_S):
        assert await process.wait() == -signal.SIGKILL
    assert (await documents.read("a.docx", WORD)).kind == "docx"


async def test_a_process_that_dies_or_hangs_is_replaced(documents: Reading, monkeypatch: pytest.MonkeyPatch) -> None:
    await documents.read("a.docx", WORD)
    process = documents._process
    assert process is not None
    os.kill(process.pid, signal.SIGSTOP)
    hanging = asyncio.create_task(documents.read("a.docx", WORD))
    await asyncio.sleep(0)
    os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(UnprocessableRequest, match="the process that reads it ended"):
        await hanging
    assert (await documents.read("a.docx", WORD)).kind == "docx"
    process = documents._process
    assert process is not None
    monkeypatch.setattr(reading, "LONGEST_S", 0.05)
    os.kill(process.pid, signal.SIGSTOP)
    with pytest.raises(UnprocessableRequest, match=r"cannot be read within 0\.05 s"):
        await documents.read("a.docx", WORD)
    assert process.returncode == -signal.SIGKILL
    monkeypatch.undo()
    assert (await documents.read("a.docx", WORD)).kind == "docx"


async def test_whoever_gives_up_leaves_nothing_to_the_next(documents: Reading) -> None:
    await documents.read("a.docx", WORD)
    process = documents._process
    assert process is not None
    os.kill(process.pid, signal.SIGSTOP)
    asked = asyncio.create_task(documents.read("a.txt", LARGE))
    await until(lambda: process.stdin is None or process.stdin.transport.get_write_buffer_size() > 0)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert (await documents.read("a.docx", WORD)).kind == "docx"


async def test_the_process_knows_no_key(documents: Reading, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTEND_API_KEYS", "secret")
    await documents.read("a.docx", WORD)
    assert documents._process is not None
    environment = Path(f"/proc/{documents._process.pid}/environ")
    if environment.exists():
        assert b"secret" not in environment.read_bytes()


def test_a_document_that_takes_all_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def greedy(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(reader, "kind_of", greedy)
    message = reader.answer({"file_name": "a.docx"}, b"", 10)
    n_said, n_file = lengths_of(message)
    assert json.loads(message[N_LENGTHS : N_LENGTHS + n_said])["error"] == "TooLarge"
    assert n_file == 0
