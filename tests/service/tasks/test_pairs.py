"""Pairs of texts: /classify with `text_pair`, and /rerank, held against the tiny model in numpy."""

import math
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import tokenizers
from tokenizers import normalizers

from service.base.errors import (
    EmptyText,
    InvalidFields,
    RequestError,
    TextTooLong,
    TooManyTexts,
    UnknownModel,
    UnsupportedOption,
)
from service.text.tokenization import Tokenizer
from tests.service.conftest import Client, Serve, post, problem
from tests.service.oracle import EOS
from tests.service.tiny_artifacts import BOS
from tests.service.tiny_classifier import WINDOW, TinyClassifier

pytestmark = pytest.mark.anyio

NLI, RANKER, REVIEWS = "tiny-nli", "tiny-ranker", "tiny-sentiment"
FIRST = ["the dog", "a man runs on the beach", "a cat", "the old red horse runs in the field"]
SECOND = ["a cat", "the horse", "the old dog rides on the beach", "a man sees the red dog on the field"]


@pytest.fixture(scope="module")
def ranker() -> TinyClassifier:
    return TinyClassifier(seed=7, pooling="mean", labels=["near"], pairs=True)


@pytest.fixture(scope="module")
def nli() -> TinyClassifier:
    return TinyClassifier(seed=8, pooling="mean", pairs=True)


@pytest.fixture(scope="module")
def artifacts(
    tmp_path_factory: pytest.TempPathFactory,
    tiny_classifier: TinyClassifier,
    ranker: TinyClassifier,
    nli: TinyClassifier,
) -> Path:
    root = tmp_path_factory.mktemp("artifacts")
    tiny_classifier.save(root / REVIEWS, REVIEWS)
    ranker.save(root / RANKER, RANKER, label_activation="identity")
    nli.save(root / NLI, NLI)
    return root


@pytest.fixture
async def client(serve: Serve) -> AsyncIterator[httpx.AsyncClient]:
    async with serve(max_text_characters=60, max_texts=5) as client:
        yield client


@pytest.fixture(scope="module")
def words(artifacts: Path) -> Tokenizer:
    """The tokenizer without special tokens."""
    return Tokenizer(artifacts / REVIEWS / "tokenizer.json")


def read(words: Tokenizer, first: str, second: str) -> list[int]:
    """What a model reads of a pair that is short enough."""
    ids, of_second = words.encode([first, second])
    return [BOS, *ids, EOS, *of_second, EOS]


async def test_a_pair_is_read_as_one_sequence(client: Client, words: Tokenizer, nli: TinyClassifier) -> None:
    body = await post(client, "/classify", text=FIRST[:1], text_pair=SECOND[:1], model=NLI, logits=True)
    expected = nli.logits(read(words, FIRST[0], SECOND[0]))
    (found,) = body["predictions"]
    assert [found["logits"][label] for label in nli.labels] == pytest.approx(expected.tolist(), rel=1e-5, abs=1e-6)
    shares = np.exp(expected) / np.exp(expected).sum()
    assert [found["scores"][label] for label in nli.labels] == pytest.approx(shares.tolist(), rel=1e-5, abs=1e-6)
    assert (found["truncated"], found["tokens"], body["usage"]["tokens"]) == (False, 7, 7)


async def test_a_pair_has_the_same_answer_alone_and_in_a_crowd(client: Client) -> None:
    together = await post(client, "/classify", text=FIRST, text_pair=SECOND, model=NLI)
    alone = [
        await post(client, "/classify", text=first, text_pair=second, model=NLI)
        for first, second in zip(FIRST, SECOND, strict=True)
    ]
    assert together["predictions"] == [one["predictions"][0] for one in alone]


@pytest.mark.parametrize(
    ("first", "second", "direction", "kept"),
    [
        ("the dog", "a cat sees the old man", "right", ("the dog", "a cat")),
        ("the dog", "a cat sees the old man", "left", ("the dog", "old man")),
        ("a cat sees the old man", "the dog", "right", ("a cat", "the dog")),
        ("a cat sees the old man", "the red dog runs", "right", ("a cat", "the red")),
        ("a cat sees the old man", "the", "right", ("a cat sees", "the")),
    ],
)
async def test_the_longer_text_is_cut(
    client: Client,
    words: Tokenizer,
    ranker: TinyClassifier,
    first: str,
    second: str,
    direction: str,
    kept: tuple[str, str],
) -> None:
    body = await post(client, "/classify", text=first, text_pair=second, model=RANKER, truncation_direction=direction)
    (found,) = body["predictions"]
    assert found["score"] == pytest.approx(ranker.logits(read(words, *kept))[0], rel=1e-5, abs=1e-6)
    assert (found["truncated"], found["tokens"]) == (True, WINDOW)


async def test_texts_are_ranked_by_falling_score(client: Client, words: Tokenizer, ranker: TinyClassifier) -> None:
    texts = ["a cat", "the dog", "a man", "red dog", "the dog"]
    logits = [float(ranker.logits(read(words, "a dog", text))[0]) for text in texts]
    order = sorted(range(len(texts)), key=lambda i: -logits[i])
    found = await post(client, "/rerank", query="a dog", texts=texts)
    assert [one["index"] for one in found] == order
    assert [one["score"] for one in found] == pytest.approx(
        [1 / (1 + math.exp(-logits[i])) for i in order], rel=1e-5, abs=1e-6
    )
    assert found[0].keys() == {"index", "score"}
    raw = await post(client, "/rerank", query="a dog", texts=texts, raw_scores=True, return_text=True, top_n=2)
    assert [one["score"] for one in raw] == pytest.approx([logits[i] for i in order[:2]], rel=1e-5, abs=1e-6)
    assert [one["text"] for one in raw] == [texts[i] for i in order[:2]]


async def test_the_only_model_that_fits_is_chosen(serve: Serve, artifacts: Path, tmp_path: Path) -> None:
    for name in (REVIEWS, RANKER):
        shutil.copytree(artifacts / name, tmp_path / name)
    async with serve(artifacts=tmp_path) as client:
        assert (await post(client, "/classify", text="a cat"))["model"] == REVIEWS, "rerankers come last"
        assert (await post(client, "/classify", text="a cat", text_pair="a dog"))["model"] == RANKER
        models = (await client.get("/models")).json()["models"]
        assert {model["name"]: model["pairs"] for model in models} == {REVIEWS: False, RANKER: True}


async def test_logits_of_single_texts_are_given_on_request(
    client: Client, tiny_classifier: TinyClassifier, words: Tokenizer
) -> None:
    body = await post(client, "/classify", text="the dog", model=REVIEWS, logits=True)
    expected = tiny_classifier.logits(words.encode(["the dog"])[0])
    found = body["predictions"][0]["logits"]
    assert [found[label] for label in tiny_classifier.labels] == pytest.approx(expected.tolist(), rel=1e-5, abs=1e-6)
    assert "truncated" not in body["predictions"][0]


PAIR = {"text": "a cat", "text_pair": "the dog", "model": NLI}


@pytest.mark.parametrize(
    ("path", "body", "error", "message"),
    [
        ("classify", PAIR | {"text_pair": ["a", "a"]}, InvalidFields, "`text_pair` must have as many texts as `text`, 1, not 2"),  # noqa: E501
        ("classify", PAIR | {"text": ["a", "a"]}, InvalidFields, "`text_pair` must have as many texts as `text`, 2, not 1"),  # noqa: E501
        ("classify", PAIR | {"text_pair": ""}, InvalidFields, "`text_pair` must not be empty"),
        ("classify", PAIR | {"text_pair": " "}, EmptyText, "Text 0 of `text_pair` is white space only"),
        ("classify", PAIR | {"model": REVIEWS}, UnsupportedOption, f"`text_pair` is not supported: {REVIEWS} reads single texts; available: tiny-"),  # noqa: E501
        ("classify", PAIR | {"evidence": True}, UnsupportedOption, "`evidence` of pairs is not supported"),
        ("classify", PAIR | {"attention": True}, UnsupportedOption, "`attention` of pairs is not supported"),
        ("classify", PAIR | {"text": "a man runs on the beach", "truncate": False}, TextTooLong, "A pair of texts has 11 tokens; the limit is 7: "),  # noqa: E501
        ("classify", PAIR | {"truncation_direction": "up"}, InvalidFields, "`truncation_direction` must be 'left' or 'right'"),  # noqa: E501
        ("rerank", {"query": "a", "texts": ["a"], "model": NLI}, UnknownModel, f"No model named '{NLI}' can rerank here; available: {RANKER} ({NLI} can classify and embed)"),  # noqa: E501
        ("rerank", {"query": " ", "texts": ["a"]}, InvalidFields, "`query` must not be white space only"),
        ("rerank", {"query": "a", "texts": ["a", " "]}, EmptyText, "Text 1 of `texts` is white space only"),
        ("rerank", {"query": "a", "texts": []}, InvalidFields, "`texts` must have at least 1 item, not 0"),
        ("rerank", {"query": "a", "texts": ["a"] * 6}, TooManyTexts, "has 6 texts; the limit is 5"),
        ("rerank", {"query": "a", "texts": ["a" * 61]}, TextTooLong, "has 61 characters; the limit is 60"),
        ("rerank", {"query": "a" * 61, "texts": ["a"]}, TextTooLong, "has 61 characters; the limit is 60"),
    ],
)  # fmt: skip
async def test_unsupported_options_of_pairs_are_named(
    client: Client, path: str, body: dict[str, Any], error: type[RequestError], message: str
) -> None:
    assert message in problem(await client.post(f"/{path}", json=body), error)["detail"]


def test_the_field_of_a_text_without_tokens_is_named(tmp_path: Path, artifacts: Path) -> None:
    tokenizer = tokenizers.Tokenizer.from_file(str(artifacts / NLI / "tokenizer.json"))
    without_hidden = [normalizers.BertNormalizer(), tokenizer.normalizer]
    tokenizer.normalizer = normalizers.Sequence([one for one in without_hidden if one is not None])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(EmptyText, match=r"A text of `query` has no tokens to read: '\\u200b'"):
        Tokenizer(tmp_path / "tokenizer.json").own_ids("\u200b", "query")


async def test_the_query_of_many_texts_is_tokenized_once(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    read, own_ids = [], Tokenizer.own_ids

    def counted(tokenizer: Tokenizer, text: str, field: str) -> list[int]:
        read.append((field, text))
        return own_ids(tokenizer, text, field)

    monkeypatch.setattr(Tokenizer, "own_ids", counted)
    await post(client, "/rerank", query="a dog", texts=["a", "the", "a"])
    assert sorted(read) == [("query", "a dog"), ("texts", "a"), ("texts", "the")]
