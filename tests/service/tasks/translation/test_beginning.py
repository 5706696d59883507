"""Translations that begin with given characters, over HTTP with the tiny model, whose tokens are whole words."""

import asyncio
import json
import math
from typing import Any

import numpy as np
import pytest

from service.base.errors import InvalidFields, RequestError, UnsupportedOption
from service.text.tokens import fewest_pieces
from tests.service.conftest import Client, post, problem
from tests.service.tiny_artifacts import MAX_TARGET_TOKENS, WORDS, TinyTranslator, tokenizer

pytestmark = pytest.mark.anyio

TEXTS = ["the dog runs. the cat sees the dog.", "a man rides a horse", "the old dog"]


async def translate(client: Client, text: Any, **options: Any) -> Any:
    return (await post(client, "/translate", text=text, **options))["translations"]


def cuts(text: str) -> list[str]:
    """The beginnings of a text that end with a word, before or behind a space, or are empty or all of it."""
    return [text[:i] for i in range(len(text) + 1) if i in (0, len(text)) or " " in text[i - 1 : i + 1]]


@pytest.mark.parametrize("text", ["two", "old man", "a man rides a horse", "a red horse rides"])
async def test_a_greedy_translation_is_the_completion_of_each_of_its_beginnings(client: Client, text: str) -> None:
    options = {"beam_size": 1, "split_sentences": False}  # the tiny model ends sentences anywhere
    [whole] = await translate(client, text, **options)
    prefixes = cuts(whole["text"])[: None if whole["finish_reason"] == "eos" else -2]
    completed = await translate(client, [text] * len(prefixes), target_prefix=prefixes, **options)
    assert [translation["text"] for translation in completed] == [whole["text"]] * len(prefixes)
    for translation in completed:
        assert [translation[key] for key in ("target_tokens", "finish_reason")] == [
            whole[key] for key in ("target_tokens", "finish_reason")
        ]


@pytest.mark.parametrize("options", [{"beam_size": 1}, {"beam_size": 3, "alternatives": 2}, {"split_sentences": False}])
async def test_an_answer_begins_with_exactly_these_characters_alone_and_in_a_crowd(
    client: Client, options: dict[str, Any]
) -> None:
    rng = np.random.default_rng(7)
    prefixes = [*(" ".join(rng.choice(WORDS, rng.integers(1, 9))) for _ in range(20)), "dog.\n\ncat  ", "the ", "! !"]
    texts = [TEXTS[i % 3] for i in range(len(prefixes))]
    together = await translate(client, texts, target_prefix=prefixes, checks=True, alignment=True, **options)
    for translation, prefix in zip(together, prefixes, strict=True):
        for answer in [translation, *translation.get("alternatives", [])]:
            assert answer["text"].startswith(prefix)
        for token in translation["alignment"]["target"]:
            assert 0 <= token["span"][0] <= token["span"][1] <= len(translation["text"])
    asked = [
        translate(client, text, target_prefix=prefix, checks=True, alignment=True, **options)
        for text, prefix in zip(texts, prefixes, strict=True)
    ]
    assert [alone for [alone] in await asyncio.gather(*asked)] == together


async def test_only_texts_with_a_prefix_change(client: Client) -> None:
    plain = await translate(client, TEXTS, alternatives=1, beam_size=3)
    mixed = await translate(client, TEXTS, alternatives=1, beam_size=3, target_prefix=[None, "dog the horse", None])
    assert [mixed[0], mixed[2]] == [plain[0], plain[2]]
    assert mixed[1]["text"].startswith("dog the horse")


async def test_alternatives_differ_in_the_first_token_behind_the_prefix(
    client: Client, tiny_translator: TinyTranslator
) -> None:
    source_ids = tokenizer(True).encode("the old dog").ids
    for prefix in ("dog ", "the cat ", "a man sees a "):
        written = tokenizer(False).encode(prefix.strip()).ids
        log_probs = tiny_translator.next_log_probs(source_ids, written)
        probable = {token: log_probs[tokenizer(True).token_to_id(f"Ġ{token}")] for token in WORDS if token.isalpha()}
        best = sorted(probable, key=lambda token: -probable[token])[:6]
        [answer] = await translate(client, "the old dog", target_prefix=prefix, alternatives=5, beam_size=1)
        [same] = await translate(client, "the old dog", target_prefix=prefix, beam_size=1)
        answers = [answer, *answer["alternatives"]]
        assert answer["text"] == same["text"]
        assert [
            other["text"].removeprefix(prefix).rstrip(".,!?").split(" ")[0].rstrip(".,!?") for other in answers
        ] == best
        for other, token in zip(answers, best, strict=True):
            assert other["probability"] == pytest.approx(math.exp(probable[token]), rel=1e-3)
            following = [*written, tokenizer(True).token_to_id(f"Ġ{token}")]
            [completed] = tiny_translator.search(source_ids, MAX_TARGET_TOKENS, 1, 1.0, 1, prefix=tuple(following))
            assert len(completed.token_ids) == other["target_tokens"]


async def test_pieces_of_a_stream_are_the_answer(client: Client) -> None:
    body = {"text": TEXTS[0] + " a man runs.", "target_prefix": "dog  horse.\nthe"}
    lines = (await client.post("/translate", json=body, headers={"Accept": "application/x-ndjson"})).text.splitlines()
    *pieces, answer = map(json.loads, lines)
    text = answer["translations"][0]["text"]
    assert "".join(piece["piece"] for piece in pieces) == text
    assert text.startswith(body["target_prefix"])
    assert [text] == [translation["text"] for translation in await translate(client, **body)]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"target_prefix": ["the", "a"]}, InvalidFields, "as many prefixes as `text` has texts, 1, not 2"),
        ({"target_prefix": ["the"], "text": ["a", "the"]}, InvalidFields, "as many prefixes"),
        ({"target_prefix": 3}, InvalidFields, "must be a string, or a list of strings and null"),
        ({"target_prefix": "the\x07"}, InvalidFields, r"control character '\\x07'"),
        ({"target_prefix": "the " * 3000}, InvalidFields, "at most 10000 characters"),
        ({"target_prefix": "the zebra "}, InvalidFields, "only characters that the model can write: 'the zebra '"),
        ({"target_prefix": "the " * 80}, InvalidFields, "fewer than 70 tokens, not 80"),
        ({"target_prefix": "the a", "max_target_tokens": 2}, InvalidFields, "fewer than 2 tokens, not 2"),
        ({"target_prefix": "43", "text": "42"}, InvalidFields, "a beginning of its text"),
        ({"target_prefix": "the", "format": "html"}, UnsupportedOption, "`format` text, not html"),
        ({"target_prefix": "the", "text": "a **dog**"}, UnsupportedOption, "without marks"),
        ({"target_prefix": "the", "memory_id": "x"}, RequestError, ""),
        ({"target_prefix": [None], "alternatives": 1, "beam_size": 1}, InvalidFields, "less than `beam_size`"),
    ],
)
async def test_what_cannot_be_is_refused_by_name(
    client: Client, options: dict[str, Any], error: type[RequestError], message: str
) -> None:
    body = {"text": "the dog", **options}
    response = await client.post("/translate", json=body)
    if error is not RequestError:
        assert message.replace("\\\\", "\\") in problem(response, error)["detail"]
    assert 400 <= response.status_code < 500
    assert (await translate(client, "the dog"))[0]["text"]


def test_as_few_pieces_as_possible_make_up_a_text() -> None:
    ids = {piece: n for n, piece in enumerate([b" a", b" ab", b"b", b"c", b"bc", b"abc", "é".encode()])}
    assert fewest_pieces(b" abc", ids) == [ids[b" ab"], ids[b"c"]]
    assert fewest_pieces(" aébc".encode(), ids) == [ids[b" a"], ids["é".encode()], ids[b"bc"]]
    assert fewest_pieces(b" ad", ids) is None
    assert fewest_pieces(b"", ids) == []
