"""Documents over HTTP: sent as files, translated while nobody waits, and fetched."""

import asyncio
import errno
import os
import re
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.base.errors import (
    BadRequest,
    DeadlinePassed,
    DocumentFailed,
    DocumentNotReady,
    InvalidDocument,
    InvalidFields,
    KeyMissing,
    LimitExceeded,
    NotStored,
    QueueFull,
    RequestError,
    TextTooLong,
    TooLarge,
    UnknownDocument,
    UnknownGlossary,
    UnknownModel,
    UnsupportedFileType,
    UnsupportedLanguagePair,
    UnsupportedMediaType,
    UnsupportedOption,
)
from service.documents.kinds import KINDS_BY_NAME
from service.front.models import Models
from service.jobs import worker
from service.jobs.reading import DocumentReader
from service.jobs.store import JobStore
from service.jobs.translation import TranslatedTexts
from service.schemas.answers import Translation
from tests.running_service import running_service
from tests.service.conftest import Client, Serve, problem
from tests.service.documents.open_document_files import content, open_document
from tests.service.documents.pdf_files import Text, pdf_of
from tests.service.documents.test_epub import book
from tests.service.documents.test_excel import string, workbook
from tests.service.documents.test_powerpoint import presentation, shape, slide
from tests.service.documents.test_subrip import FILM
from tests.service.documents.word_files import by_hand, paragraph, run
from tests.service.encoded_names import NAMES, form
from tests.service.fakes import PATIENCE_S, Disk
from tests.service.server.test_servers import environment
from tests.waiting import until, wait_until

pytestmark = pytest.mark.anyio

TEXT = b"the dog runs on the beach\n\na cat\n"
FRENCH = {"target": "fr"}


def xliff(source: str) -> bytes:
    unit = '<trans-unit id="1"><source>the dog</source></trans-unit>'
    return f'<xliff version="1.2"><file source-language="{source}"><body>{unit}</body></file></xliff>'.encode()


def answered(text: str) -> Translation:
    return Translation(text=text, score=0, finish_reason="eos", source_tokens=0, target_tokens=0)


async def posted(client: Client, name: str, data: bytes, **fields: str) -> httpx.Response:
    return await client.post("/translate/document", files={"file": (name, data)}, data=FRENCH | fields)


async def sent(client: Client, name: str, data: bytes, **fields: str) -> dict[str, Any]:
    response = await posted(client, name, data, **fields)
    assert response.status_code == 202, response.text
    card: dict[str, Any] = response.json()
    return card


async def finished(client: Client, card: dict[str, Any]) -> dict[str, Any]:
    """How it ended; what is told on the way must make sense."""
    progress = 0.0
    found: dict[str, Any] = {}

    async def has_ended() -> bool:
        nonlocal found, progress
        found = (await status(client, card)).json()
        if found["status"] not in ("queued", "translating"):
            return True
        assert 0 <= progress <= found["progress"] <= 1
        progress = found["progress"]
        return False

    await until(has_ended)
    return found


async def status(client: Client, card: dict[str, Any]) -> httpx.Response:
    return await client.get(f"/translate/document/{card['id']}", params={"key": card["key"]})


async def result(client: Client, card: dict[str, Any]) -> httpx.Response:
    return await client.get(f"/translate/document/{card['id']}/result", params={"key": card["key"]})


async def test_a_document_is_translated_as_its_texts_are_and_fetched_as_a_file(client: Client) -> None:
    answers = await client.post("/translate", json={"text": ["the dog runs on the beach", "a cat"], **FRENCH})
    beach, cat = (translation["text"] for translation in answers.raise_for_status().json()["translations"])
    card = await sent(client, "été/my file.TXT", TEXT)
    assert card["status"] == "queued"
    assert (card["file_name"], card["source"], card["target"]) == ("my file.fr.TXT", "en", "fr")
    assert card["characters"] == len(TEXT)
    ended = await finished(client, card)
    assert (ended["status"], ended["progress"], "key" in ended) == ("done", 1, False)
    assert ended["expires_at"] > ended["created_at"]
    fetched = await result(client, card)
    assert fetched.content.decode() == f"{beach}\n\n{cat}\n"
    assert fetched.headers["content-type"] == "text/plain"
    assert fetched.headers["content-disposition"] == "attachment; filename*=UTF-8''my%20file.fr.TXT"
    assert fetched.headers["content-security-policy"] == "sandbox"


@pytest.mark.parametrize(
    ("name", "data", "media_type"),
    [
        ("a.html", b"<p>the <b>dog</b></p>", "text/html"),
        ("a.xhtml", b'<html xmlns="http://www.w3.org/1999/xhtml"><p>the dog<br/></p></html>', "text/html"),
        ("a.md", b"# the *dog*\n\nruns\n", "text/markdown"),
        ("a.srt", FILM.encode("utf-16"), "application/x-subrip"),
        ("a.pot", b'msgid "the dog"\nmsgstr ""\n', "text/x-gettext-translation"),
        ("a.csv", b"id,text\n1,the dog\n", "text/csv"),
        ("a.tsv", b"id\ttext\n1\tthe dog\n", "text/tab-separated-values"),
        ("a.xlf", xliff("en"), "application/xliff+xml"),
        ("a.json", b'{"a": "the dog"}', "application/json"),
        ("a.arb", b'{"a": "the dog"}', "application/json"),
        ("a.xcstrings", b'{"sourceLanguage": "en", "strings": {"the dog": {}}}', "application/json"),
        ("a.yml", b"en:\n  a: the dog\n", "application/yaml"),
        ("a.properties", b"a = the dog\n", "text/x-java-properties"),
        ("a.strings", b'"a" = "the dog";\n', "text/plain"),
        ("a.resx", b'<root><data name="a"><value>the dog</value></data></root>', "text/microsoft-resx"),
        ("strings.xml", b'<resources><string name="a">the dog</string></resources>', "application/xml"),
        pytest.param("a.pdf", pdf_of([Text("the dog")]), "text/html", marks=pytest.mark.process),
        pytest.param("a.epub", book(), "application/epub+zip", marks=pytest.mark.process),
        pytest.param(
            "a.docx",
            by_hand(paragraph(run("the "), run("dog", "<w:b/>"))),
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            marks=pytest.mark.process,
        ),
        *(
            pytest.param(f"a.{kind}", data, KINDS_BY_NAME[kind].media_type, marks=pytest.mark.process)
            for kind, data in (
                ("odt", open_document(content("<text:p>the dog</text:p>"))),
                ("pptx", presentation({"one.xml": slide(shape("the dog"))})),
                ("xlsx", workbook(string("the dog"))),
            )
        ),
    ],
)
async def test_each_kind_of_document_is_translated(client: Client, name: str, data: bytes, media_type: str) -> None:
    waited = await posted(client, name, data, wait="true")
    card = await sent(client, name, data)
    await finished(client, card)
    fetched = await result(client, card)
    assert waited.status_code == 200, waited.text
    assert fetched.content == waited.content != data
    assert fetched.headers["content-type"] == waited.headers["content-type"] == media_type
    assert fetched.headers["content-disposition"].endswith("html") == (media_type == "text/html")


async def test_columns_and_what_is_missing_are_chosen(client: Client) -> None:
    table = b"en,fr,note\nthe dog,x,a cat\na cat,,the dog\n"
    whole = await posted(client, "a.csv", table, wait="true", columns='["note"]')
    missing = await posted(client, "a.csv", table, wait="true", columns='["en=fr"]', only_missing="true")
    assert whole.text.startswith("en,fr,note\nthe dog,x,")
    assert missing.text.splitlines()[1] == "the dog,x,a cat"
    assert missing.text.splitlines()[2] != "a cat,,the dog"
    wrong = await posted(client, "a.csv", table, columns='["de"]')
    assert "no column de; available: en, fr, note" in problem(wrong, InvalidDocument)["detail"]


async def test_a_document_with_more_texts_than_were_counted_is_at_most_whole(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table may have more texts once its language is known."""
    may_end = asyncio.Event()

    async def texts(_: object, document: Any, job: object, ends_at: float, on_progress: Any) -> TranslatedTexts:
        on_progress(10**6)
        await may_end.wait()
        return TranslatedTexts(document, {text: answered(text) for text in document.texts})

    monkeypatch.setattr(worker.DocumentTranslator, "texts", texts)
    monkeypatch.setattr(worker, "REPORT_S", 0.001)
    card = await sent(client, "a.txt", TEXT)

    async def is_whole() -> bool:
        return (await status(client, card)).json()["progress"] >= 1

    await until(is_whole)
    told = (await status(client, card)).json()
    assert (told["progress"], told["seconds_remaining"]) == (1, 0)
    may_end.set()
    await finished(client, card)


async def test_the_language_that_a_file_names_counts_if_the_request_names_none(client: Client) -> None:
    assert problem(await posted(client, "a.xlf", xliff("ja")), UnsupportedLanguagePair)
    assert (await posted(client, "a.xlf", xliff("ja"), source="en")).status_code == 202


@pytest.mark.parametrize("reason", [errno.ENOSPC, errno.EMFILE, errno.ENOENT])  # the last one of a folder that is full
async def test_an_upload_without_room_is_refused_and_the_next_one_taken(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, reason: int
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(reason, os.strerror(reason))

    large = b"the dog\n\n" * 200_000
    async with serve(max_document_bytes=3_000_000) as client:
        with monkeypatch.context() as patch:
            patch.setattr(tempfile, "TemporaryFile", full)
            refused = await posted(client, "a.txt", large)
        await sent(client, "a.txt", TEXT)
    problem(refused, NotStored)
    assert int(refused.headers["Retry-After"]) > 0


async def test_options_are_those_of_a_translation(client: Client) -> None:
    fields = {
        "keep": '["cat"]',
        "glossary": '{"dog": "clebs"}',
        "beam_size": "1",
        "model": "tiny-en-fr",
        "wait": "true",
    }
    glossary = {"name": "a", "dictionaries": [{"source": "en", "target": "fr", "entries": {"beach": "plage"}}]}
    fields["glossary_id"] = (await client.post("/glossaries", json=glossary)).json()["id"]
    waited = await posted(client, "a.txt", b"dog, cat, beach", **fields)
    assert waited.raise_for_status().text == "clebs, cat, plage"


@pytest.mark.parametrize(
    ("name", "data", "fields", "error", "part"),
    [
        pytest.param("a.odt", b"PK\x03\x04", {}, InvalidDocument, "damaged zip", marks=pytest.mark.process),
        ("a.rtf", b"{\\rtf1", {}, UnsupportedFileType, "RTF; supported: Word"),
        pytest.param("a.pdf", b"%PDF-1.7", {}, InvalidDocument, "PDF is damaged", marks=pytest.mark.process),
        ("a.xyz", b"x", {}, UnsupportedFileType, ".xyz; supported: Word"),
        pytest.param("a.docx", b"x", {}, InvalidDocument, ".docx", marks=pytest.mark.process),
        ("a.txt", b"caf\xe9", {}, InvalidDocument, "UTF-8: unexpected end of data at byte 3"),
        ("a.srt", b"x", {}, InvalidDocument, "no line such as"),
        ("a.html", b"<meta charset=klingon>", {}, InvalidDocument, "klingon"),
        pytest.param(
            "a.docx", by_hand("", more={"zeros": bytes(3_000_000)}), {}, TooLarge, "unpacked", marks=pytest.mark.process
        ),
        ("a.html", b"x" * 51, {}, TextTooLong, "51 characters; the limit is 50"),
        ("a.txt", b"x" * 150_000, {}, TooLarge, "body announces"),
        ("a.txt", b"x", {"target": "xx"}, UnsupportedLanguagePair, "to xx"),
        ("a.txt", b"x", {"model": "none"}, UnknownModel, "'none'"),
        ("a.txt", b"x", {"glossary_id": "none"}, UnknownGlossary, "none"),
        ("a.txt", b"x", {"keep": "dog"}, InvalidFields, "`keep` must be JSON, not dog"),
        ("a.txt", b"x", {"keep": "[" * 20_000}, InvalidFields, "`keep` must be JSON, not [[["),
        ("a.txt", b"x", {"beam_size": "9"}, InvalidFields, "`beam_size`"),
        ("a.txt", b"x", {"format": "text"}, InvalidFields, "`format`"),
        ("a.txt", b"x", {"timeout_s": "7201"}, InvalidFields, "3600 s, not 7201 s"),
        ("a.txt", b"x", {"timeout_s": "301", "wait": "true"}, InvalidFields, "300 s, not 301 s"),
    ],
)
async def test_an_untranslatable_document_is_refused_at_once_in_words(
    serve: Serve, name: str, data: bytes, fields: dict[str, str], error: type[RequestError], part: str
) -> None:
    async with serve(max_document_bytes=100_000, max_text_characters=50) as client:
        response = await posted(client, name, data, **fields)
    assert part in problem(response, error)["detail"]


async def test_a_file_may_be_larger_than_other_bodies(serve: Serve) -> None:
    body = {"text": "a" * 2000}
    async with serve(max_body_bytes=1000, max_document_bytes=4000) as client:
        response = await posted(client, "a.txt", b"a\n" * 1000)
        assert response.status_code == 202
        problem(await client.post("/translate", json=body), TooLarge)
        problem(await posted(client, "a.txt", b"a\n" * 2000), TooLarge)


@pytest.mark.parametrize(
    ("request_", "error", "part"),
    [
        ({"json": {"text": "a"}}, UnsupportedMediaType, "multipart/form-data, not application/json"),
        ({"data": {"target": "fr"}}, UnsupportedMediaType, "not application/x-www-form-urlencoded"),
        ({"files": {"other": ("a.txt", b"x")}}, InvalidFields, "`file`"),
        ({"files": {"file": (None, "a.docx")}}, InvalidFields, "`file` must be a file, with its name, not text"),
        ({"content": b"x", "headers": {"content-type": "multipart/form-data"}}, BadRequest, "form"),
        ({"content": b"x", "headers": {"content-type": "multipart/form-data; boundary=b"}}, BadRequest, "form"),
    ],
)
async def test_a_body_that_is_no_such_form_is_refused(
    client: Client, request_: dict[str, Any], error: type[RequestError], part: str
) -> None:
    assert part in problem(await client.post("/translate/document", **request_), error)["detail"]


class Gate:
    """Translations wait until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.opened = asyncio.Event()
        self.come = asyncio.Event()
        self.given_up = 0
        self.n_calls = 0
        translate = Models.translate

        async def waiting(*arguments: Any, **more: Any) -> Any:
            self.n_calls += 1
            self.come.set()
            try:
                await self.opened.wait()
            except asyncio.CancelledError:
                self.given_up += 1
                raise
            return await translate(*arguments, **more)

        monkeypatch.setattr(Models, "translate", waiting)


@pytest.mark.parametrize(
    "name", ['a"; x="b.txt', "a\u2028b.txt", "a\rX-Evil: 1.txt", "é%0d%0aX-Evil: 1.txt", "../../b.txt"]
)
async def test_a_file_name_adds_no_header(client: Client, name: str) -> None:
    answer = await posted(client, name, TEXT, wait="true")
    assert "x-evil" not in answer.headers
    assert re.fullmatch(r"attachment; filename\*=UTF-8''[\w.%-]+", answer.headers["content-disposition"])


@pytest.mark.parametrize("name", NAMES)
async def test_the_name_of_a_file_may_be_encoded(client: Client, name: str) -> None:
    answer = await client.post("/translate/document", **form(name, TEXT, wait="true", **FRENCH))
    assert answer.raise_for_status().headers["content-disposition"].endswith("%C3%A9t%C3%A9.fr.txt")


async def test_a_document_on_its_way_is_told_and_not_given_out(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    card = await sent(client, "a.txt", TEXT)
    await until(gate.come.is_set)
    assert (await status(client, card)).json()["status"] == "translating"
    early = await result(client, card)
    gate.opened.set()
    assert (await finished(client, card))["status"] == "done"
    assert "translating" in problem(early, DocumentNotReady)["detail"]


def n_files(data: Path) -> int:
    """The number of files that a database has."""
    with closing(sqlite3.connect(data / "attend.sqlite")) as database:
        (n,) = database.execute("SELECT COUNT(*) FROM attend_files").fetchone()
        return int(n)


async def test_a_document_that_is_deleted_is_given_up_and_forgotten(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(worker, "REPORT_S", 0.01)
    gate = Gate(monkeypatch)
    async with serve() as client:
        card = await sent(client, "a.txt", TEXT)
        await until(gate.come.is_set)
        path, key = f"/translate/document/{card['id']}", {"key": card["key"]}
        assert (await client.delete(path, params=key)).status_code == 204
        for call in (status(client, card), result(client, card), client.delete(path, params=key)):
            problem(await call, UnknownDocument)
        await until(lambda: gate.given_up >= 1)
        assert n_files(tmp_path / "data") == 0
        gate.opened.set()
        assert (await finished(client, await sent(client, "a.txt", TEXT)))["status"] == "done"


@pytest.mark.parametrize("key", ["", "x", "\udc80"])
async def test_nobody_gets_a_document_without_its_key(client: Client, key: str) -> None:
    card = await sent(client, "a.txt", TEXT)
    await finished(client, card)
    other = await sent(client, "b.txt", TEXT)
    wrong = card | {"key": key.encode(errors="surrogateescape")}
    for of_other in (wrong, card | {"key": other["key"]}):
        problem(await status(client, of_other), UnknownDocument)
        problem(await result(client, of_other), UnknownDocument)
        problem(
            await client.delete(f"/translate/document/{card['id']}", params={"key": of_other["key"]}), UnknownDocument
        )
    missing = problem(await client.get(f"/translate/document/{card['id']}"), InvalidFields)
    assert missing["errors"][0]["loc"] == ["query", "key"]
    assert (await result(client, card)).status_code == 200


async def test_the_time_of_a_document_counts_from_its_arrival(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others may be read before it, one at a time."""

    async def read(*_: object, **__: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(DocumentReader, "read", read)
    for wait in ("true", "false"):
        late = await posted(client, "a.txt", TEXT, wait=wait, timeout_s="0.05")
        assert "read within 0.05 s" in problem(late, DeadlinePassed)["detail"]


async def test_a_client_that_waits_and_leaves_leaves_nothing(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(worker, "REPORT_S", 0.01)
    gate = Gate(monkeypatch)
    async with serve() as client:
        late = await posted(client, "a.txt", TEXT, wait="true", timeout_s="2")
        assert "not translated" in problem(late, DeadlinePassed)["detail"]
        n_before = gate.n_calls  # none, if the deadline passed before the translation began
        waiting = asyncio.create_task(posted(client, "a.txt", TEXT, wait="true"))
        await until(lambda: gate.n_calls > n_before)
        waiting.cancel()
        await until(lambda: gate.given_up > n_before and n_files(tmp_path / "data") == 0)
        gate.opened.set()
        assert (await posted(client, "a.txt", TEXT, wait="true")).status_code == 200
        assert n_files(tmp_path / "data") == 0


async def test_a_passage_of_a_document_may_have_more_tags_than_one_of_a_request(client: Client) -> None:
    passage = "<p>" + "<b>a</b> " * 501 + "</p>"
    refused = await client.post("/translate", json={"text": passage, "format": "html", **FRENCH})
    assert "501 inline tags" in problem(refused, LimitExceeded)["detail"]
    new = await posted(client, "a.html", passage.encode(), wait="true")
    assert (new.status_code, new.text.count("<b>")) == (200, 501)


async def test_marks_do_not_count_as_text_of_a_passage(serve: Serve) -> None:
    async with serve(max_text_characters=100) as client:
        new = await posted(client, "a.html", b"<p>" + b"<b>a</b> " * 50 + b"</p>", wait="true")
        assert (new.status_code, new.text.count("<b>")) == (200, 50)
        problem(await posted(client, "a.html", b"<p>" + b"<b>a</b> " * 51 + b"</p>", wait="true"), TextTooLong)


async def test_a_database_that_is_away_for_a_moment_fails_no_document(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "CHECK_S", 0.01)

    def away_twice(use: Callable[..., Any]) -> Callable[..., Any]:
        left = [NotStored("away"), NotStored("away")]

        def wrapped(*arguments: Any) -> Any:
            if left:
                raise left.pop()
            return use(*arguments)

        return wrapped

    for name in ("source", "finish"):
        monkeypatch.setattr(JobStore, name, away_twice(getattr(JobStore, name)))
    assert (await finished(client, await sent(client, "a.txt", TEXT)))["status"] == "done"


async def test_a_document_that_fails_says_why(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    often, pattern = b"<p>" + b"a" * 20_000, {"keep": '[{"pattern": "a"}]'}
    card = await sent(client, "a.html", often, **pattern)
    failed = await finished(client, card)
    fetched = problem(await result(client, card), DocumentFailed)
    waited = await posted(client, "a.html", often, wait="true", **pattern)
    assert failed["status"] == "error"
    assert "`keep`" in failed["error"]
    assert failed["code"] == LimitExceeded.code
    assert fetched["detail"] == problem(waited, DocumentFailed)["detail"]
    assert fetched["detail"].endswith(failed["error"])

    async def failing(*_: Any, **__: Any) -> Any:
        raise RuntimeError("a bug")

    monkeypatch.setattr(Models, "translate", failing)
    card = await sent(client, "a.txt", TEXT)
    error = (await finished(client, card))["error"]
    assert card["id"] in error
    assert "a bug" not in error


@pytest.mark.process
async def test_a_document_in_the_target_language_comes_back_byte_for_byte(client: Client) -> None:
    data = by_hand(paragraph(run("a dog")))
    same = await posted(client, "a.docx", data, source="fr", target="fr", wait="true")
    empty = await posted(client, "a.txt", b"", wait="true")
    assert same.raise_for_status().content == data
    assert empty.raise_for_status().content == b""


async def test_a_full_shelf_makes_room_by_what_was_fetched(serve: Serve) -> None:
    async with serve(max_documents=2) as client:
        first, second = [await sent(client, "a.txt", TEXT) for _ in range(2)]
        for card in (first, second):
            await finished(client, card)
        full = await posted(client, "a.txt", TEXT)
        assert "2" in problem(full, QueueFull)["detail"]
        assert full.headers["retry-after"] == "30"
        await result(client, second)
        assert (await posted(client, "a.txt", TEXT)).status_code == 202
        assert (await status(client, first)).status_code == 200
        problem(await status(client, second), UnknownDocument)


async def test_a_disk_that_is_full_for_a_while_ends_no_document(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, disk: Disk
) -> None:
    monkeypatch.setattr(worker, "REPORT_S", 0.01)
    monkeypatch.setattr(worker, "CHECK_S", 0.05)
    gate = Gate(monkeypatch)
    async with serve() as client:
        cards = [await sent(client, "a.txt", TEXT) for _ in range(2)]
        await until(gate.come.is_set)

        async def go_on() -> None:
            seen = disk.n_uses + 20
            await until(lambda: disk.n_uses >= seen)

        disk.is_full = True
        await go_on()
        full = await posted(client, "a.txt", TEXT)
        gate.opened.set()
        await go_on()
        disk.is_full = False
        for card in cards:
            assert (await finished(client, card))["status"] == "done"
    assert "attempt to write a readonly database" in problem(full, NotStored)["detail"]


async def test_a_document_that_a_server_could_not_tell_the_end_of_is_translated_again(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "CHECK_S", 0.05)
    fail, failures = JobStore.fail, [NotStored("this cannot be stored now")]

    def failing(*arguments: Any) -> None:
        if failures:
            raise failures.pop()
        fail(*arguments)

    async def translate(*_: Any, **__: Any) -> Any:
        raise UnsupportedOption("a reason")

    monkeypatch.setattr(JobStore, "fail", failing)
    monkeypatch.setattr(Models, "translate", translate)
    async with serve() as client:
        card = await sent(client, "a.txt", TEXT)
        assert (await finished(client, card))["error"] == "a reason"
    assert failures == []


async def test_documents_are_behind_keys(serve: Serve) -> None:
    async with serve(api_keys="k") as client:
        problem(await posted(client, "a.txt", TEXT), KeyMissing)
        client.headers["authorization"] = "Bearer k"
        card = await sent(client, "a.txt", TEXT)
        await finished(client, card)
        del client.headers["authorization"]
        problem(await result(client, card), KeyMissing)


@pytest.mark.process
def test_any_server_tells_of_a_document_and_a_restart_loses_none(artifacts: Path, tmp_path: Path) -> None:
    settings = environment(artifacts, data=tmp_path / "data")
    many = b"".join(b"the dog runs %d\n\n" % number for number in range(400))
    with running_service(tmp_path / "log", settings) as service:
        done = post(service, TEXT)
        for _ in range(8):  # each connection may be with another server
            with httpx.Client(base_url=service.base_url) as client:
                assert client.get(done, timeout=PATIENCE_S).json()["source"] == "en"
        until_done(service, done)
        long = post(service, many)
    with running_service(tmp_path / "log", settings) as service:
        for path in (done, long):
            until_done(service, path)
        fetched = service.get(long.replace("?", "/result?"))
        assert len(fetched.text.splitlines()) == len(many.splitlines())


def post(client: httpx.Client, data: bytes) -> str:
    """Where it is told how far the document is."""
    sending = {"files": {"file": ("a.txt", data)}, "data": FRENCH}
    card = client.post("/translate/document", **sending).raise_for_status().json()  # type: ignore[arg-type]
    return f"/translate/document/{card['id']}?key={card['key']}"


def until_done(client: httpx.Client, path: str) -> None:
    def is_done() -> bool:
        now = client.get(path).raise_for_status().json()
        assert now["status"] in ("queued", "translating", "done"), now
        return now["status"] == "done"

    wait_until(is_done, 6 * PATIENCE_S)
