"""OpenAI's client calls a real server."""

import base64
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import openai
import pytest

from tests.service.access.key_tables import table
from tests.service.dialects.conftest import Listen, post_json

TEXTS = ["the dog runs", "a cat sees the red house", "the man"]


@pytest.fixture
def client(address: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{address}/v1", api_key="any", max_retries=0) as client:
        yield client


@pytest.fixture
def embeddings(address: str) -> np.ndarray[Any, Any]:
    """Embeddings of the texts by the native route."""
    answer = post_json(f"{address}/embed", text=TEXTS, model="tiny-en-fr", normalize=True)
    return np.array([embedding["embedding"] for embedding in answer["embeddings"]], np.float32)


@pytest.mark.parametrize("asked", [{}, {"encoding_format": "base64"}, {"encoding_format": "float"}])
def test_embeddings_are_those_of_the_native_route(
    client: openai.OpenAI, embeddings: np.ndarray[Any, Any], asked: Any
) -> None:
    answer = client.embeddings.create(model="tiny-en-fr", input=TEXTS, user="somebody", **asked)
    assert (answer.object, answer.model) == ("list", "tiny-en-fr")
    assert [(one.object, one.index) for one in answer.data] == [("embedding", i) for i in range(3)]
    assert answer.usage.prompt_tokens == answer.usage.total_tokens > 0
    found = [one.embedding for one in answer.data]
    if asked.get("encoding_format") == "base64":  # the client decodes only what it has asked for itself
        found = [np.frombuffer(base64.b64decode(one), "<f4") for one in found]  # type: ignore[arg-type]
    np.testing.assert_allclose(found, embeddings, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)


def test_null_is_a_field_that_is_left_out(address: str) -> None:
    body = {"model": "tiny-en-fr", "input": TEXTS[0]}
    nulls = dict.fromkeys(("encoding_format", "dimensions", "user"))
    assert post_json(f"{address}/v1/embeddings", **body, **nulls) == post_json(f"{address}/v1/embeddings", **body)


def test_one_text_and_the_models_own_dimensions_are_taken(
    client: openai.OpenAI, embeddings: np.ndarray[Any, Any]
) -> None:
    answer = client.embeddings.create(model="tiny-en-fr", input=TEXTS[0], dimensions=embeddings.shape[1])
    assert len(answer.data) == 1
    np.testing.assert_allclose(answer.data[0].embedding, embeddings[0], atol=1e-5)


@pytest.mark.parametrize(
    ("asked", "param", "says"),
    [
        ({"dimensions": 7}, "dimensions", "`dimensions` must be 24 for tiny-en-fr, not 7"),
        ({"input": ""}, "input", "`input` must not be empty"),
        ({"input": []}, "input", "`input` must have at least 1 item"),
        ({"input": ["a", ""]}, "input", "`input` must not have an empty text (number 1)"),
        ({"input": [1, 2]}, "input", "`input` must be texts"),
        ({"input": [[1, 2], [3]]}, "input", "`input` must be texts"),
        ({"input": ["a"] * 257}, None, "257 texts; the limit is 256"),
        ({"input": " "}, None, "white space"),
        ({"encoding_format": "hex"}, "encoding_format", "`encoding_format` must be 'float' or 'base64'"),
        ({"model": ""}, "model", "`model` "),
    ],
)
def test_invalid_fields_are_refused_by_name(client: openai.OpenAI, asked: Any, param: str | None, says: str) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        client.embeddings.create(**{"model": "tiny-en-fr", "input": "the dog"} | asked)
    assert says in refused.value.body["message"]  # type: ignore[call-overload, index]
    assert (refused.value.type, refused.value.param, refused.value.code) == ("invalid_request_error", param, None)
    assert refused.value.request_id


def test_models_are_listed_and_found_by_names_with_slashes(client: openai.OpenAI) -> None:
    listed = client.models.list()
    assert [model.id for model in listed.data] == ["org/tiny-sentiment", "tiny-en-fr", "tiny-vectors"]
    for model in listed:
        assert client.models.retrieve(model.id) == model
        assert client.embeddings.create(model=model.id, input="the dog").model == model.id


def test_an_unknown_model_has_its_code(client: openai.OpenAI) -> None:
    for call in (
        lambda: client.embeddings.create(model="big", input="the dog"),
        lambda: client.models.retrieve("no/such"),
    ):
        with pytest.raises(openai.NotFoundError) as refused:
            call()
        assert refused.value.code == "model_not_found"
    with pytest.raises(openai.NotFoundError, match="/v1/chat/completions"):
        client.chat.completions.create(model="tiny-en-fr", messages=[])


def test_keys_missing_and_wrong_are_both_unauthorized(listen: Listen) -> None:
    address = f"{listen(api_keys='one', rate_limit='2/hour')}/v1"
    with openai.OpenAI(base_url=address, api_key="two") as client, pytest.raises(openai.AuthenticationError) as wrong:
        client.models.list()
    assert wrong.value.code == "invalid_api_key"
    missing = httpx.get(f"{address}/models")
    assert (missing.status_code, missing.json()["error"]["code"]) == (401, "invalid_api_key")
    with openai.OpenAI(base_url=address, api_key="one", max_retries=0) as client:
        for _ in range(2):
            assert client.embeddings.create(model="tiny-en-fr", input="the dog").data
        with pytest.raises(openai.RateLimitError) as limited:
            client.embeddings.create(model="tiny-en-fr", input="the dog")
    assert limited.value.code == "rate_limit_exceeded"
    assert int(limited.value.response.headers["Retry-After"]) > 0


def test_the_client_retries_after_the_time_it_is_told(listen: Listen, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr("openai._base_client.time", SimpleNamespace(time=time.time, sleep=waited.append))
    with openai.OpenAI(base_url=f"{listen(rate_limit='1/minute')}/v1", api_key="any") as client:
        assert client.models.list().data
        with pytest.raises(openai.RateLimitError) as limited:
            client.models.list()
    assert len(waited) == 2
    assert int(limited.value.response.headers["Retry-After"]) <= waited[-1] <= waited[0] <= 60


def test_it_can_be_turned_off(listen: Listen) -> None:
    gone = httpx.get(f"{listen(dialects='none')}/v1/models")
    assert (gone.status_code, gone.headers["content-type"]) == (404, "application/problem+json")


def test_a_quota_and_a_forbidden_route_are_what_the_client_expects(listen: Listen, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(
        table("site", "one", characters_per_month=10) + table("app", "two", routes=["/translate"])
    )
    address = f"{listen(api_keys_file=tmp_path / 'keys')}/v1"
    with openai.OpenAI(base_url=address, api_key="one", max_retries=0) as client:
        with pytest.raises(openai.RateLimitError, match="has used 0 of its 10 characters of this month") as exceeded:
            client.embeddings.create(model="tiny-en-fr", input="the dog runs")
        assert exceeded.value.code == "insufficient_quota"
        assert client.embeddings.create(model="tiny-en-fr", input="the dog").data
    forbidden = httpx.post(f"{address}/embeddings", headers={"Authorization": "Bearer two"})
    assert forbidden.status_code == 403
    assert forbidden.json()["error"]["message"] == "The key app may not use /v1/embeddings; available: /translate"
