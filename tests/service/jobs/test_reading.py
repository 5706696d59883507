"""Documents are read beside the event loop, and whatever becomes of the process that reads them, the next one is."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from service.base.errors import InvalidDocument, TooLarge, UnsupportedFileType
from service.documents import __main__ as reader
from service.documents.messages import LENGTHS
from service.documents.office import word
from service.jobs import reading
from service.jobs.reading import MAX_SMALL_BYTES, DocumentReader, DocumentTexts
from tests.service.documents.pdf_files import Text, pdf_of
from tests.service.documents.translating import Opened
from tests.service.documents.word_files import by_hand, paragraph, run
from tests.service.fakes import PATIENCE_S
from tests.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.process]

MOST_BYTES = 2**22
LARGE = b"a word\n\n" * MAX_SMALL_BYTES
WORD = by_hand(paragraph(run("a "), run("word", "<w:b/>")))


@pytest.fixture
async def documents() -> AsyncIterator[DocumentReader]:
    opened = DocumentReader(MOST_BYTES)
    yield opened
    await opened.stop()


async def test_a_document_is_the_same_wherever_it_is_read(documents: DocumentReader) -> None:
    small = await documents.read("a.txt", b"a word")
    assert small == DocumentTexts("txt", "text", ["a word"])
    assert await documents.write("txt", b"a word", ["ein Wort"]) == b"ein Wort"
    assert documents._process is None, "a small text needs none"
    pdf = pdf_of([Text("a word")])
    assert (await documents.read("a.pdf", pdf)).texts == ["a word", "a word"], "its title is one, too"
    assert documents._process is not None, "a small PDF may do harm"
    assert b"<p>ein Wort</p>" in await documents.write("pdf", pdf, ["ein Wort"] * 2)
    large = await documents.read("a.TXT", LARGE)
    assert "".join(large.texts).encode() == LARGE
    assert await documents.write("txt", LARGE, large.texts) == LARGE
    contents = Opened(word.rewrite, WORD)
    assert await documents.read("a.docx", WORD) == DocumentTexts("docx", "html", contents.texts)
    assert await documents.read("", WORD, "docx") == DocumentTexts("docx", "html", contents.texts)
    assert await documents.write("docx", WORD, ["ein <b>"]) == contents.write(["ein <b>"])


@pytest.mark.parametrize("padding", [b"", b" " * MAX_SMALL_BYTES])
async def test_an_unreadable_document_is_refused_wherever_it_is_read(documents: DocumentReader, padding: bytes) -> None:
    for name, data, error in (
        ("a.rtf", b"{\\rtf", UnsupportedFileType),
        ("a.pdf", b"%PDF-1.7", InvalidDocument),
        ("a.srt", b"x", InvalidDocument),
        ("a.docx", by_hand("", more={"zeros": bytes(MOST_BYTES)}), TooLarge),
    ):
        with pytest.raises(error) as refused:
            await documents.read(name, data + padding)
        assert type(refused.value) is error


async def test_one_process_reads_all_documents_and_ends_when_there_are_none(
    documents: DocumentReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asyncio.gather(*(documents.read("a.txt", LARGE) for _ in range(3)))
    process = documents._process
    monkeypatch.setattr(reading, "IDLE_TIMEOUT_S", 0)
    await documents.read("a.docx", WORD)
    assert process is not None
    async with asyncio.timeout(PATIENCE_S):
        assert await process.wait() == -signal.SIGKILL
    assert (await documents.read("a.docx", WORD)).kind == "docx"


async def test_a_process_that_dies_or_hangs_is_replaced(
    documents: DocumentReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    await documents.read("a.docx", WORD)
    process = documents._process
    assert process is not None
    os.kill(process.pid, signal.SIGSTOP)
    hanging = asyncio.create_task(documents.read("a.docx", WORD))
    await until(documents._lock.locked)
    os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(InvalidDocument, match="ended"):
        await hanging
    assert (await documents.read("a.docx", WORD)).kind == "docx"
    process = documents._process
    assert process is not None
    monkeypatch.setattr(reading, "TIMEOUT_S", 0.05)
    os.kill(process.pid, signal.SIGSTOP)
    with pytest.raises(InvalidDocument, match=r"0\.05 s"):
        await documents.read("a.docx", WORD)
    assert process.returncode == -signal.SIGKILL
    monkeypatch.undo()
    assert (await documents.read("a.docx", WORD)).kind == "docx"


async def test_a_request_that_gives_up_leaves_nothing_to_the_next(documents: DocumentReader) -> None:
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


async def test_the_process_knows_no_key(documents: DocumentReader, monkeypatch: pytest.MonkeyPatch) -> None:
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
    message = reader.answer({"file_name": "a.docx", "options": {}}, b"")
    n_text, n_file = LENGTHS.unpack_from(message)
    assert json.loads(message[LENGTHS.size : LENGTHS.size + n_text])["error"] == "TooLarge"
    assert n_file == 0
