"""A model of several languages over HTTP: its sources and targets begin with tokens that name languages.

English and French are told as to NLLB, by a first token of the source and one of the target; Breton as to OPUS-MT, by a
token of the source alone.
"""

import asyncio
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from service.base.errors import InvalidFields, SourceRequired, UnsupportedLanguagePair
from service.engine.search import Hypothesis
from service.text.tokenization import Tokenizer
from tests.service.conftest import Client, Serve, post, problem
from tests.service.tiny_artifacts import BOS, EOS, MAX_TARGET_TOKENS, TinyTranslator, V, language

pytestmark = pytest.mark.anyio

ENGLISH, FRENCH, BRETON = "eng_Latn", "fra_Latn", ">>bre<<"
SOURCES, TARGETS = ("en", "fr"), ("en", "fr", "br")
TEXT = "the old man sees a red horse."
PREFIXES = {
    ("en", "fr"): ([ENGLISH], [FRENCH]),
    ("fr", "en"): ([FRENCH], [ENGLISH]),
    ("en", "br"): ([ENGLISH, BRETON], []),
    ("fr", "br"): ([FRENCH, BRETON], []),
}
"""Of source and target, by direction."""


@pytest.fixture(scope="module")
def translator() -> TinyTranslator:
    return TinyTranslator(seed=11, languages=[ENGLISH, FRENCH, BRETON])


def saved(translator: TinyTranslator, directory: Path, **changes: Any) -> Path:
    english, french, breton = translator.languages.values()
    languages = {
        "sources": [language(ENGLISH, source_prefix=(english,)), language(FRENCH, source_prefix=(french,))],
        "targets": [
            language(ENGLISH, target_prefix=(english,)),
            language(FRENCH, target_prefix=(french,)),
            language(BRETON, source_prefix=(breton,)),
        ],
    }
    return translator.save(directory, "several", **(languages | changes))


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory: pytest.TempPathFactory, translator: TinyTranslator) -> Path:
    root = tmp_path_factory.mktemp("several")
    saved(translator, root / "several")
    return root


@pytest.fixture(scope="module")
def tokenizer(artifacts: Path) -> Tokenizer:
    return Tokenizer(artifacts / "several" / "tokenizer.json")


class Oracle:
    """What the numpy model makes of a sentence in a direction."""

    def __init__(self, translator: TinyTranslator, tokenizer: Tokenizer, source: str, target: str) -> None:
        self._translator, self._tokenizer = translator, tokenizer
        before_source, before_target = PREFIXES[source, target]
        self.source_prefix = tuple(translator.languages[name] for name in before_source)
        self.target_prefix = tuple(translator.languages[name] for name in before_target)

    def source_ids(self, sentence: str) -> list[int]:
        return [*self.source_prefix, *self._tokenizer.encode([sentence])[0]]

    def search(self, sentence: str, beam_size: int, n_best: int = 1) -> list[Hypothesis]:
        source_ids = self.source_ids(sentence)
        return self._translator.search(
            source_ids, MAX_TARGET_TOKENS, beam_size, 1.0, n_best, 1000.0, self.target_prefix
        )

    def text(self, hypothesis: Hypothesis) -> str:
        (text,) = self._tokenizer.decode([hypothesis.token_ids])
        return text


async def translate(client: Client, direction: tuple[str, str], text: Any = TEXT, **body: Any) -> Any:
    source, target = direction
    return await post(client, "/translate", text=text, source=source, target=target, **body)


async def test_models_and_answers_have_the_languages_by_their_tags(client: Client) -> None:
    [card] = (await client.get("/models")).json()["models"]
    answers = [await translate(client, direction) for direction in ((ENGLISH, "fr-CA"), ("EN", "fra"))]
    body = {"text": TEXT, "source": "en", "target": "xx"}
    refused = problem(await client.post("/translate", json=body), UnsupportedLanguagePair)
    assert (card["sources"], card["targets"]) == ([*SOURCES], [*TARGETS])
    assert {(answer["source"], answer["target"]) for answer in answers} == {("en", "fr")}
    assert "from en to xx" in refused["detail"]
    assert refused["detail"].endswith("en-fr (several), en-br (several), fr-en (several), fr-br (several)")


@pytest.mark.parametrize("beam_size", [1, 2, 4])
@pytest.mark.parametrize("direction", PREFIXES)
async def test_every_direction_begins_with_its_tokens_and_counts_them_with_probability_one(
    client: Client, translator: TinyTranslator, tokenizer: Tokenizer, direction: tuple[str, str], beam_size: int
) -> None:
    """As transformers counts a forced first token: in the length, and nothing in the sum."""
    oracle = Oracle(translator, tokenizer, *direction)
    n_best = min(2, beam_size)
    best, *others = oracle.search(TEXT, beam_size, n_best)
    answer = await translate(client, direction, beam_size=beam_size, alternatives=n_best - 1)
    [translation] = answer["translations"]
    assert tuple(best.token_ids[: len(oracle.target_prefix)]) == oracle.target_prefix
    assert translation["text"] == oracle.text(best)
    assert translation["score"] == pytest.approx(best.log_prob / len(best.token_ids), rel=1e-4)
    assert translation["target_tokens"] == len(best.token_ids)
    assert translation["source_tokens"] == len(oracle.source_ids(TEXT))
    others = [other for other in others if oracle.text(other) != translation["text"]]
    assert [other["text"] for other in translation.get("alternatives", [])] == [oracle.text(other) for other in others]


async def test_a_limit_leaves_a_token_beside_the_first_ones(client: Client) -> None:
    body = {"text": TEXT, "source": "en", "target": "fr", "max_target_tokens": 1}
    refused = problem(await client.post("/translate", json=body), InvalidFields)
    [two] = (await translate(client, ("en", "fr"), max_target_tokens=2))["translations"]
    [one] = (await translate(client, ("en", "br"), max_target_tokens=1))["translations"]
    assert re.match("`max_target_tokens` .*at least 2 .*1", refused["detail"])
    assert (two["target_tokens"], one["target_tokens"]) == (2, 1)


async def test_directions_share_steps_and_none_changes_another(client: Client) -> None:
    for beam_size in (1, 2):
        alone = [await translate(client, direction, beam_size=beam_size) for direction in PREFIXES]
        asked = [translate(client, direction, beam_size=beam_size) for direction in PREFIXES]
        assert await asyncio.gather(*asked) == alone
        assert len({answer["translations"][0]["text"] for answer in alone}) == len(PREFIXES)


@pytest.mark.parametrize("direction", PREFIXES)
async def test_the_first_tokens_are_attended_to_cover_nothing_and_are_aligned_with_nothing(
    client: Client, translator: TinyTranslator, tokenizer: Tokenizer, direction: tuple[str, str]
) -> None:
    oracle = Oracle(translator, tokenizer, *direction)
    before_source, before_target = PREFIXES[direction]
    answer = await translate(client, direction, attention=True, alignment=True, beam_size=2)
    [translation] = answer["translations"]
    attention, alignment = translation["attention"], translation["alignment"]
    assert attention["source"][: len(before_source)] == [{"token": name, "span": [0, 0]} for name in before_source]
    assert attention["target"][: len(before_target)] == [{"token": name, "span": [0, 0]} for name in before_target]
    for token in attention["source"][len(before_source) : -1]:
        assert TEXT[slice(*token["span"])] == token["token"].removeprefix("▁")
    for token in attention["target"][len(before_target) :]:
        name = token["token"].removeprefix("▁")
        covered = translation["text"][slice(*token["span"])]
        assert covered == ("" if name in {"</s>", *translator.languages} else name)
    source_ids, (best,) = oracle.source_ids(TEXT), oracle.search(TEXT, 2)
    expected = translator.matrices(source_ids, [BOS, *best.token_ids[:-1]])
    for matrix in attention["matrices"]:
        found = np.array(matrix["weights"])
        np.testing.assert_allclose(found, expected[matrix["kind"]][matrix["layer"], matrix["head"]], atol=1e-5)
    weights = expected["cross"][1, [0, 2]].mean(axis=0)
    weights = np.concatenate([weights[1:], weights[-1:]])[:, len(before_source) :]
    covers = [token["span"][0] < token["span"][1] for token in attention["target"]]
    links = [(s + len(before_source), t) for t, s in enumerate(weights.argmax(axis=1).tolist()) if covers[t]]
    assert alignment["pairs"].split() == [f"{s}-{t}" for s, t in links if s != len(source_ids) - 1]
    words = [word["token"] for word in alignment["words"]["source"]]
    assert words == [*TEXT.removesuffix(".").split(), "."]


async def test_every_sentence_begins_with_them(client: Client) -> None:
    text = "The dog runs.\nA cat sees the man."
    [translation] = (await translate(client, ("en", "fr"), text, attention=True))["translations"]
    attention, segments = translation["attention"], translation["segments"]
    for side, name in (("source", ENGLISH), ("target", FRENCH)):
        starts = [segment[side][0] for segment in segments]
        named = [token["span"] for token in attention[side] if token["token"] == name]
        assert named == [[start, start] for start in starts]
    assert [text[slice(*segment["source"])] for segment in segments] == text.split("\n")


@pytest.mark.parametrize("beam_size", [1, 2])
async def test_kept_spans_stay_where_they_belong(
    serve: Serve, tmp_path: Path, translator: TinyTranslator, tokenizer: Tokenizer, beam_size: int
) -> None:
    """By slots, which are looked for in what the model reads, or by alignment where they do not come out."""
    ids = {word: tokenizer.encode([word])[0][0] for word in ("field", "beach", "on")}
    pairs = [(ids[a], ids[b]) for a, b in (("field", "beach"), ("beach", "on"), ("on", "field"))]
    saved(translator, tmp_path / "several", slots=pairs)
    texts = ["{name} sees a dog.", "the dog runs in {name}.", "{a}{b}", "the man rides {name}"]
    async with serve(artifacts=tmp_path) as client:
        for direction in PREFIXES:
            answer = await translate(client, direction, texts, beam_size=beam_size, alignment=True, attention=True)
            for text, translation in zip(texts, answer["translations"], strict=True):
                for kept in ("{name}", "{a}", "{b}"):
                    assert translation["text"].count(kept) == text.count(kept)
                for token in translation["attention"]["source"][:-1]:
                    name, covered = token["token"].removeprefix("▁"), text[slice(*token["span"])]
                    assert covered.startswith("{") or covered == ("" if name in translator.languages else name)
                for token in translation["attention"]["target"]:
                    if token["token"] in translator.languages:
                        assert token["span"][0] == token["span"][1]


async def test_a_search_that_goes_back_for_a_slot_keeps_the_first_token(
    serve: Serve, tmp_path: Path, translator: TinyTranslator, tokenizer: Tokenizer
) -> None:
    """A slot that the model does not write by itself, and writes where it is nearest."""
    english_french = Oracle(translator, tokenizer, "en", "fr")
    [[field, *_]] = tokenizer.encode(["field"])
    text = "the dog sees {name} on the beach."
    read = text.replace("{name}", "field")
    missed = {*range(4, V)} - {*english_french.search(read, 1)[0].token_ids, field}
    went_back = 0
    for number, target in enumerate(sorted(missed)):
        saved(translator, tmp_path / f"{number}" / "several", slots=[(field, target)])
        async with serve(artifacts=tmp_path / f"{number}") as client:
            answer = await translate(client, ("en", "fr"), text, beam_size=1, attention=True)
        [translation] = answer["translations"]
        assert translation["text"].count("{name}") == 1
        tokens = translation["attention"]["target"]
        assert [token["token"] for token in tokens].count(FRENCH) == 1
        assert tokens[0] == {"token": FRENCH, "span": [0, 0]}
        ids = {tokenizer.target_tokens([i])[0].token: i for i in tokenizer.target_vocabulary().values()}
        written = [ids[token["token"]] for token in tokens]
        went_back += target in written
        expected = sum(
            float(translator.next_log_probs(english_french.source_ids(read), written[:place])[token])
            for place, token in enumerate(written)
            if place > 0
        )
        assert translation["score"] == pytest.approx(expected / len(written), rel=1e-3)
        if went_back == 2:
            break
    assert went_back == 2


async def test_sentences_are_split_where_they_are_too_long_with_their_first_tokens(
    serve: Serve, tmp_path: Path, translator: TinyTranslator, tokenizer: Tokenizer
) -> None:
    """This one would fit without them."""
    saved(translator, tmp_path / "several", limits={"max_source_tokens": 11, "max_target_tokens": MAX_TARGET_TOKENS})
    text = "the old man sees a red horse on the beach"
    async with serve(artifacts=tmp_path) as client:
        by_direction = {
            direction: (await translate(client, direction, text, attention={"kinds": ["encoder"]}))["translations"][0]
            for direction in (("en", "br"), ("en", "fr"))
        }
    for direction, translation in by_direction.items():
        oracle = Oracle(translator, tokenizer, *direction)
        parts = [text[slice(*segment["source"])] for segment in translation["segments"]]
        assert " ".join(parts) == text
        lengths = [len(oracle.source_ids(part)) for part in parts]
        assert len(tokenizer.encode([text])[0]) == 11 >= max(lengths)
        assert {tuple(m["shape"]) for m in translation["attention"]["matrices"]} == {(n, n) for n in lengths}
        assert translation["text"] == " ".join(oracle.text(oracle.search(part, 2)[0]) for part in parts)


async def test_embeddings_are_of_texts_in_a_language(
    client: Client, translator: TinyTranslator, tokenizer: Tokenizer
) -> None:
    body = {"text": TEXT, "pooling": "none", "normalize": False}
    refused = problem(await client.post("/embed", json=body), SourceRequired)
    answer = (await client.post("/embed", json=body | {"source": "fra"})).raise_for_status().json()
    assert "several reads 2 languages" in refused["detail"]
    [found] = answer["embeddings"]
    source_ids = [translator.languages[FRENCH], *tokenizer.encode([TEXT])[0]]
    np.testing.assert_allclose(found["embeddings"], translator.states(source_ids), atol=1e-4)
    assert found["tokens"][0] == {"token": FRENCH, "span": [0, 0]}
    assert [token["token"] for token in found["tokens"][1:3]] == ["▁the", "▁old"]
    assert source_ids[-1] == EOS
