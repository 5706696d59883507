"""Translation memories over HTTP: made, filled, read as files, and used."""

import asyncio
import threading
from typing import Any, cast

import httpx
import pytest
from lxml import etree

from service.base.errors import (
    InvalidFields,
    InvalidMemory,
    LimitExceeded,
    MemoryMismatch,
    RequestError,
    UnknownMemory,
    UnsupportedFileType,
)
from service.documents import memory_files
from service.http import memories as routes
from service.jobs import imports
from service.jobs.job import Job
from service.jobs.worker import DocumentJobs
from service.memories import store
from tests.service.conftest import Client, post, problem
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.anyio

TMX = b"""<?xml version="1.0"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en" segtype="sentence" datatype="plaintext"/><body>
<tu><prop type="x-context">menu</prop>
<tuv xml:lang="EN-US"><seg>The <bpt i="1">&lt;b></bpt>pump<ept i="1">&lt;/b></ept> runs.</seg>
</tuv>
<tuv xml:lang="FR-FR" changeid="ann"><seg>La pompe tourne.</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>Open <ph>{name}</ph>.</seg></tuv>
<tuv xml:lang="fr"><seg>Ouvrez <ph>{name}</ph>.</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>Only German</seg></tuv><tuv xml:lang="de"><seg>Nur Deutsch</seg></tuv></tu>
</body></tmx>"""
XLIFF = b"""<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file source-language="en"
 target-language="fr" original="x" datatype="plaintext"><body><trans-unit id="1">
 <source>The <g id="1">pump</g> runs.</source>
 <target>La <g id="1">pompe</g> tourne.</target></trans-unit><trans-unit id="2"><source>No</source></trans-unit></body>
 </file></xliff>"""
XLIFF_2 = b"""<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en" trgLang="fr"><file id="f">
 <unit id="u"><segment><source>The pump runs.</source>
 <target>La pompe tourne.</target></segment></unit></file></xliff>"""
PO = """msgid ""
msgstr "Language: fr\\n"

msgctxt "menu"
msgid "The pump runs."
msgstr "La pompe tourne."

#, fuzzy
msgid "Stop"
msgstr "x"
"""
PAIR = ("The pump runs.", "La pompe tourne.")


async def made(client: Client, **fields: Any) -> dict[str, Any]:
    response = await client.post("/memories", json={"name": "Manuals", "source": "en", "target": "fr", **fields})
    assert response.status_code == 201, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def uploaded(client: Client, name: str, data: bytes, **fields: str) -> httpx.Response:
    fields = fields or {"source": "en", "target": "fr"}
    return await client.post("/memories/file", files={"file": (name, data)}, data=fields)


async def segments_of(client: Client, memory_id: str) -> list[tuple[str, str]]:
    response = await client.get(f"/memories/{memory_id}/segments")
    return [(one["source"], one["target"]) for one in response.json()["segments"]]


async def test_a_memory_is_kept_until_it_is_deleted(client: Client) -> None:
    card = await made(client)
    assert card.keys() == {"id", "name", "source", "target", "created_at", "changed_at", "segment_count"}
    path = f"/memories/{card['id']}"
    assert (await client.get("/memories")).json() == {"memories": [card]}
    assert (await client.get(path)).json() == card
    body = {"segments": [{"source": PAIR[0], "target": PAIR[1], "context": "menu", "author": "ann"}]}
    assert (await post(client, f"{path}/segments", **body))["segment_count"] == 1
    (segment,) = (await client.get(f"{path}/segments")).json()["segments"]
    assert segment.pop("changed_at")
    assert segment == {**body["segments"][0], "reviewed": True}
    assert (await client.delete(f"{path}/segments", params={"source": PAIR[0]})).status_code == 204
    problem(await client.delete(f"{path}/segments", params={"source": PAIR[0]}), UnknownMemory)
    assert (await client.delete(path)).status_code == 204
    for call in (client.get, client.delete):
        assert card["id"] in problem(await call(path), UnknownMemory)["detail"]


@pytest.mark.parametrize(
    ("name", "data", "pairs"),
    [
        ("a.tmx", TMX, [PAIR, ("Open {name}.", "Ouvrez {name}.")]),
        (
            "a.tmx",
            TMX.decode().replace('<?xml version="1.0"?>', "").encode("utf-16"),
            [PAIR, ("Open {name}.", "Ouvrez {name}.")],
        ),
        ("a.xlf", XLIFF, [PAIR]),
        ("a.xliff", XLIFF_2, [PAIR]),
        ("a.po", PO.encode(), [PAIR]),
        ("a.csv", b"The pump runs.;La pompe tourne.\n", [PAIR]),
        ("a.csv", b'de,fr,en\nx,La pompe tourne.,"The pump runs."\n', [PAIR]),
        ("a.TSV", b"The pump runs.\tLa pompe tourne.\n", [PAIR]),
    ],
)
async def test_a_file_becomes_a_memory(client: Client, name: str, data: bytes, pairs: list[tuple[str, str]]) -> None:
    response = await uploaded(client, name, data)
    assert response.status_code == 201, response.text
    card = response.json()
    assert (card["name"], card["segment_count"], card["skipped"]) == ("a", len(pairs), 0)
    assert await segments_of(client, card["id"]) == pairs
    again = await uploaded(client, name, data, memory_id=card["id"])
    assert again.json()["segment_count"] == len(pairs), "the same sources are replaced"


@pytest.mark.parametrize(
    ("name", "data", "error", "detail"),
    [
        ("a.tmx", b"<tmx><body>", InvalidMemory, "not XML"),
        ("a.tmx", TMX.replace(b'"tmx14.dtd"', b'"tmx14.dtd" [<!ENTITY a "b">]'), InvalidMemory, "definition"),
        ("a.tmx", TMX.replace(b'"tmx14.dtd"', b'"file:///etc/passwd"'), InvalidMemory, "definition"),
        ("a.tmx", b'<!DOCTYPE tmx [<!ENTITY a "b">]><tmx>&a;</tmx>', InvalidMemory, "definition"),
        ("a.xlf", b"<!DOCTYPE xliff>" + XLIFF, InvalidMemory, "document type definition"),
        ("a.tmx", XLIFF, InvalidMemory, "but no TMX"),
        ("a.tmx", TMX.replace(b"fr", b"it").replace(b"FR-FR", b"it"), InvalidMemory, "no texts in both en and fr"),
        ("a.xlf", XLIFF.replace(b'"fr"', b'"de"'), InvalidMemory, "in de, not in fr"),
        ("a.po", b"msgid broken", InvalidMemory, "Line 1"),
        ("a.csv", b"\xff\xfe\x00", InvalidMemory, "not UTF-16"),
        ("a.tsv", b"alone\n", InvalidMemory, "Row 1 of the table"),
        ("a.txt", b"x", UnsupportedFileType, "available: .csv, .po"),
    ],
)
async def test_a_file_that_cannot_be_read_is_refused_and_leaves_nothing(
    client: Client, name: str, data: bytes, error: type[RequestError], detail: str
) -> None:
    assert detail in problem(await uploaded(client, name, data), error)["detail"]
    assert (await client.get("/memories")).json() == {"memories": []}


async def test_a_file_with_too_many_segments_is_refused(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MAX_SEGMENTS", 5)
    monkeypatch.setattr(memory_files, "MAX_SEGMENTS", 5)
    data = "".join(f"text {n}\ttexte {n}\n" for n in range(6)).encode()
    assert "more than 5 segments" in problem(await uploaded(client, "a.tsv", data), LimitExceeded)["detail"]
    data = b"<tmx><body>" + 6 * b"<tu></tu>"
    assert "has 6 segments" in problem(await uploaded(client, "a.tmx", data), LimitExceeded)["detail"]


async def test_a_large_file_is_read_in_the_background(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "LARGE", 10)
    monkeypatch.setattr(imports, "BATCH", 2)
    data = "".join(f"text {n}\ttexte {n}\n" for n in range(6)).encode()
    may_store, put = threading.Event(), store.Memories.put
    monkeypatch.setattr(store.Memories, "put", lambda *given: may_store.wait(10) and put(*given))
    card = (await uploaded(client, "a.tsv", data)).json()
    assert card["progress"] == 0
    state = DocumentJobs.state

    async def state_at_the_end(jobs: DocumentJobs, job_id: str) -> Job:
        may_store.set()
        while not (job := cast(Job, await state(jobs, job_id))).is_finished:
            await asyncio.sleep(0.01)
        return job

    with monkeypatch.context() as patch:
        patch.setattr(DocumentJobs, "state", state_at_the_end)
        async with asyncio.timeout(PATIENCE_S):
            last = (await client.get(f"/memories/{card['id']}")).json()
    assert (last["segment_count"], "progress" in last, "error" in last) == (6, False, False)
    card = (await uploaded(client, "a.tmx", TMX[:-30])).json()
    async with asyncio.timeout(PATIENCE_S):
        while "progress" in (last := (await client.get(f"/memories/{card['id']}")).json()):
            pass
        assert "not XML" in last["error"]
        assert last["code"] == InvalidMemory.code


async def test_a_memory_is_written_as_tmx(client: Client) -> None:
    card = (await uploaded(client, "a.tmx", TMX)).json()
    odd = {"source": 'a < b & "c"\x01', "target": "é 💚"}
    await post(client, f"/memories/{card['id']}/segments", segments=[odd])
    response = await client.get(f"/memories/{card['id']}/file")
    assert response.headers["content-type"].startswith("text/xml")
    root = etree.fromstring(response.content)
    assert [one.text for one in root.iterfind(".//tuv[@{http://www.w3.org/XML/1998/namespace}lang='fr']/seg")] == [
        "La pompe tourne.",
        "Ouvrez {name}.",
        "é 💚",
    ]
    again = (await uploaded(client, "b.tmx", response.content)).json()
    assert await segments_of(client, again["id"]) == [
        PAIR,
        ("Open {name}.", "Ouvrez {name}."),
        ('a < b & "c"\ufffd', "é 💚"),
    ]
    (first, *_) = (await client.get(f"/memories/{again['id']}/segments")).json()["segments"]
    assert (first["author"], first["context"]) == ("ann", "menu")


async def test_wrong_requests_are_refused(client: Client) -> None:
    card = await made(client)
    for segments in ([], [{"source": " ", "target": "x"}], [{"source": "x", "target": "y" * 10_001}]):
        response = await client.post(f"/memories/{card['id']}/segments", json={"segments": segments})
        problem(response, InvalidFields)
    problem(await client.get(f"/memories/{card['id']}/segments?after=x"), InvalidFields)
    problem(await client.get(f"/memories/{card['id']}/segments?reviewed=2"), InvalidFields)
    problem(await uploaded(client, "a.tmx", TMX, source="en"), InvalidFields)
    problem(await uploaded(client, "a.tmx", TMX, memory_id="none"), UnknownMemory)
    problem(await client.get("/memories/none/file"), UnknownMemory)
    problem(await client.post("/memories", json={"name": "x", "source": "en", "target": "en"}), InvalidMemory)


@pytest.fixture
async def memory_id(client: Client) -> str:
    card = await made(client)
    segments = [
        {"source": PAIR[0], "target": PAIR[1]},
        {"source": "It costs $5.", "target": "Ça coûte 5 $."},
        {"source": "Good morning. How are you?", "target": "Salut !"},
    ]
    await post(client, f"/memories/{card['id']}/segments", segments=segments)
    return str(card["id"])


async def translated(client: Client, text: str, memory_id: str, **fields: Any) -> Any:
    (translation,) = (await post(client, "/translate", text=text, memory_id=memory_id, **fields))["translations"]
    return translation


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("The  pump runs.", PAIR[1]),
        (" Good morning. How are you?\n", " Salut !\n"),
        ("The pump runs. It costs $12.50.", "La pompe tourne. Ça coûte 12,50\xa0$."),
        ("**The pump runs.** Good morning. How are you?", None),
    ],
)
async def test_stored_translations_are_the_answer(
    client: Client, memory_id: str, text: str, answer: str | None
) -> None:
    translation = await translated(client, text, memory_id)
    if answer is None:
        assert translation["text"].startswith("**La pompe tourne.** ")
    else:
        assert (translation["text"], translation["score"], translation["target_tokens"]) == (answer, 0, 0)
    assert {one["memory"] for one in translation["memory"]} == {memory_id}
    assert translation["memory"][0]["similarity"] == 100


async def test_other_sentences_are_translated_as_without_a_memory(client: Client, memory_id: str) -> None:
    first, last = "A man rides a horse.", "A dog sleeps."
    alone = [(await translated(client, text, memory_id))["text"] for text in (first, last)]
    translation = await translated(client, f"{first} {PAIR[0]} {last}", memory_id)
    assert translation["text"] == f"{alone[0]} {PAIR[1]} {alone[1]}"
    assert [one["source"] for one in translation["memory"]] == [PAIR[0]]


async def test_tags_keep_their_places(client: Client, memory_id: str) -> None:
    translation = await translated(client, f"<p><b>{PAIR[0]}</b></p>", memory_id, format="html")
    assert translation["text"] == f"<p><b>{PAIR[1]}</b></p>"


@pytest.mark.parametrize("options", [{"format": "html"}, {}])
async def test_a_text_that_is_stored_with_tags_is_found(
    client: Client, memory_id: str, options: dict[str, str]
) -> None:
    source, target = "The <b>old</b> pump &amp; 5 dogs.", "Les 5 chiens &amp; la <b>vieille</b> pompe."
    await post(client, f"/memories/{memory_id}/segments", segments=[{"source": source, "target": target}])
    for old, new in (("", ""), ("5", "7"), ("b>", "i>")):
        translation = await translated(client, source.replace(old, new), memory_id, **options)
        assert translation["text"] == target.replace(old, new)
        assert [one["source"] for one in translation["memory"]] == [source]


async def test_what_the_model_cannot_write_is_translated(client: Client, memory_id: str) -> None:
    pair = {"source": "A dog sleeps.", "target": "Собака спит."}
    await post(client, f"/memories/{memory_id}/segments", segments=[pair])
    without = (await post(client, "/translate", text="A <b>dog</b> sleeps.", format="html"))["translations"][0]
    translation = await translated(client, "A <b>dog</b> sleeps.", memory_id, format="html")
    assert translation["text"] == without["text"]
    assert [one["target"] for one in translation["matches"]] == [pair["target"]]
    assert "memory" not in translation


async def test_similar_texts_are_only_suggested(client: Client, memory_id: str) -> None:
    text = "The pumps run."
    plain = (await post(client, "/translate", text=text))["translations"][0]
    translation = await translated(client, text, memory_id)
    (match,) = translation.pop("matches")
    assert 75 <= match.pop("similarity") < 100
    assert match == {"source": PAIR[0], "target": PAIR[1], "memory": memory_id}
    assert translation == plain
    assert "matches" not in await translated(client, text, memory_id, memory_threshold=99)


async def test_a_document_uses_a_memory(client: Client, memory_id: str) -> None:
    file = {"file": ("a.txt", f"{PAIR[0]}\n\nGood morning. How are you?\n".encode())}
    response = await client.post("/translate/document", files=file, data={"memory_id": memory_id, "wait": "true"})
    assert response.text == f"{PAIR[1]}\n\nSalut !\n"


async def test_a_memory_that_cannot_be_used_is_refused(client: Client) -> None:
    other = await made(client, source="de")
    for memory_id, error in ((other["id"], MemoryMismatch), ("none", UnknownMemory), ("a,b,c,d,e,f", LimitExceeded)):
        problem(await client.post("/translate", json={"text": "x", "memory_id": memory_id}), error)
        file = {"file": ("a.txt", b"x")}
        response = await client.post("/translate/document", files=file, data={"memory_id": memory_id})
        problem(response, error)
