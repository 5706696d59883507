"""DeepL's client uses translation memories: those that the native routes filled, and those that it sends itself."""

import asyncio
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import deepl
import httpx
import pytest
from deepl.__main__ import main
from lxml import etree

from service.documents import memory_files
from service.jobs import imports
from service.storage.database_engines import FILE
from tests.service.access.key_tables import table
from tests.service.conftest import Client, Serve
from tests.service.dialects.conftest import Listen
from tests.waiting import LOOK_S, PATIENCE_S, look_later

TRANSLATORS = {"from": (3, "en", "de")}
SEGMENTS = [{"source": f"The dog number {n} runs.", "target": f"Köter {n}!"} for n in range(3)]


@pytest.fixture
def memory(address: str) -> Iterator[str]:
    """The id of a memory on the service that the client asks."""
    path = f"{address}/memories"
    made = httpx.post(path, json={"name": "Dogs", "source": "en", "target": "de"}).json()["id"]
    httpx.post(f"{path}/{made}/segments", json={"segments": SEGMENTS}).raise_for_status()
    yield made
    httpx.delete(f"{path}/{made}")


def test_a_memory_is_listed_used_and_deleted(client: deepl.DeepLClient, memory: str) -> None:
    (info,) = client.list_translation_memories()
    assert (info.translation_memory_id, info.name, info.segment_count) == (memory, "Dogs", 3)
    assert (info.source_language, info.target_languages) == ("en", ["de"])
    assert vars(client.get_translation_memory(info)) == vars(info)
    answers = client.translate_text(
        ["The dog number 7 runs.", "A dog runs."],
        source_lang="EN",
        target_lang="DE",
        translation_memory=info,
        translation_memory_threshold=80,
    )
    plain = client.translate_text("A dog runs.", source_lang="EN", target_lang="DE")
    assert [str(one) for one in answers] == ["Köter 7!", str(plain)]
    client.delete_translation_memory(info)
    assert client.list_translation_memories() == []
    with pytest.raises(deepl.DeepLException, match="No memory"):
        client.get_translation_memory(info)


def test_segments_are_listed_in_pages(client: deepl.DeepLClient, memory: str) -> None:
    first = client.list_translation_memory_segments(memory, page_size=2)
    rest = client.list_translation_memory_segments(memory, page_size=2, page_cursor=first.next_page_cursor)
    texts = [(one.source_text, one.targets[0].target_text) for page in (first, rest) for one in page]
    assert texts == [(one["source"], one["target"]) for one in SEGMENTS]
    assert (first.segment_count, rest.next_page_cursor) == (3, None)
    (found,) = client.list_translation_memory_segments(memory, filter_text="NUMBER 1")
    assert found.source_text == SEGMENTS[1]["source"]
    with pytest.raises(deepl.DeepLException, match="page_size"):
        client.list_translation_memory_segments(memory, page_size=0)


HEAD = b'<tmx version="1.4"><header srclang="en-GB" segtype="sentence"/><body>'
UNIT = '<tu><tuv xml:lang="{0}"><seg>{1}</seg></tuv><tuv xml:lang="{2}"><seg>{3}</seg></tuv></tu>'
JOBS = "/v3/translation_memories"


def tmx(*units: tuple[str, str, str, str], head: bytes = HEAD) -> bytes:
    return head + "".join(UNIT.format(*unit) for unit in units).encode() + b"</body></tmx>"


TMX = tmx(
    ("de", "Köter!", "en-GB", "The dog runs."), ("en", "The cat", "de-AT", "Die Katz"), ("en", "Empty", "de", " ")
)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client does not wait five seconds where it looks again."""
    monkeypatch.setattr("deepl.deepl_client.time", SimpleNamespace(time=time.time, sleep=look_later))


def test_a_file_is_imported_looked_into_and_exported(client: deepl.DeepLClient, tmp_path: Path) -> None:
    (tmp_path / "dogs.tmx").write_bytes(TMX)
    job = client.import_translation_memory_from_filepath(tmp_path / "dogs.tmx")
    assert (job.operation, job.status, job.display_name) == ("import", "completed", "dogs.tmx")
    assert (job.source_content_length, job.result.skipped_segment_count) == (len(TMX), 1)
    info = client.get_translation_memory(job.result.translation_memory_id)
    assert (info.name, info.source_language, info.target_languages) == ("dogs.tmx", "en", ["de"])
    texts = [(one.source_text, one.targets[0].target_text) for one in client.list_translation_memory_segments(info)]
    assert texts == [("The dog runs.", "Köter!"), ("The cat", "Die Katz")]
    again = tmp_path / "again.tmx"
    job = client.export_translation_memory_to_filepath(info, again)
    assert (job.operation, job.status, job.translation_memory_id) == ("export", "completed", info.translation_memory_id)
    assert [seg.text for seg in etree.parse(again).iterfind(".//seg")] == [text for pair in texts for text in pair]
    copy = client.import_translation_memory_from_filepath(again, display_name="Copy").result.translation_memory_id
    assert client.get_translation_memory(copy).name == "Copy"
    client.delete_translation_memory(info)
    client.delete_translation_memory(copy)
    with pytest.raises(deepl.DeepLException, match="No memory has the id"):
        client.create_translation_memory_export(info)
    with pytest.raises(deepl.DeepLException, match="404"):
        client.download_translation_memory_export(job)


def test_its_command_line_does_it_too(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*words: str) -> list[str]:
        command = ["deepl", "--auth-key", "any", "--server-url", address, "translation-memory", *words]
        monkeypatch.setattr(sys, "argv", command)
        main()
        return capsys.readouterr().out.splitlines()

    (tmp_path / "dogs.tmx").write_bytes(TMX)
    told = dict(line.split(": ") for line in run("import", "--name", "Dogs", str(tmp_path / "dogs.tmx")))
    memory_id = told["Translation memory ID"]
    assert told["Skipped segments"] == "1"
    assert any(memory_id in line and "Dogs" in line for line in run("list"))
    run("export", memory_id, str(tmp_path / "again.tmx"))
    assert "Die Katz" in (tmp_path / "again.tmx").read_text()
    run("delete", memory_id)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"x", "not XML"),
        (b"<xliff/>", "no TMX"),
        (b'<!DOCTYPE tmx [<!ENTITY a "b">]>' + TMX, "definition"),
        (TMX[:-20], "not XML"),
        (tmx(), "no texts in two languages"),
        (tmx(("en", "dog", "en-US", "dog")), "no texts in two languages"),
        (tmx(("en", "dog", "de", "Hund"), ("en", "dog", "fr", "chien")), "into de and fr"),
        (tmx(("en", "dog", "?", "Hund")), "? is not a language code"),
        (tmx(("de", "Hund", "de", "Hund")), "no texts in both en-GB and de"),
        (tmx(*[("en", "dog", "de", "Hund")] * 4), "has 4 segments; the limit is 3"),
    ],
)
def test_a_file_that_cannot_be_read_is_a_failed_import_and_leaves_nothing(
    client: deepl.DeepLClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes, message: str
) -> None:
    monkeypatch.setattr(memory_files, "MAX_SEGMENTS", 3)
    monkeypatch.setattr(imports, "BATCH", 1)
    (tmp_path / "a.tmx").write_bytes(data)
    with pytest.raises(deepl.DeepLException, match="importing") as raised:
        client.import_translation_memory_from_filepath(tmp_path / "a.tmx")
    assert message in str(raised.value)
    assert client.list_translation_memories() == []


def test_an_address_works_once_and_only_with_its_key(client: deepl.DeepLClient) -> None:
    made = client.create_translation_memory_import("a.tmx", len(TMX))
    assert client.get_translation_memory_job(made.job_id).status == "awaiting_input"
    for changed in (made.upload_url[:-1], made.upload_url.replace("key=", "key=%C3%A9"), made.upload_url[:-64]):
        with pytest.raises(deepl.DeepLException, match=r"404, detail: .*No import or export"):
            client.upload_translation_memory_file(changed, TMX)
    missing = httpx.put(made.upload_url.partition("&")[0], content=TMX)
    assert (missing.status_code, missing.json()["message"]) == (400, "Value for 'key' not supported.")
    assert httpx.get(made.upload_url).status_code == 404, "nothing is fetched from where a file is sent"
    client.upload_translation_memory_file(made, TMX)
    with pytest.raises(deepl.DeepLException, match=r"404, detail: .*sent before, or its address has expired"):
        client.upload_translation_memory_file(made, TMX)
    job = client.wait_until_translation_memory_job_done(made.job_id)
    assert job.result.skipped_segment_count == 1
    client.delete_translation_memory(job.result.translation_memory_id)


def test_files_and_announced_files_may_not_be_larger_than_documents(listen: Listen) -> None:
    address = listen(max_document_bytes=2_000, max_body_bytes=500)
    with closing(deepl.DeepLClient("any", server_url=address)) as client:
        with pytest.raises(deepl.DeepLException, match=r"413.*has 2001 bytes; the limit is 2000"):
            client.create_translation_memory_import("a.tmx", 2_001)
        made = client.create_translation_memory_import("a.tmx", 1)
        with pytest.raises(deepl.DeepLException, match=r"413.*the limit is 2000"):
            client.upload_translation_memory_file(made, b" " * 2_001)
        client.upload_translation_memory_file(made, tmx(*[("en", "dog", "de", "Hund")] * 10))
        assert client.wait_until_translation_memory_job_done(made.job_id).status == "completed"


def test_addresses_lead_below_a_proxys_path(listen: Listen, tmp_path: Path) -> None:
    root = f"{listen(root_path='/attend')}/attend"
    (tmp_path / "a.tmx").write_bytes(TMX)
    with closing(deepl.DeepLClient("any", server_url=root)) as client:
        memory = client.import_translation_memory_from_filepath(tmp_path / "a.tmx").result.translation_memory_id
        job = client.export_translation_memory_to_filepath(memory, tmp_path / "b.tmx")
    assert job.result.download_url.startswith(f"{root}/v3/")
    assert httpx.get(job.result.download_url).content == (tmp_path / "b.tmx").read_bytes()


def key(name: str) -> dict[str, str]:
    return {"authorization": f"DeepL-Auth-Key {name}"}


def address_in(url: str) -> str:
    """The address of a file without its host, which clients within the process do not need."""
    return httpx.URL(url).raw_path.decode()


async def begun(client: Client, **headers: str) -> tuple[str, str]:
    """The path of the job of a new import, and the address for its file."""
    body = {"source_file": {"file_name": "a.tmx", "content_length": len(TMX)}}
    response = await client.post(f"{JOBS}/import", json=body, headers=headers)
    assert response.status_code == 201, response.text
    made = response.json()
    return f"{JOBS}/jobs/{made['job_id']}", address_in(made["upload_url"])


async def finished(client: Client, path: str, status: str = "completed", **headers: str) -> Any:
    """A job, once it has this status."""
    async with asyncio.timeout(PATIENCE_S):
        while (job := (await client.get(path, headers=headers)).json())["results"][0]["status"] != status:
            await asyncio.sleep(LOOK_S)
    return job


@pytest.mark.anyio
async def test_an_import_belongs_to_the_key_that_began_it(serve: Serve, tmp_path: Path) -> None:
    reader = table("reader", "reader") + 'shared = { own = "read" }\n'
    (tmp_path / "keys").write_text(table("own", "own") + table("other", "other") + reader)
    async with serve(api_keys_file=tmp_path / "keys") as client:
        path, address = await begun(client, **key("own"))
        assert (await client.put(address, content=TMX)).status_code == 204
        job = await finished(client, path, **key("own"))
        (result,) = job["results"]
        memory = f"{JOBS}/{result['translation_memory_id']}"
        assert (await client.get(path, headers=key("reader"))).json() == job
        assert (await client.get(memory, headers=key("reader"))).status_code == 200
        assert (await client.get(path)).status_code == 403
        hidden = await client.get(path, headers=key("other"))
        assert (hidden.status_code, hidden.json()["message"][:25]) == (404, "No import or export of a ")
        assert (await client.get(memory, headers=key("other"))).status_code == 404
        assert (await client.post(f"{memory}/export", headers=key("other"))).status_code == 404
        exported = await client.post(f"{memory}/export", headers=key("reader"))
        path = f"{JOBS}/jobs/{exported.json()['job_id']}"
        assert (await client.get(path, headers=key("other"))).status_code == 404
        (result,) = (await client.get(path, headers=key("reader"))).json()["results"]
        fetched = await client.get(address_in(result["download_url"]))
        assert "Die Katz" in fetched.text


@pytest.mark.anyio
async def test_servers_share_imports_and_exports(serve: Serve, place: Path | str) -> None:
    shared: dict[str, Any] = {"data": place} if isinstance(place, Path) else {"database": place}
    async with serve(**shared) as one:
        path, address = await begun(one)
    async with serve(**shared) as restarted, serve(**shared) as other:
        assert (await restarted.put(address, content=TMX)).status_code == 204

        (result,) = (await finished(other, path))["results"]
        exported = await other.post(f"{JOBS}/{result['translation_memory_id']}/export")
        (result,) = (await restarted.get(f"{JOBS}/jobs/{exported.json()['job_id']}")).json()["results"]
        assert "Die Katz" in (await other.get(address_in(result["download_url"]))).text


@pytest.mark.anyio
async def test_addresses_expire(serve: Serve, tmp_path: Path) -> None:
    async with serve(data=tmp_path) as client:
        path, address = await begun(client)
        memory = (await client.post("/memories", json={"name": "Dogs", "source": "en", "target": "de"})).json()["id"]
        exported = await client.post(f"{JOBS}/{memory}/export")
        export = f"{JOBS}/jobs/{exported.json()['job_id']}"
        (result,) = (await client.get(export)).json()["results"]
        with closing(sqlite3.connect(tmp_path / FILE)) as database, database:
            database.execute("UPDATE attend_jobs SET deadline = 0")
        for answer in (await client.put(address, content=TMX), await client.get(address_in(result["download_url"]))):
            assert (answer.status_code, answer.json()["message"][-24:]) == (404, " its address has expired")
        for job in (path, export):
            (result,) = (await finished(client, job, "expired"))["results"]
        assert result["error"]["message"] == "The address of the file has expired"
