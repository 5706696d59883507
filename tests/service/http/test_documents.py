"""Documents over HTTP: sent as files, translated while nobody waits, and fetched."""

import asyncio
import errno
import os
import tempfile
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
from service.jobs import worker
from service.jobs.reading import DocumentReader
from service.jobs.store import JobStore
from service.models.models import Models
from tests.running_service import running_service
from tests.service.conftest import Client, Serve, problem
from tests.service.documents.test_epub import book
from tests.service.documents.test_subtitles import FILM
from tests.service.documents.word_files import by_hand, paragraph, run
from tests.service.fakes import PATIENCE_S, Disk
from tests.service.server.test_servers import environment
from tests.waiting import until, wait_until

pytestmark = pytest.mark.anyio

TEXT = b"the dog runs on the beach\n\na cat\n"
FRENCH = {"target": "fr"}


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
    beach, cat = (one["text"] for one in answers.raise_for_status().json()["translations"])
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
        pytest.param("a.epub", book(), "application/epub+zip", marks=pytest.mark.process),
        pytest.param(
            "a.docx",
            by_hand(paragraph(run("the "), run("dog", "<w:b/>"))),
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            marks=pytest.mark.process,
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
        ("a.pdf", b"%PDF-1.7", {}, UnsupportedFileType, "PDF; supported: .docx"),
        ("a.xyz", b"x", {}, UnsupportedFileType, ".xyz; supported: .docx"),
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
async def test_what_cannot_be_translated_is_refused_at_once_in_words(
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
        ({"files": {"file": (None, "x")}}, InvalidFields, "`file`"),
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


async def test_a_document_on_its_way_is_told_and_not_given_out(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    card = await sent(client, "a.txt", TEXT)
    await until(gate.come.is_set)
    assert (await status(client, card)).json()["status"] == "translating"
    early = await result(client, card)
    gate.opened.set()
    assert (await finished(client, card))["status"] == "done"
    assert "translating" in problem(early, DocumentNotReady)["detail"]


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
        assert [*(tmp_path / "data" / "documents").iterdir()] == []
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
        late = await posted(client, "a.txt", TEXT, wait="true", timeout_s="0.2")
        assert "not translated" in problem(late, DeadlinePassed)["detail"]
        waiting = asyncio.create_task(posted(client, "a.txt", TEXT, wait="true"))
        await until(lambda: gate.n_calls >= 2)
        waiting.cancel()
        await until(lambda: gate.given_up >= 2 and not [*(tmp_path / "data" / "documents").iterdir()])
        gate.opened.set()
        assert (await posted(client, "a.txt", TEXT, wait="true")).status_code == 200
        assert [*(tmp_path / "data" / "documents").iterdir()] == []


async def test_a_document_that_fails_says_why(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    passage = "<p>" + "<b>a</b> " * 501 + "</p>"
    card = await sent(client, "a.html", passage.encode())
    failed = await finished(client, card)
    fetched = problem(await result(client, card), DocumentFailed)
    waited = await posted(client, "a.html", passage.encode(), wait="true")
    assert failed["status"] == "error"
    assert "501 inline tags" in failed["error"]
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
