"""huggingface_hub's InferenceClient calls a real server."""

from typing import Any

import httpx
import numpy as np
import pytest
from huggingface_hub import InferenceClient
from huggingface_hub.errors import HfHubHTTPError

from tests.service.dialects.conftest import Listen, post_json
from tests.service.tiny_artifacts import E
from tests.service.tiny_classifier import LABELS

TEXTS = ["the dog runs", "a cat sees the red house", "the man"]


def client(url: str, key: str | None = "any") -> InferenceClient:
    return InferenceClient(url, token=key, provider="hf-inference")


def native(address: str, path: str, **fields: Any) -> Any:
    return post_json(f"{address}{path}", **{"text": TEXTS} | fields)


@pytest.mark.parametrize(
    "url", ["/models/tiny-en-fr", "/models/tiny-en-fr/", "/models/tiny-en-fr/pipeline/translation"]
)
def test_a_text_is_translated(address: str, url: str) -> None:
    asked = {"clean_up_tokenization_spaces": True, "truncation": "only_first"}
    for more, options in (
        ({"src_lang": "en", "tgt_lang": "fr"}, {}),
        ({"generate_parameters": {"num_beams": 1, "max_new_tokens": 2}}, {"beam_size": 1, "max_target_tokens": 2}),
    ):
        answer = client(f"{address}{url}").translation(TEXTS[0], **asked, **more)  # type: ignore[arg-type]
        assert answer.translation_text == native(address, "/translate", **options)["translations"][0]["text"]


def test_a_text_is_labelled_and_every_label_has_its_score(address: str) -> None:
    hub = client(f"{address}/models/org/tiny-sentiment")
    [prediction] = native(address, "/classify", text=TEXTS[0])["predictions"]
    found = hub.text_classification(TEXTS[0])
    assert {one.label: one.score for one in found} == pytest.approx(prediction["scores"], rel=1e-5)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert len(found) == len(LABELS)
    assert hub.text_classification(TEXTS[0], top_k=2, function_to_apply="softmax") == found[:2]


@pytest.mark.parametrize(
    "url",
    ["/models/tiny-vectors", "/models/tiny-vectors/pipeline/feature-extraction/",
     "/models/tiny-en-fr/pipeline/feature-extraction", "/models/org/tiny-sentiment/pipeline/feature-extraction"],
)  # fmt: skip
def test_texts_are_embedded(address: str, url: str) -> None:
    hub = client(f"{address}{url}")
    model = url.removeprefix("/models/").partition("/pipeline")[0]
    expected = np.array([one["embedding"] for one in native(address, "/embed", model=model)["embeddings"]])
    found = hub.feature_extraction(TEXTS, truncate=True, truncation_direction="right", dimensions=E)  # type: ignore[arg-type]
    assert found.shape == (3, E)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_allclose(hub.feature_extraction(TEXTS[0]), expected[:1], atol=1e-6)
    long = hub.feature_extraction(TEXTS[0], normalize=False)
    assert np.linalg.norm(long) != pytest.approx(1, abs=1e-3)


def test_a_prompt_is_put_before_texts(address: str) -> None:
    found = client(f"{address}/models/tiny-vectors").feature_extraction(TEXTS[0], prompt_name="query")
    expected = native(address, "/embed", text=TEXTS[0], model="tiny-vectors", prompt="query")["embeddings"]
    np.testing.assert_allclose(found, [expected[0]["embedding"]], atol=1e-6)
    assert np.abs(found - client(f"{address}/models/tiny-vectors").feature_extraction(TEXTS[0])).max() > 1e-3


@pytest.mark.parametrize("url", ["/models/tiny-vectors", "/models/tiny-en-fr/pipeline/sentence-similarity"])
def test_sentences_are_compared_by_their_cosine(address: str, url: str) -> None:
    found = client(f"{address}{url}").sentence_similarity(TEXTS[0], [TEXTS[1], TEXTS[0]])
    model = url.split("/")[2]
    first, second, _ = (np.array(one["embedding"]) for one in native(address, "/embed", model=model)["embeddings"])
    assert found == pytest.approx([first @ second, 1], abs=1e-5)


def test_models_are_described(address: str) -> None:
    for name, task in (("tiny-en-fr", "translation"), ("org/tiny-sentiment", "text-classification"),
                       ("tiny-vectors", "feature-extraction")):  # fmt: skip
        info = client(f"{address}/models/{name}").get_endpoint_info()
        assert (info["model_id"], info["model_pipeline_tag"], info["max_client_batch_size"]) == (name, task, 256)
        assert info["max_input_length"] > 0
        assert client(f"{address}/models/{name}/").health_check()
    assert not client(f"{address}/models/big").health_check()


def test_lists_are_answered_text_by_text(address: str) -> None:
    translated = httpx.post(f"{address}/models/tiny-en-fr", json={"inputs": TEXTS, "options": {"use_cache": False}})
    expected = native(address, "/translate")["translations"]
    assert translated.json() == [{"translation_text": one["text"]} for one in expected]
    labelled = httpx.post(f"{address}/models/org/tiny-sentiment", json={"inputs": TEXTS, "parameters": {"top_k": 1}})
    predictions = native(address, "/classify")["predictions"]
    for [label], prediction in zip(labelled.json(), predictions, strict=True):
        assert label == {"label": prediction["label"], "score": pytest.approx(prediction["score"], rel=1e-5)}


TRANSLATE, CLASSIFY, EMBED = "/models/tiny-en-fr", "/models/org/tiny-sentiment", "/models/tiny-vectors"


@pytest.mark.parametrize(
    ("url", "body", "status", "says"),
    [
        (TRANSLATE, {"inputs": "a", "parameters": {"src_lang": "de", "tgt_lang": "fr"}}, 422, "tiny-en-fr does not translate from de to fr"),  # noqa: E501
        (TRANSLATE, {"inputs": "a", "parameters": {"generate_parameters": {"do_sample": True}}}, 422, "`parameters.generate_parameters.do_sample` is not supported; available: num_beams, "),  # noqa: E501
        (TRANSLATE, {"inputs": "a", "parameters": {"generate_parameters": {"num_beams": 9}}}, 422, "`parameters.generate_parameters.num_beams` must be less than or equal to 8"),  # noqa: E501
        (TRANSLATE, {"inputs": "a", "parameters": {"generate_parameters": {"max_new_tokens": 10**6}}}, 422, "`parameters.generate_parameters.max_new_tokens` must be at most 70 for tiny-en-fr"),  # noqa: E501
        (TRANSLATE, {"inputs": {"source_sentence": "a", "sentences": ["b"]}}, 422, "`inputs` must be a text or a list of texts"),  # noqa: E501
        (TRANSLATE, {"inputs": ""}, 422, "`inputs` must not be empty"),
        (TRANSLATE, {"inputs": 5}, 422, "must be a string or a list of strings"),
        (TRANSLATE, {}, 422, "`inputs` is required"),
        (CLASSIFY, {"inputs": "a", "parameters": {"function_to_apply": "sigmoid"}}, 422, "`parameters.function_to_apply` must be softmax for org/tiny-sentiment, not sigmoid"),  # noqa: E501
        (CLASSIFY, {"inputs": "a", "parameters": {"top_k": 0}}, 422, "`parameters.top_k` must be greater than"),
        (CLASSIFY, {"inputs": "a", "parameters": {"candidate_labels": ["b"]}}, 422, "`parameters.candidate_labels` is not supported; org/tiny-sentiment"),  # noqa: E501
        (EMBED, {"inputs": "a", "dimensions": 5}, 422, "`dimensions` must be 24 for tiny-vectors, not 5"),
        (EMBED, {"inputs": "a", "parameters": {"dimensions": 5}}, 422, "`dimensions` must be 24"),
        (EMBED, {"inputs": "a", "prompt_name": "passage"}, 422, "`prompt_name` must be a prompt of tiny-vectors, not 'passage'; available: query"),  # noqa: E501
        (EMBED, {"inputs": "a", "encoding_format": "base64"}, 422, "`encoding_format` must be 'float'"),
        (EMBED, {"inputs": {"source_sentence": "a", "sentences": []}}, 422, "at least 1 item"),
        (EMBED, {"inputs": {"source_sentence": "a", "sentences": ["b", ""]}}, 422, "`inputs.sentences.1` must"),
        (EMBED, {"inputs": {"source_sentence": " ", "sentences": ["b"]}}, 422, "`inputs.source_sentence` must not be white space only"),  # noqa: E501
        (EMBED, {"inputs": {"sentences": ["b"]}}, 422, "`inputs.source_sentence` is required"),
        (f"{EMBED}/pipeline/sentence-similarity", {"inputs": "a"}, 422, "`inputs` must be an object with"),
        (f"{EMBED}/pipeline/translation", {"inputs": "a"}, 404, "(tiny-vectors can embed)"),
        (f"{EMBED}/pipeline/fill-mask", {"inputs": "a"}, 404, "'fill-mask'; available: translation, "),
        ("/models/big", {"inputs": "a"}, 404, "'big'; available: tiny-en-fr, "),
        (TRANSLATE, {"inputs": ["a"] * 257}, 422, "257 texts; the limit is 256"),
        (TRANSLATE, {"inputs": "a" * 60_000}, 413, "60000 characters; the limit is 50000"),
    ],
)  # fmt: skip
def test_invalid_fields_are_refused_by_name(address: str, url: str, body: Any, status: int, says: str) -> None:
    answer = httpx.post(f"{address}{url}", json=body)
    assert (answer.status_code, answer.json().keys()) == (status, {"error"})
    assert says in answer.json()["error"]


def test_the_client_shows_the_reason(address: str) -> None:
    for call, status, says in (
        (lambda: client(f"{address}{TRANSLATE}").translation("a", src_lang="de", tgt_lang="fr"), 422, "from de to fr"),
        (lambda: client(f"{address}/models/big").text_classification("a"), 404, "'big'"),
        (lambda: client(f"{address}{TRANSLATE}").text_classification(""), 422, "must not be empty"),
        (lambda: client(f"{address}/models/big").get_endpoint_info(), 404, "'big'"),
    ):
        with pytest.raises(HfHubHTTPError, match=says) as refused:
            call()
        assert refused.value.response.status_code == status


def test_a_token_is_required_where_keys_are_configured(listen: Listen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.utils._headers.get_token", lambda: None)
    address = listen(api_keys="one")
    assert client(f"{address}{TRANSLATE}", "one").translation("the dog").translation_text
    for key, status in (("two", 403), (None, 401)):
        with pytest.raises(HfHubHTTPError, match="key") as refused:
            client(f"{address}{TRANSLATE}", key).translation("the dog")
        assert refused.value.response.status_code == status
    assert client(f"{address}{TRANSLATE}", "one").health_check()
