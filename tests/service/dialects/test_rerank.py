"""Texts are ranked for clients of text-embeddings-inference, Cohere and Jina, and pairs are labelled."""

import math
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.dialects.conftest import Listen, post_json
from tests.service.tiny_classifier import TinyClassifier

RANKER, NLI = "tiny-ranker", "tiny-nli"
TEXTS = ["a cat", "the dog", "a man", "red dog"]
QUERY = "a dog"


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("artifacts")
    TinyClassifier(7, "mean", ["near"], pairs=True).save(root / RANKER, RANKER, label_activation="identity")
    TinyClassifier(8, "mean", pairs=True).save(root / NLI, NLI)
    return root


@pytest.fixture(scope="module")
def ranks(address: str) -> Any:
    return post_json(f"{address}/rerank", query=QUERY, texts=TEXTS, return_text=True)


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_documents_are_ranked_as_cohere_does(address: str, ranks: Any, version: str) -> None:
    documents = [*TEXTS[:2], {"text": TEXTS[2]}, TEXTS[3]]
    asked = {"query": QUERY, "documents": documents, "model": RANKER, "return_documents": True, "max_tokens_per_doc": 9}
    answer = post_json(f"{address}/{version}/rerank", **asked)
    found = [(result["index"], result["relevance_score"], result["document"]["text"]) for result in answer["results"]]
    assert found == [(rank["index"], pytest.approx(rank["score"], rel=1e-5), rank["text"]) for rank in ranks]
    assert (answer["model"], answer["usage"]) == (RANKER, {"total_tokens": 28})
    few = post_json(f"{address}/{version}/rerank", query=QUERY, documents=documents, top_n=2)["results"]
    assert [one.keys() for one in few] == [{"index", "relevance_score"}] * 2


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (
            {"query": QUERY, "documents": TEXTS, "model": "big"},
            404,
            "No model named 'big' can rerank here; available: ",
        ),
        ({"query": QUERY, "documents": []}, 400, "`documents` must have at least 1 item"),
        ({"query": QUERY, "documents": [5]}, 400, "`documents.0` must be a valid string"),
        ({"query": QUERY, "documents": ["a", " "]}, 400, "Text 1 of `documents` is white space only"),
        ({"query": QUERY}, 400, "`documents` is required"),
        ({"query": QUERY, "documents": TEXTS, "top_n": 0}, 400, "`top_n` must be greater than or equal to 1, not 0"),
    ],
)
def test_fields_that_cohere_has_not_are_told(address: str, body: dict[str, Any], status: int, says: str) -> None:
    answer = httpx.post(f"{address}/v2/rerank", json=body)
    assert answer.status_code == status
    assert answer.json().keys() == {"message"}
    assert says in answer.json()["message"]


def test_other_dialects_keep_their_paths_and_cohere_can_be_turned_off(listen: Listen) -> None:
    gone = httpx.post(f"{listen(dialects='openai')}/v1/rerank", json={})
    assert (gone.status_code, gone.json().keys()) == (404, {"error"})


def test_texts_are_ranked_below_the_address_of_a_model(address: str, ranks: Any) -> None:
    url, body = f"{address}/models/{RANKER}/rerank", {"query": QUERY, "texts": TEXTS, "truncation_direction": "Left"}
    assert post_json(url, **body, return_text=True) == ranks
    raw = post_json(url, **body, raw_scores=True)
    assert [rank["score"] for rank in ranks] == pytest.approx([1 / (1 + math.exp(-one["score"])) for one in raw])


def test_pairs_are_labelled_as_text_embeddings_inference_does(address: str) -> None:
    url, pairs = f"{address}/models/{NLI}/predict", [[QUERY, text] for text in TEXTS]
    options = {"text": [QUERY] * len(TEXTS), "text_pair": TEXTS, "logits": True, "model": NLI}
    native = post_json(f"{address}/classify", **options)["predictions"]
    found, raw = post_json(url, inputs=pairs), post_json(url, inputs=pairs, raw_scores=True)
    for labels, prediction in zip(found, native, strict=True):
        assert {label["label"]: label["score"] for label in labels} == pytest.approx(prediction["scores"], rel=1e-5)
    for labels, prediction in zip(raw, native, strict=True):
        assert {label["label"]: label["score"] for label in labels} == pytest.approx(prediction["logits"], rel=1e-5)
    assert post_json(url, inputs=pairs[0]) == found[0], "a list of two texts is a pair"
    assert post_json(url, inputs=TEXTS[0]) == post_json(url, inputs=[[TEXTS[0]]])[0]


def test_a_single_score_is_from_0_to_1_unless_logits_are_asked_for(address: str) -> None:
    url, pair = f"{address}/models/{RANKER}/predict", [QUERY, TEXTS[0]]
    (score,), (logit,) = post_json(url, inputs=pair), post_json(url, inputs=pair, raw_scores=True)
    assert score["score"] == pytest.approx(1 / (1 + math.exp(-logit["score"])))


@pytest.mark.parametrize(
    "inputs", [[], [[]], [["a", "b", "c"]], 5, ["a", ["b"]], [["a"], "b"], [["a"], ["a", "b"]], ""]
)
def test_other_inputs_are_refused(address: str, inputs: Any) -> None:
    answer = httpx.post(f"{address}/models/{NLI}/predict", json={"inputs": inputs})
    assert (answer.status_code, answer.json().keys()) == (422, {"error"})
    assert "`inputs` must " in answer.json()["error"]


def test_errors_of_pairs_name_the_inputs(address: str) -> None:
    answer = httpx.post(f"{address}/models/{NLI}/predict", json={"inputs": [QUERY, " "]})
    assert (answer.status_code, "`inputs` is white space" in answer.json()["error"]) == (422, True)
    empty = httpx.post(f"{address}/models/{NLI}/predict", json={"inputs": [QUERY, ""]})
    assert empty.json()["error"] == "`inputs` must not be empty"


def test_logits_are_given_where_no_function_is_applied(address: str) -> None:
    body = {"inputs": TEXTS, "parameters": {"function_to_apply": "none", "top_k": 1}}
    found = post_json(f"{address}/models/{NLI}", **body)
    native = post_json(f"{address}/classify", text=TEXTS, model=NLI, logits=True)["predictions"]
    for [label], prediction in zip(found, native, strict=True):
        logit = prediction["logits"][prediction["label"]]
        assert label == {"label": prediction["label"], "score": pytest.approx(logit, rel=1e-5)}
