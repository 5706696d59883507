"""Answers in pieces: they make the whole answer, each comes as soon as it is there, and who leaves frees the rest."""

import asyncio
import itertools
import json
import random
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.base.errors import (
    DeadlinePassed,
    InvalidFields,
    RequestError,
    UnknownModel,
    UnsupportedLanguagePair,
    UnsupportedOption,
)
from service.base.metrics import Metrics
from service.base.settings import Settings
from service.pool.pool import Pool
from service.tasks.translation import leg
from tests.service.conftest import Client, Serve, problem, server_of
from tests.service.http.test_pivots import through_english
from tests.service.in_process import load_in_process
from tests.waiting import until

pytestmark = pytest.mark.anyio

__all__ = ["through_english"]
TEXTS: list[dict[str, Any]] = [
    {"text": "the red dog runs. a cat sees the horse.  the dog sees!\n\n\tthe horse\n"},
    {"text": ["the dog. a cat.", "42 😀", "the man sees the beach. the field."]},
    {"text": "the **dog. a cat** sees. the *horse* runs. See https://example.org. [^1] a {name}! {b}the cat.{/b} x"},
    {"text": "犬が走る。猫が見る。「馬」", "keep": ["馬"]},
    {"text": "{n, plural, one {# dog runs. a cat.} other {# dogs run.}}"},
    {"text": "a dog\\nthe cat.\\nthe red dog don\\'t run. a cat &File"},
    {"text": "<p>the <b>dog. a cat</b> runs.</p><ul><li>a <i>cat</i><li>a dog &amp; x</ul>", "format": "html"},
    {"text": "<img alt='a dog'><p>the <a title='the cat'>dog</a>.</p><p title='a dog'>", "format": "html"},
    {
        "text": "<doc><p>the <B>dog. a cat</B> runs.</p><p>a <x/> cat</p>\n</doc>",
        "format": "xml",
        "tags": {"blocks": ["B"]},
    },
    {
        "text": "# the **dog**\n\na `cat`. the horse of {name}.\n\n| a | dog |\n|---|---|\n| the | cat |\n",
        "format": "markdown",
    },
    {"text": "the dog. a cat. the horse runs.", "alternatives": 2, "beam_size": 4, "alignment": True},
    {"text": "the dog. a cat. the horse runs.", "glossary": {"horse": "Ross"}, "split_sentences": False},
    {"text": ".", "source": "en"},
]


def events(body: str, media_type: str) -> list[dict[str, Any]]:
    if media_type == "application/x-ndjson":
        return [json.loads(line) for line in body.removesuffix("\n").split("\n")]
    found = []
    for event in body.removesuffix("\n\n").split("\n\n"):
        name, data = event.split("\n")
        content = json.loads(data.removeprefix("data: "))
        assert name == f"event: {'piece' if 'piece' in content else 'answer' if 'usage' in content else 'error'}"
        found.append(content)
    return found


async def streamed(client: Client, media_type: str = "application/x-ndjson", **body: Any) -> list[dict[str, Any]]:
    response = (await client.post("/translate", json=body, headers={"Accept": media_type})).raise_for_status()
    assert response.headers["Content-Type"].startswith(media_type)
    return events(response.text, media_type)


@pytest.mark.parametrize("body", TEXTS)
@pytest.mark.parametrize("media_type", ["text/event-stream", "application/x-ndjson"])
async def test_the_pieces_make_the_answer(client: Client, body: dict[str, Any], media_type: str) -> None:
    whole = (await client.post("/translate", json=body)).raise_for_status().json()
    *pieces, last = await streamed(client, media_type, **body)
    assert last == whole
    assert [piece["index"] for piece in pieces] == sorted(piece["index"] for piece in pieces)
    for i, translation in enumerate(whole["translations"]):
        assert "".join(piece["piece"] for piece in pieces if piece["index"] == i) == translation["text"]


ODD = [
    "the dog runs.", "a cat!", "the {name} sees", "see x_y.", "😀 the man", "don\\'t", "42", "(the", "- a", "a)", "...",
    "**old** dog", "**the dog.**", "*a cat*", "[a](b)", "~~a dog~~", "_x_", "<b>the", "{b}red{/b}", "`a b`", "a\\nthe",
    "@man #tag :smile:", "&File", "ファイル(&F)", "犬が走る。", "猫。", "https://example.org/a.", "%s", "Attend",
]  # fmt: skip
BETWEEN = [" ", "  ", "", "\n", "\t", "\u3000", "\u200b", " - "]


@pytest.mark.parametrize("target", ["en", "de"])
async def test_pieces_of_odd_texts_make_the_answer(serve: Serve, through_english: Path, target: str) -> None:
    chance = random.Random(5)
    texts = [
        "".join(chance.choice(ODD) + chance.choice(BETWEEN) for _ in range(chance.choice([2, 3, 5, 9])))
        for _ in range(40)
    ]
    body = {
        "text": texts,
        "source": "fr",
        "target": target,
        "beam_size": 1,
        "max_target_tokens": 8,
        "keep": ["dog runs"],
    }
    async with serve(artifacts=through_english) as client:
        whole = (await client.post("/translate", json=body)).raise_for_status().json()
        *pieces, last = await streamed(client, **body)
    assert last == whole
    for i, translation in enumerate(whole["translations"]):
        assert "".join(piece["piece"] for piece in pieces if piece["index"] == i) == translation["text"], texts[i]
        segments = translation.get("segments", [])
        for one, following in itertools.pairwise(segments):
            assert one["source"][1] <= following["source"][0]
            assert one["target"][1] <= following["target"][0], texts[i]


async def test_there_is_a_piece_for_each_sentence(client: Client) -> None:
    *pieces, _ = await streamed(client, text="the dog. " * 100)
    *lines, _ = await streamed(client, text="*the dog.*\n**a cat.**\n" * 9)
    *passages, _ = await streamed(client, text="<p>the dog. a cat." * 9, format="html")
    assert len(pieces) == 100
    assert len(lines) == 18
    assert len(passages) == 9


@pytest.mark.parametrize("source", ["fr", "auto"])
async def test_through_a_pivot_the_pieces_are_those_of_the_second_leg(
    serve: Serve, through_english: Path, source: str
) -> None:
    texts = ["le chien court sur la plage. le chat dort dans la maison.", "the dog runs on the beach.", "42"]
    body = {"text": texts if source == "auto" else texts[0], "source": source, "target": "de"}
    async with serve(artifacts=through_english) as client:
        whole = (await client.post("/translate", json=body)).raise_for_status().json()
        *pieces, last = await streamed(client, **body)
    assert last == whole
    assert [piece["index"] for piece in pieces] == ([0, 0, 1, 2] if source == "auto" else [0, 0])
    for i, translation in enumerate(whole["translations"]):
        assert "".join(piece["piece"] for piece in pieces if piece["index"] == i) == translation["text"]


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"text": ""}, InvalidFields),
        ({"text": "a", "attention": True}, UnsupportedOption),
        ({"text": "a", "target": "xx"}, UnsupportedLanguagePair),
        ({"text": "a", "model": "none"}, UnknownModel),
    ],
)
async def test_a_failure_before_the_first_piece_has_its_own_status(
    client: Client, body: dict[str, Any], error: type[RequestError]
) -> None:
    problem(await client.post("/translate", json=body, headers={"Accept": "text/event-stream"}), error)


async def test_an_error_behind_the_first_piece_is_the_last_event(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, n_runs = Pool.run, 0

    async def fails_later(self: Pool[Any], *given: Any, **options: Any) -> Any:
        nonlocal n_runs
        n_runs += 1
        if n_runs > 3:
            await asyncio.sleep(0)
            raise DeadlinePassed("too late")
        return await run(self, *given, **options)

    monkeypatch.setattr(Pool, "run", fails_later)
    *pieces, last = await streamed(client, text="the dog. a cat. the man. a horse. the field.")
    assert (await client.get("/health/ready")).status_code == 200
    assert pieces
    assert (last["status"], last["detail"]) == (504, "too late")


async def test_an_error_that_nobody_expected_is_the_last_event_too(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: Any) -> str:
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr(leg, "compose_answer", fails)
    response = await client.post("/translate", json={"text": "the dog"}, headers={"Accept": "application/x-ndjson"})
    *pieces, last = events(response.text, "application/x-ndjson")
    assert pieces
    assert last["status"] == 500
    assert "secret" not in last["detail"]
    assert f"request {last['request_id']} failed" in caplog.text


@pytest.mark.parametrize(
    ("accepts", "media_type"),
    [
        (["*/*"], "application/json"),
        (["text/event-stream;q=0"], "application/json"),
        (["text/event-stream; q=0.0, application/x-ndjson"], "application/x-ndjson"),
        (["application/json, text/event-stream; q=0.5"], "application/json"),
        (["application/json;q=0.9, text/event-stream"], "text/event-stream"),
        (["application/json, text/event-stream"], "text/event-stream"),
        (["application/json", "Text/Event-Stream"], "text/event-stream"),
        (["text/event-streams"], "application/json"),
    ],
)
async def test_a_client_that_likes_streams_no_less_than_json_gets_one(
    client: Client, accepts: list[str], media_type: str
) -> None:
    headers = [("Accept", accept) for accept in accepts]
    del client.headers["Accept"]
    response = await client.post("/translate", json={"text": "the dog"}, headers=headers)
    assert response.headers["Content-Type"].partition(";")[0] == media_type


async def test_no_character_of_a_text_ends_a_line(client: Client) -> None:
    body = {"text": "a\x85b\u2028c\u2029d", "keep": ["a\x85b\u2028c\u2029d"]}
    response = await client.post("/translate", json=body, headers={"Accept": "application/x-ndjson"})
    piece, answer = (json.loads(line) for line in response.text.splitlines())
    assert piece["piece"] == answer["translations"][0]["text"] == body["text"]


async def test_a_client_that_leaves_frees_the_rest(artifacts: Path) -> None:
    settings = Settings(artifacts=artifacts, provider="cpu", threads=1)
    metrics = Metrics()
    models = load_in_process(settings, metrics)
    server = server_of(models, metrics, settings, log_level="critical")
    serving = asyncio.create_task(server.serve())
    await until(lambda: server.started)
    port = server.servers[0].sockets[0].getsockname()[1]
    body = {"text": "the dog runs. " * 2000}
    async with (
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as client,
        client.stream("POST", "/translate", json=body, headers={"Accept": "application/x-ndjson"}) as response,
    ):
        assert json.loads(await anext(response.aiter_lines()))["index"] == 0
    gone = metrics.cancelled.labels("translation", "client_gone")._value
    await until(lambda: gone.get() and not sum(state.waiting + state.running for state in models.states()))
    read = metrics.registry.get_sample_value("attend_tokens_total", {"task": "translation", "side": "source"})
    assert read is not None
    assert 0 < read < 2000 * 5
    server.should_exit = True
    await serving
    assert gone.get() == 1, "one request, whatever pieces it had"
