"""Attention, alignment and evidence over HTTP: what the tiny models say in numpy is what a client gets."""

import base64
import re
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from service.base.artifact import Artifact
from service.base.errors import InvalidFields, LimitExceeded
from service.schemas.requests import AttentionSelection
from service.tasks.attention import Selection
from service.text.tokenization import Tokenizer
from tests.service.conftest import Client, Serve, post, problem
from tests.service.tiny_artifacts import BOS, N_LAYERS, H, TinyTranslator
from tests.service.tiny_classifier import LABELS, TinyClassifier

pytestmark = pytest.mark.anyio

Array = NDArray[Any]

TEXTS = ["the dog runs", "a cat", "the old man sees a red horse on the beach."]


@pytest.fixture(scope="session")
def tokenizer(translator_artifact: Artifact) -> Tokenizer:
    return Tokenizer(translator_artifact.path("tokenizer.json"))


def weights_of(matrix: Any) -> Array:
    return np.array(matrix["weights"])


def read_ids(tokenizer: Tokenizer, translation: Any) -> list[int]:
    """What the decoder read to write a translation."""
    ids = {token: i for i, token in enumerate_tokens(tokenizer)}
    return [BOS, *(ids[token["token"]] for token in translation["attention"]["target"])][:-1]


def enumerate_tokens(tokenizer: Tokenizer) -> list[tuple[int, str]]:
    return [(i, tokenizer.target_tokens([i])[0].token) for i in tokenizer.target_vocabulary().values()]


async def test_every_matrix_is_that_of_the_text_alone(
    client: Client, tokenizer: Tokenizer, tiny_translator: TinyTranslator
) -> None:
    body = await post(client, "/translate", text=TEXTS, attention=True, max_target_tokens=12)
    for text, translation in zip(TEXTS, body["translations"], strict=True):
        (source_ids,) = tokenizer.encode([text])
        expected = tiny_translator.matrices(source_ids, read_ids(tokenizer, translation))
        found = translation["attention"]["matrices"]
        assert len(found) == H * (1 + 2 * N_LAYERS)
        for matrix in found:
            weights = weights_of(matrix)
            assert list(weights.shape) == matrix["shape"]
            np.testing.assert_allclose(weights, expected[matrix["kind"]][matrix["layer"], matrix["head"]], atol=1e-5)
            np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-6)
            if matrix["kind"] == "decoder":
                assert not np.triu(weights, 1).any(), "nothing is attended in the future"


async def test_rows_and_columns_have_their_tokens(client: Client) -> None:
    (translation,) = (await post(client, "/translate", text=TEXTS[2], attention=True))["translations"]
    attention = translation["attention"]
    assert [token["token"] for token in attention["source"]][-3:] == ["▁beach", ".", "</s>"]
    for token in attention["source"][:-1]:
        assert TEXTS[2][slice(*token["span"])] == token["token"].removeprefix("▁")
    for token in attention["target"]:
        assert translation["text"][slice(*token["span"])] == token["token"].removeprefix("▁").removesuffix("</s>")
    assert attention["prefix"][0] == {"token": "<s>", "span": [0, 0]}
    assert attention["prefix"][1:] == attention["target"][:-1]
    assert translation["target_tokens"] == len(attention["target"])
    for matrix in attention["matrices"]:
        assert matrix["shape"] == [len(attention[matrix["rows"]]), len(attention[matrix["columns"]])]


async def test_sentences_have_matrices_of_their_own_whose_places_are_told(client: Client) -> None:
    text = "The dog runs.\nA cat sees the man."
    (translation,) = (await post(client, "/translate", text=text, attention={"layers": "last", "heads": "mean"}))[
        "translations"
    ]
    attention = translation["attention"]
    crosses = [matrix for matrix in attention["matrices"] if matrix["kind"] == "cross"]
    assert len(crosses) == len(translation["segments"]) == 2
    for matrix, segment in zip(crosses, translation["segments"], strict=True):
        rows = attention["target"][matrix["first_row"] :][: matrix["shape"][0]]
        columns = attention["source"][matrix["first_column"] :][: matrix["shape"][1]]
        assert all(segment["source"][0] <= token["span"][0] <= segment["source"][1] for token in columns)
        assert all(segment["target"][0] <= token["span"][0] <= segment["target"][1] for token in rows)


async def test_marks_of_a_plain_text_change_no_place(client: Client) -> None:
    """With one of them in front of a sentence, and one in which there is an address."""
    text = "**The dog** runs.\nA _cat_ sees [the man](/a_b)."
    body = {"text": text, "attention": True, "alignment": True, "alternatives": 1, "beam_size": 2}
    (translation,) = (await post(client, "/translate", **body))["translations"]
    for translated in (translation, *translation["alternatives"]):
        assert [translated["text"].count(mark) for mark in ("**", "_", "[", "](/a_b)")] == [2, 3, 1, 1]
    shown = {"source": text, "target": translation["text"]}
    assert [text[slice(*segment["source"])] for segment in translation["segments"]] == text.split("\n")
    targets = [translation["text"][slice(*segment["target"])] for segment in translation["segments"]]
    assert targets == translation["text"].split("\n")
    for side in ("source", "target"):
        for word in translation["alignment"]["words"][side]:
            assert shown[side][slice(*word["span"])] == word["token"]
        for token in translation["attention"][side]:
            name = token["token"].removeprefix("▁")
            covered = shown[side][slice(*token["span"])]
            assert covered.casefold() == ("" if name == "</s>" else name.casefold()) or (
                name == "<unk>" and covered.isalpha()
            )
    assert "▁dog" in [token["token"] for token in translation["attention"]["source"]]


async def test_selections_are_parts_of_all_and_base64_is_the_same_numbers(client: Client) -> None:

    async def matrices(attention: Any) -> list[Any]:
        body = await post(client, "/translate", text=TEXTS[2], attention=attention)
        found: list[Any] = body["translations"][0]["attention"]["matrices"]
        return found

    everything = {(m["kind"], m["layer"], m["head"]): weights_of(m) for m in await matrices(True)}
    for matrix in await matrices({"kinds": ["cross"], "layers": [1], "heads": [2, 0], "encoding": "base64"}):
        weights = np.frombuffer(base64.b64decode(matrix["weights"]), "<f4").reshape(matrix["shape"])
        np.testing.assert_allclose(weights, everything["cross", 1, matrix["head"]], atol=1e-6)
    (mean,) = await matrices({"kinds": ["decoder"], "layers": "last", "heads": "mean"})
    assert (mean["layer"], mean["head"]) == (N_LAYERS - 1, "mean")
    expected = np.mean([everything["decoder", N_LAYERS - 1, head] for head in range(H)], axis=0)
    np.testing.assert_allclose(weights_of(mean), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("path", "attention", "part"),
    [
        ("/translate", {"layers": [2]}, "`attention.layers` .* 2 for cross attention of tiny-en-fr, not 2"),
        ("/translate", {"heads": [0, 3]}, "`attention.heads` .* 3 for tiny-en-fr, not 3"),
        ("/classify", {"kinds": ["cross"]}, "`attention.kinds` .* encoder for tiny-sentiment, not cross"),
    ],
)
async def test_missing_layers_and_heads_are_named(client: Client, path: str, attention: Any, part: str) -> None:
    found = problem(await client.post(path, json={"text": "a dog", "attention": attention}), InvalidFields)
    assert re.match(part, found["detail"])


def test_a_decoder_with_states_has_no_matrices_of_its_own(translator_artifact: Artifact) -> None:
    manifest = translator_artifact.manifest.model_copy(update={"decoder_self": "ssru"})
    assert Selection.of(AttentionSelection(), manifest).chosen.kinds == ("cross", "encoder")
    with pytest.raises(InvalidFields, match=r"must be encoder or cross for .*, not decoder"):
        Selection.of(AttentionSelection(kinds=["decoder"]), manifest)


async def test_too_many_numbers_are_refused_with_the_limit_and_the_way_to_fewer(serve: Serve) -> None:
    async with serve(max_answer_numbers=100) as client:
        response = await client.post("/translate", json={"text": TEXTS[2], "attention": True})
        assert re.search("100: .*`kinds`, `layers` or `heads`", problem(response, LimitExceeded)["detail"])
        assert "decode;dur=0.00" in response.headers["server-timing"], "nothing is translated before"
        few = {"kinds": ["encoder"], "heads": "mean"}
        await post(client, "/translate", text="a dog", attention=few)
        found = problem(await client.post("/classify", json={"text": TEXTS[2], "attention": True}), LimitExceeded)
        assert "100" in found["detail"]


async def test_alignment_follows_the_manifests_choice(
    client: Client, tokenizer: Tokenizer, tiny_translator: TinyTranslator
) -> None:
    body = await post(client, "/translate", text=TEXTS, attention=True, alignment=True, max_target_tokens=12)
    for text, translation in zip(TEXTS, body["translations"], strict=True):
        (source_ids,) = tokenizer.encode([text])
        cross = tiny_translator.matrices(source_ids, read_ids(tokenizer, translation))["cross"]
        weights = cross[1, [0, 2]].mean(axis=0)
        weights = np.concatenate([weights[1:], weights[-1:]])
        expected = [
            f"{s}-{t}"
            for t, s in enumerate(weights.argmax(axis=1).tolist())
            if s != len(source_ids) - 1 and translation["attention"]["target"][t]["token"] != "</s>"
        ]
        assert translation["alignment"]["pairs"].split() == expected
        assert translation["alignment"]["source"] == translation["attention"]["source"]


async def test_attention_is_returned_only_on_request(client: Client) -> None:
    (translation,) = (await post(client, "/translate", text="a dog"))["translations"]
    (prediction,) = (await post(client, "/classify", text="a dog"))["predictions"]
    assert not {"attention", "alignment"} & translation.keys()
    assert not {"attention", "evidence"} & prediction.keys()


async def test_white_space_has_no_tokens_to_attend(client: Client) -> None:
    (translation,) = (await post(client, "/translate", text=" \n", attention=True, alignment=True))["translations"]
    assert translation["text"] == " \n"
    assert translation["attention"] == {"source": [], "target": [], "prefix": [], "matrices": []}
    assert translation["alignment"]["pairs"] == translation["alignment"]["words"]["pairs"] == ""


async def test_evidence_is_what_the_logits_of_a_text_of_several_windows_lose_without_each_token(
    client: Client, tiny_classifier: TinyClassifier, artifacts: Any
) -> None:
    text = TEXTS[2]
    (ids,) = Tokenizer(artifacts / "tiny-sentiment" / "tokenizer.json").encode([text])
    (prediction,) = (await post(client, "/classify", text=text, evidence=True))["predictions"]
    evidence = prediction["evidence"]
    whole = tiny_classifier.logits(ids)
    assert evidence["logits"] == pytest.approx(dict(zip(LABELS, whole, strict=True)), rel=1e-4)
    for i, token in enumerate(evidence["tokens"]):
        lost = whole - tiny_classifier.logits([*ids[:i], *ids[i + 1 :]])
        assert token["contributions"] == pytest.approx(dict(zip(LABELS, lost, strict=True)), abs=1e-4)
    assert [text[slice(*token["span"])] for token in evidence["tokens"]] == [*text.removesuffix(".").split(), "."]


async def test_a_classifiers_windows_have_matrices_of_their_own(
    client: Client, tiny_classifier: TinyClassifier, artifacts: Any
) -> None:
    (ids,) = Tokenizer(artifacts / "tiny-sentiment" / "tokenizer.json").encode([TEXTS[2]])
    (prediction,) = (await post(client, "/classify", text=TEXTS[2], attention=True))["predictions"]
    matrices = prediction["attention"]["matrices"]
    assert {matrix["first_row"] for matrix in matrices} == {0, len(ids) // 2}
    for matrix in matrices:
        window = ids[matrix["first_row"] :][: matrix["shape"][0]]
        np.testing.assert_allclose(weights_of(matrix), tiny_classifier.matrix(window)[0, matrix["head"]], atol=1e-5)


async def test_a_text_of_thousands_of_symbols_costs_no_more_than_its_length(serve: Serve) -> None:
    """What each symbol was put beside was once a matrix over all of them: gigabytes."""
    text = "a dog" + "  🐶" * 5000
    async with serve(max_text_characters=10**6) as client:
        (translation,) = (await post(client, "/translate", text=text, alignment=True))["translations"]
        assert translation["text"].count("🐶") == 5000
        body = {"text": "dog 🐶 " * 501, "format": "html"}
        found = problem(await client.post("/translate", json=body), LimitExceeded)
    assert re.search("501 .* 500", found["detail"])
