"""The HTTP contract over the whole application, with real graphs behind it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from service.base.artifact import Artifact
from service.base.errors import Draining, EmptyText, NotReady
from service.base.metrics import Metrics
from service.base.settings import Settings
from service.engine.search import Hypothesis
from service.front.assembly import load_catalog
from service.text.tokenization import Tokenizer
from tests.service.conftest import Client, Serve, problem
from tests.service.tiny_artifacts import MAX_SOURCE_TOKENS, MAX_TARGET_TOKENS, WORDS, TinyTranslator, language
from tests.service.tiny_classifier import LABELS, TinyClassifier

pytestmark = pytest.mark.anyio

DECODING = 2, 1.0
"""The tiny translator's beam size and length penalty where a request names none."""


class Oracle:
    """What the service must say about one sentence, from the numpy model."""

    def __init__(self, artifact: Artifact, translator: TinyTranslator) -> None:
        self.tokenizer = Tokenizer(artifact.path("tokenizer.json"))
        self._translator = translator

    def __call__(self, sentence: str) -> tuple[str, float, int, int]:
        """Text, log-probability, source tokens, target tokens."""
        (source_ids,) = self.tokenizer.encode([sentence])
        ((text, best),) = self.search(sentence, *DECODING, n_best=1)
        return text, best.log_prob, len(source_ids), len(best.token_ids)

    def search(self, sentence: str, beam_size: int, length_penalty: float, n_best: int) -> list[tuple[str, Hypothesis]]:
        """The n_best with their texts, best first."""
        (source_ids,) = self.tokenizer.encode([sentence])
        found = self._translator.search(source_ids, MAX_TARGET_TOKENS, beam_size, length_penalty, n_best)
        texts = self.tokenizer.decode([hypothesis.token_ids for hypothesis in found])
        return list(zip(texts, found, strict=True))


@pytest.fixture
def oracle(translator_artifact: Artifact, tiny_translator: TinyTranslator) -> Oracle:
    return Oracle(translator_artifact, tiny_translator)


async def test_one_sentence_is_translated(client: Client, oracle: Oracle) -> None:
    response = await client.post("/translate", json={"text": "the red dog runs"})
    text, log_prob, source_tokens, target_tokens = oracle("the red dog runs")
    assert response.status_code == 200
    body = response.json()
    (translation,) = body.pop("translations")
    assert translation.pop("score") == pytest.approx(log_prob / target_tokens, rel=1e-4)
    assert translation.pop("finish_reason") in {"eos", "length", "repetition"}
    assert translation == {"text": text, "source_tokens": source_tokens, "target_tokens": target_tokens}
    usage = {"characters": 16, "source_tokens": source_tokens, "target_tokens": target_tokens}
    assert body == {"model": "tiny-en-fr", "source": "en", "target": "fr", "usage": usage}


async def test_sentences_are_translated_alone_and_joined_with_their_own_white_space(
    client: Client, oracle: Oracle
) -> None:
    text = "  The old dog runs.  A red cat sees.\n\n\tthe horse\n"
    (translation,) = (await client.post("/translate", json={"text": text})).json()["translations"]
    sentences = ["The old dog runs.", "A red cat sees.", "the horse"]
    first, second, third = (oracle(sentence)[0] for sentence in sentences)
    assert translation["text"] == f"  {first}  {second}\n\n\t{third}\n"
    assert [text[slice(*segment["source"])] for segment in translation["segments"]] == sentences
    targets = [translation["text"][slice(*segment["target"])] for segment in translation["segments"]]
    assert targets == [first, second, third]
    assert translation["source_tokens"] == sum(oracle(sentence)[2] for sentence in sentences)


async def test_characters_that_nobody_sees_change_no_translation(client: Client) -> None:
    text = "The old do\u200dg\u2062 runs.\ufe0f A\u034f red cat sees."
    strange, plain = (
        await client.post("/translate", json={"text": [text, "The old dog runs. A red cat sees."]})
    ).json()["translations"]
    assert strange["text"] == plain["text"]
    assert [text[slice(*segment["source"])] for segment in strange["segments"]] == [
        "The old do\u200dg\u2062 runs.",
        "A\u034f red cat sees.",
    ]


async def test_splitting_can_be_turned_off(client: Client, oracle: Oracle) -> None:
    response = await client.post("/translate", json={"text": "the dog runs. a cat", "split_sentences": False})
    (translation,) = response.json()["translations"]
    assert translation["text"] == oracle("the dog runs. a cat")[0]
    assert "segments" not in translation


@pytest.mark.parametrize(
    "options",
    [{}, {"format": "html"}, {"format": "xml"}, {"format": "markdown"}, {"split_sentences": False}, {"source": "auto"},
     {"alternatives": 1}, {"alignment": True}, {"attention": True}, {"checks": True}, {"keep": ["dog"]}],
)  # fmt: skip
async def test_an_empty_text_of_a_list_keeps_its_place_and_changes_no_other(client: Client, options: Any) -> None:
    texts = ["", "the dog runs", "", "a cat"]
    of_all, of_written = [
        (await client.post("/translate", json={"text": each, "target": "fr"} | options)).raise_for_status().json()
        for each in (texts, [*filter(None, texts)])
    ]
    translations = of_all["translations"]
    assert [one["text"] for one in translations[::2]] == ["", ""]
    assert translations[1::2] == of_written["translations"]
    assert of_all["usage"] == of_written["usage"]


async def test_texts_that_are_all_empty_need_no_model(client: Client) -> None:
    answer = (await client.post("/translate", json={"text": [""], "target": "fr"})).raise_for_status().json()
    assert [one["text"] for one in answer["translations"]] == [""]
    detections = (await client.post("/detect", json={"text": ["", "the dog runs on the beach"]})).json()["detections"]
    assert [bool(one["languages"]) for one in detections] == [False, True]


async def test_null_is_an_option_that_is_left_out(client: Client) -> None:
    body = {"text": "the dog runs", "target": "fr"}
    nulls = dict.fromkeys(
        ("source", "format", "alternatives", "alignment", "keep", "glossary", "split_sentences", "pivot")
    )
    plain, with_nulls = [(await client.post("/translate", json=body | more)).json() for more in ({}, nulls)]
    assert with_nulls == plain


async def test_terms_of_a_request_come_out_as_it_says(client: Client) -> None:
    body = {"text": "the dog of XYZ-12.\ndog", "keep": [{"pattern": "[A-Z]+-[0-9]+"}], "glossary": {"dog": "clebs"}}
    for more in ({}, {"format": "html"}, {"format": "markdown"}):
        (translation,) = (await client.post("/translate", json=body | more)).raise_for_status().json()["translations"]
        assert (translation["text"].count("clebs"), translation["text"].count("XYZ-12")) == (2, 1)


@pytest.mark.parametrize(("target", "words"), [("ru", "Спасибо большое"), ("ja", "ありがとう"), ("fr", "Спасибо")])
async def test_words_in_other_letters_come_back_as_they_are(
    serve: Serve, tiny_translator: TinyTranslator, tmp_path: Path, target: str, words: str
) -> None:
    tiny_translator.save(tmp_path / "tiny", sources=[language("en")], targets=[language(target)])
    async with serve(artifacts=tmp_path) as client:
        alone, inside = (await client.post("/translate", json={"text": [words, f"The dog: {words}"]})).json()[
            "translations"
        ]
    assert alone["text"] == words
    assert words in inside["text"]


@pytest.mark.parametrize("text", [" ", "\n\t \r\n", "\u3000"])
async def test_white_space_only_comes_back_as_it_is(client: Client, text: str) -> None:
    body = {"text": text, "beam_size": 4, "alternatives": 3}
    (translation,) = (await client.post("/translate", json=body)).json()["translations"]
    assert translation == {
        "text": text, "score": 0, "finish_reason": "eos", "source_tokens": 0, "target_tokens": 0
    }  # fmt: skip


async def test_a_sentence_over_the_models_limit_is_split_and_nothing_is_lost(client: Client, oracle: Oracle) -> None:
    sentence = " ".join(["the dog runs , a cat sees the old man"] * 12)  # 120 tokens, no end in sight
    (translation,) = (await client.post("/translate", json={"text": sentence})).json()["translations"]
    pieces = [sentence[slice(*segment["source"])] for segment in translation["segments"]]
    assert " ".join(pieces) == sentence
    assert all(oracle(piece)[2] <= MAX_SOURCE_TOKENS for piece in pieces)
    assert translation["text"] == " ".join(oracle(piece)[0] for piece in pieces)


async def test_a_limit_on_target_tokens_is_told_as_the_reason(client: Client) -> None:
    body = {"text": "a red horse", "max_target_tokens": 2}
    (translation,) = (await client.post("/translate", json=body)).json()["translations"]
    assert translation["finish_reason"] == "length"
    assert translation["target_tokens"] == 2


@pytest.mark.parametrize(("beam_size", "length_penalty"), [(1, 1.0), (2, 0.0), (5, 0.6), (8, 2.0)])
async def test_a_search_is_as_wide_and_as_fond_of_length_as_the_request_says(
    client: Client, oracle: Oracle, beam_size: int, length_penalty: float
) -> None:
    sentence = "the old man sees a red horse"
    body = {
        "text": sentence, "beam_size": beam_size, "length_penalty": length_penalty, "alternatives": beam_size - 1
    }  # fmt: skip
    (translation,) = (await client.post("/translate", json=body)).json()["translations"]
    expected = oracle.search(sentence, beam_size, length_penalty, n_best=beam_size)
    found = [translation, *translation.get("alternatives", [])]
    assert [candidate["text"] for candidate in found] == [text for text, _ in expected]
    assert [candidate["finish_reason"] for candidate in found] == [h.finish_reason for _, h in expected]
    assert [candidate["target_tokens"] for candidate in found] == [len(h.token_ids) for _, h in expected]
    scores = [hypothesis.log_prob / len(hypothesis.token_ids) for _, hypothesis in expected]
    assert [candidate["score"] for candidate in found] == pytest.approx(scores, abs=1e-4)


async def test_alternatives_are_different_and_sorted_and_come_only_where_asked_for(client: Client) -> None:
    body = {"text": "a dog runs on the beach", "beam_size": 8, "length_penalty": 1.0}
    (plain,) = (await client.post("/translate", json=body)).json()["translations"]
    (asked,) = (await client.post("/translate", json={**body, "alternatives": 5})).json()["translations"]
    alternatives = asked.pop("alternatives")
    assert "alternatives" not in plain
    ranks = [(found["finish_reason"] == "eos", found["score"]) for found in [asked, *alternatives]]
    assert ranks == sorted(ranks, reverse=True)
    assert len({found["text"] for found in [asked, *alternatives]}) == 6


async def test_alternatives_of_a_text_are_those_of_its_sentences_with_the_white_space_between_them(
    client: Client, oracle: Oracle
) -> None:
    body = {"text": " The old dog runs.\n\n A red cat sees.", "beam_size": 4, "alternatives": 2}
    (translation,) = (await client.post("/translate", json=body)).json()["translations"]
    first, second = (oracle.search(sentence, 4, 1.0, n_best=3) for sentence in ("The old dog runs.", "A red cat sees."))
    expected = [f" {one}\n\n {other}" for (one, _), (other, _) in zip(first, second, strict=True)]
    assert [translation["text"], *(found["text"] for found in translation["alternatives"])] == expected


@pytest.mark.process
async def test_several_workers_answer_as_one_does(serve: Serve, artifacts: Path) -> None:
    texts = [" ".join(np.random.default_rng(seed).choice(WORDS, 9)) for seed in range(9)]
    answers = []
    settings = Settings(artifacts=artifacts, provider="cpu", workers=2)
    for models in (None, await asyncio.to_thread(load_catalog, settings, Metrics())):
        async with serve(models) as client:
            answers.append((await client.post("/translate", json={"text": texts, "beam_size": 3})).json())
    for own, others in zip(*(answer["translations"] for answer in answers), strict=True):
        assert others.pop("score") == pytest.approx(own.pop("score"), abs=1e-4)
        assert others == own


async def test_many_clients_at_once_get_the_answers_of_one_at_a_time(serve: Serve) -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, rng.integers(1, 60))) for _ in range(64)]
    async with serve(rows=8) as client:
        alone = [(await client.post("/translate", json={"text": text})).json() for text in texts]
        together = await asyncio.gather(*[client.post("/translate", json={"text": text}) for text in texts])
    for before, after in zip(alone, [response.json() for response in together], strict=True):
        (expected,), (found,) = before["translations"], after["translations"]
        assert found.pop("score") == pytest.approx(expected.pop("score"), abs=1e-4)
        assert found == expected


@pytest.mark.parametrize("n_words", [1, 7, 8, 30])
async def test_a_text_is_classified_whole_however_many_windows_it_takes(
    client: Client, tiny_classifier: TinyClassifier, artifacts: Any, n_words: int
) -> None:
    text = " ".join(np.random.default_rng(n_words).choice(WORDS, n_words))
    body = (await client.post("/classify", json={"text": text})).json()
    (ids,) = Tokenizer(artifacts / "tiny-sentiment" / "tokenizer.json").encode([text])
    logits = tiny_classifier.logits(ids)
    expected = dict(zip(LABELS, np.exp(logits) / np.exp(logits).sum(), strict=True))
    (prediction,) = body["predictions"]
    assert prediction["scores"] == pytest.approx(expected, rel=1e-4)
    assert list(prediction["scores"].values()) == sorted(prediction["scores"].values(), reverse=True)
    assert prediction["label"] == max(expected, key=lambda label: expected[label])
    assert prediction["score"] == prediction["scores"][prediction["label"]]
    assert prediction["tokens"] == body["usage"]["tokens"] == n_words
    assert body["model"] == "tiny-sentiment"


@pytest.mark.parametrize("path", ["/health/live", "/health/ready", "/metrics", "/models"])
async def test_a_head_is_answered_as_a_get_is(client: Client, path: str) -> None:
    assert (await client.head(path)).status_code == 200
    assert (await client.head("/translate")).status_code == 405


async def test_white_space_has_nothing_to_classify(client: Client) -> None:
    problem(await client.post("/classify", json={"text": " \n"}), EmptyText)


async def test_models_are_listed_with_what_their_users_need(client: Client) -> None:
    translator, classifier = (await client.get("/models")).json()["models"]
    assert translator == {
        "name": "tiny-en-fr",
        "task": "translation",
        "sources": ["en"],
        "targets": ["fr"],
        "labels": [],
        "layers": {"encoder": 1, "decoder": 2},
        "attention": {"encoder": 1, "cross": 2, "decoder": 2},
        "heads": 3,
        "limits": {"max_source_tokens": MAX_SOURCE_TOKENS, "max_target_tokens": MAX_TARGET_TOKENS},
        "precision": "fp32",
        "provider": "cpu",
        "small": False,
        "decoding": {"beam_size": 2, "length_penalty": 1.0, "beam_threshold": 1000.0, "stop": "empty"},
        "evaluation": {"tiny-test": {"bleu": 12.5}},
        "default_for": ["translate"],
    }
    assert classifier["default_for"] == ["classify"]
    assert classifier["labels"] == LABELS
    assert classifier["layers"] == {"encoder": 1}


async def test_draining_is_told_by_readiness_and_by_new_requests(client: Client) -> None:
    ready = (await client.get("/health/ready")).json()
    assert ready["status"] == "ready"
    assert all(0 <= age_s < 60 for age_s in ready["proof_ages_s"].values())
    client._transport.app.state.serving.drain()  # type: ignore[attr-defined]
    not_ready = await client.get("/health/ready")
    assert "draining" in problem(not_ready, NotReady)["detail"]
    refused = await client.post("/translate", json={"text": "a"})
    problem(refused, Draining)
    assert int(refused.headers["Retry-After"]) > 0
    alive = await client.get("/health/live")
    assert alive.json() == {"status": "live"}
    assert {answer.headers["Connection"] for answer in (not_ready, refused, alive)} == {"close"}


async def test_requests_are_counted_once_under_their_route(client: Client) -> None:
    await client.post("/translate", json={"text": "the dog runs"})
    await client.post("/translate", json={"text": ""})
    await client.get("/nowhere/else")
    response = await client.get("/metrics")
    lines = response.text.splitlines()
    assert response.headers["content-type"].startswith("text/plain")
    assert 'attend_requests_total{dialect="native",route="/translate",status="200"} 1.0' in lines
    assert 'attend_requests_total{dialect="native",route="/translate",status="422"} 1.0' in lines
    assert 'attend_requests_total{dialect="native",route="unmatched",status="404"} 1.0' in lines
    assert 'attend_request_seconds_count{dialect="native",route="/translate"} 2.0' in lines
    assert 'attend_tokens_total{side="source",task="translation"} 4.0' in lines
    assert 'attend_model_info{model="tiny-en-fr",precision="fp32",provider="cpu",task="translation"} 1.0' in lines


async def test_every_metric_of_the_contract_exists(client: Client) -> None:
    metrics = (await client.get("/metrics")).text
    found = {line.split()[2].removeprefix("attend_") for line in metrics.splitlines() if line.startswith("# HELP")}
    assert found == {
        "requests_total", "request_seconds", "queue_seconds", "inference_seconds", "waiting", "running", "rows",
        "key_requests_total", "key_characters_total", "rates_without_store_total", "database_failures_total",
        "tokens_total", "characters_total", "padding_tokens_total", "decode_steps_total", "batch_rows",
        "cancelled_total", "rejected_total", "connections", "connections_closed_total", "build_info", "model_info",
        "model_ready", "model_files_changed", "ready", "workers_ended_total", "model_loaded", "device_ready",
        "memory_bytes", "cache_sentences_total", "cache_evictions_total", "cache_bytes", "live_sockets",
    }  # fmt: skip


async def test_the_time_of_a_translation_is_told(client: Client) -> None:
    timing = (await client.post("/translate", json={"text": "the dog"})).headers["Server-Timing"]
    parts = {part.split(";dur=")[0]: float(part.split(";dur=")[1]) for part in timing.split(", ")}
    assert parts.keys() == {"queue", "tokenize", "encode", "decode"}
    assert parts["tokenize"] > 0
    assert parts["encode"] > 0
    assert parts["decode"] > 0


async def test_the_description_tells_every_error_and_its_media_type(serve: Serve) -> None:
    async with serve(api_keys="k", rate_limit="9/second") as client:
        document = (await client.get("/openapi.json")).json()
    responses = document["paths"]["/translate"]["post"]["responses"]
    errors = ["400", "401", "403", "404", "408", "413", "415", "422", "429", "500", "503", "504"]
    assert sorted(responses) == ["200", *errors]
    for status in errors:
        schema = {"$ref": "#/components/schemas/Problem"}
        assert responses[status]["content"] == {"application/problem+json": {"schema": schema}}
    assert document["paths"]["/translate"]["post"]["security"] == [{"HTTPBearer": []}]
    assert "503" in document["paths"]["/health/ready"]["get"]["responses"]
    text = document["components"]["schemas"]["TranslateRequest"]["properties"]["text"]
    assert [option["type"] for option in text["anyOf"]] == ["string", "array"]
    assert document["components"]["schemas"]["TranslateRequest"]["additionalProperties"] is False
    assert "HTTPValidationError" not in json.dumps(document)
