"""Every dialect refuses what is beyond the limits of the server, and follows glossaries that its requests can name."""

from typing import Any

import httpx
import pytest

TRITON = "/v2/models/tiny-en-fr/infer"
HUB = "/models/tiny-en-fr"
SETTINGS = {"max_texts": 2, "max_text_characters": 40, "max_timeout_s": 5}


def tensors(*texts: str, **parameters: Any) -> dict[str, Any]:
    tensor = {"name": "text_input", "shape": [len(texts)], "datatype": "BYTES", "data": [*texts]}
    return {"inputs": [tensor], "parameters": parameters}


def deepl(*texts: str, **fields: Any) -> dict[str, Any]:
    return {"text": [*texts], "source_lang": "EN", "target_lang": "FR"} | fields


def libretranslate(*texts: str) -> dict[str, Any]:
    return {"q": [*texts], "source": "en", "target": "fr"}


def openai_error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}


MANY, LONG = ["the dog"] * 3, "the dog " * 6
TOO_MANY = "The request has 3 texts; the limit is 2"
TOO_LONG = "A text has 48 characters; the limit is 40"
TOO_LATE = "`parameters.timeout` must be at most 5 s, not 6 s"


@pytest.mark.parametrize(
    ("path", "body", "status", "answer"),
    [
        ("/v2/translate", deepl(*MANY), 400, {"message": TOO_MANY}),
        ("/v2/translate", deepl(LONG), 413, {"message": TOO_LONG}),
        (TRITON, tensors(*MANY), 400, {"error": TOO_MANY}),
        (TRITON, tensors(LONG), 413, {"error": TOO_LONG}),
        (TRITON, tensors("a", timeout=6_000_000), 400, {"error": TOO_LATE}),
        ("/v2/models/tiny-vectors/infer", tensors(*MANY), 400, {"error": TOO_MANY}),
        ("/v2/models/tiny-vectors/infer", tensors("a", timeout=6_000_000), 400, {"error": TOO_LATE}),
        ("/v2/models/org/tiny-sentiment/generate", {"text_input": LONG}, 413, {"error": TOO_LONG}),
        (HUB, {"inputs": MANY}, 422, {"error": TOO_MANY}),
        (HUB, {"inputs": LONG}, 413, {"error": TOO_LONG}),
        ("/models/org/tiny-sentiment", {"inputs": MANY}, 422, {"error": TOO_MANY}),
        ("/models/tiny-vectors", {"inputs": {"source_sentence": "a", "sentences": ["b", "c"]}}, 422,
         {"error": TOO_MANY}),
        ("/v1/embeddings", {"model": "tiny-vectors", "input": MANY}, 400, openai_error(TOO_MANY)),
        ("/v1/embeddings", {"model": "tiny-vectors", "input": LONG}, 413, openai_error(TOO_LONG)),
        ("/libretranslate/translate", libretranslate(*MANY), 400,
         {"error": "Invalid request: request (3) exceeds text limit (2)"}),
        ("/libretranslate/translate", libretranslate(LONG), 400,
         {"error": "Invalid request: request (48) exceeds text limit (40)"}),
        ("/libretranslate/detect", {"q": LONG}, 400, {"error": TOO_LONG}),
    ],
)  # fmt: skip
def test_each_dialect_refuses_what_is_beyond_a_limit_in_its_own_shape(
    address: str, path: str, body: Any, status: int, answer: Any
) -> None:
    response = httpx.post(f"{address}{path}", json=body)
    assert (response.status_code, response.json()) == (status, answer)


@pytest.mark.parametrize("path", ["/v2/document", "/libretranslate/translate_file"])
def test_a_document_with_too_long_a_text_is_refused(address: str, path: str) -> None:
    form = {"source": "en", "target": "fr", "source_lang": "EN", "target_lang": "FR"}
    response = httpx.post(f"{address}{path}", data=form, files={"file": ("a.txt", LONG.encode())})
    assert response.status_code in (400, 413)
    assert "48 characters; the limit is 40" in " ".join(response.json().values())


@pytest.fixture(scope="module")
def glossary_id(address: str) -> str:
    dictionary = {"source": "en", "target": "fr", "entries": {"dog": "clebs"}}
    made = httpx.post(f"{address}/glossaries", json={"name": "Animals", "dictionaries": [dictionary]})
    return str(made.raise_for_status().json()["id"])


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize(
    ("path", "body", "names"),
    [
        ("/v2/translate", deepl("the dog"), "glossary_id"),
        ("/v2/translate", deepl("the dog"), "glossary_ids"),
        (TRITON, tensors("the dog"), "parameters"),
        ("/v2/models/tiny-en-fr/generate", {"text_input": "the dog"}, "parameters"),
    ],
)
def test_each_dialect_that_can_name_a_glossary_follows_it(
    address: str, glossary_id: str, path: str, body: dict[str, Any], names: str, is_known: bool
) -> None:
    """`names` is the field of the request that names the glossary."""
    named = glossary_id if is_known else "no-such-glossary"
    value = {"glossary_id": named} if names == "parameters" else named
    response = httpx.post(f"{address}{path}", json=body | {names: value})
    assert response.status_code == (200 if is_known else 404)
    assert ("clebs" if is_known else "No glossary has the id no-such-glossary") in response.text
