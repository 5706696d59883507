"""What a wrong request gets: a whole problem that names what is wrong."""

import gzip
import json
import re
from typing import Any

import pytest

import service.tasks.translation.reading
from service.base.errors import (
    BadRequest,
    InvalidFields,
    LimitExceeded,
    MethodNotAllowed,
    RequestError,
    TextTooLong,
    TooLarge,
    TooManyTexts,
    UnknownModel,
    UnknownPath,
    UnsupportedLanguagePair,
    UnsupportedMediaType,
)
from service.schemas.requests import TranslateRequest
from service.text.sentences import sentence_spans
from tests.service.conftest import Client, Serve, problem

pytestmark = pytest.mark.anyio

JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("body", "loc", "part"),
    [
        ({"text": ""}, ["text"], "empty"),
        ({"text": []}, ["text"], "at least 1"),
        ({"text": 5}, ["text"], "list of strings"),
        ({}, ["text"], "required"),
        ({"text": "a", "txet": "b"}, ["txet"], "unknown"),
        ({"text": "a", "beam_size": 9}, ["beam_size"], "8, not 9"),
        ({"text": "a", "beam_size": 0}, ["beam_size"], "1, not 0"),
        ({"text": "a", "beam_size": "1"}, ["beam_size"], "integer"),
        ({"text": "a", "alternatives": 8}, ["alternatives"], "8, not 8"),
        ({"text": "a", "alternatives": -1}, ["alternatives"], "0, not -1"),
        ({"text": "a", "length_penalty": -0.5}, ["length_penalty"], "0, not -0.5"),
        ({"text": "a", "length_penalty": 11}, ["length_penalty"], "10, not 11"),
        ({"text": "a", "timeout_s": 0}, ["timeout_s"], "0, not 0"),
        ({"text": "a", "attention": "yes"}, ["attention"], "kinds, layers, heads and encoding"),
        ({"text": "a", "attention": {"kinds": ["self"]}}, ["attention", "kinds", 0], "'cross', 'encoder' or 'decoder'"),
        ({"text": "a", "attention": {"encoding": "hex"}}, ["attention", "encoding"], "'json' or 'base64'"),
        ({"text": "a", "attention": {"layers": [-1]}}, ["attention", "layers"], '"all", "last" or a list'),
        ({"text": "a", "attention": {"heads": []}}, ["attention", "heads"], '"all", "mean" or a list'),
        ({"text": "a", "alignment": "yes"}, ["alignment"], "boolean"),
        ({"text": "a", "target": ""}, ["target"], "at least 1 character"),
        ({"text": [1] * 1000}, ["text", 0], "string"),
        ({"text": "a", "attention": {"kinds": [0] * 999}}, ["attention", "kinds", 0], "'encoder' or 'decoder'"),
        ({"text": "a", "attention": {str(i): i for i in range(1000)}}, ["attention"], "4 fields, not 1000"),
    ],
)  # fmt: skip
async def test_an_unacceptable_field_is_named(client: Client, body: Any, loc: list[str | int], part: str) -> None:
    found = problem(await client.post("/translate", json=body), InvalidFields)
    [error] = found["errors"]
    assert error["loc"] == loc
    assert part in error["msg"]
    assert found["detail"] == f"`{'.'.join(map(str, loc))}` {error['msg']}"


@pytest.mark.parametrize("field", ["txet", "beam_size", "text", "keep", "format", "tags", "glossary", "pivot"])
async def test_the_message_of_a_field_begins_with_a_verb(client: Client, field: str) -> None:
    found = problem(await client.post("/translate", json={"text": "a", field: 1.5}), InvalidFields)
    assert re.match(r"`\w+` (must|is) [^A-Z]", found["detail"])


TOO_MANY = f"at most {len(TranslateRequest.model_fields)} fields, not 1000"


async def test_several_unacceptable_fields_are_all_listed(client: Client) -> None:
    found = problem(await client.post("/classify", json={"text": "a", "evidence": 1, "x": 1}), InvalidFields)
    assert re.match("2 .*`evidence`", found["detail"])
    assert [error["loc"] for error in found["errors"]] == [["evidence"], ["x"]]


@pytest.mark.parametrize(
    ("body", "error", "parts"),
    [
        ({"source": "xx"}, UnsupportedLanguagePair, "xx|en-fr \\(tiny-en-fr\\)"),
        ({"max_target_tokens": 999}, InvalidFields, "`max_target_tokens`|70 for tiny-en-fr|999"),
        ({"alternatives": 2}, InvalidFields, "`alternatives`|`beam_size` \\(2\\)"),
        ({"beam_size": 1, "alternatives": 1}, InvalidFields, "`alternatives`|`beam_size` \\(1\\)"),
        ({"beam_size": 8, "alternatives": 7, "max_target_tokens": 99}, InvalidFields, "`max_target_tokens`|70|99"),
        ({"timeout_s": 1000}, InvalidFields, "`timeout_s`|300|1000"),
        ({"text": ["a"] * 300}, TooManyTexts, "300|256"),
        ({"beam_threshold": -1}, InvalidFields, "`beam_threshold`|0|-1"),
        ({"keep": [{"pattern": "(?=x)"}]}, InvalidFields, "`keep.0.pattern`|RE2|invalid perl operator"),
        ({"keep": [" "]}, InvalidFields, "`keep.0`|white space"),
        ({"keep": [{"pattern": "a"}] * 21}, InvalidFields, "`keep`|20|21"),
        ({"text": "a" * 20_000, "keep": [{"pattern": "a"}]}, LimitExceeded, "`keep`|10,000"),
    ],
)
async def test_what_only_the_models_can_refuse_is_refused_with_the_numbers(
    client: Client, body: Any, error: type[RequestError], parts: str
) -> None:
    detail = problem(await client.post("/translate", json={"text": "a"} | body), error)["detail"]
    assert re.search(parts.replace("|", ".*"), detail), detail


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b'{"text": "a"', "not JSON: Expecting ',' delimiter at character 12"),
        (b"", "object"),
        (b'["a"]', "object"),
        (b'"a"', "object"),
        (b'{"text": "\xff"}', "not UTF-8: invalid start byte at byte 10"),
        ('{"text": "a"}'.encode("utf-16"), "not UTF-8: invalid start byte at byte 0"),
        ('{"text": "a"}'.encode("utf-16-le"), "null byte at character 1"),
        (b'{"text": "a\n"}', "not JSON: Invalid control character at character 11"),
        (json.dumps({str(i): i for i in range(1000)}).encode(), TOO_MANY),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"text": "a", "beam_size": ' + b"1" * 5000 + b"}", "nested too deeply"),
    ],
)
async def test_a_body_of_the_wrong_shape_is_a_bad_request(client: Client, content: bytes, part: str) -> None:
    response = await client.post("/translate", content=content, headers=JSON)
    assert part in problem(response, BadRequest)["detail"]


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (r'{"text": "\ud83d"}', InvalidFields),
        (r'{"text": "a", "source": "\ud83d"}', InvalidFields),
        (r'{"text": "a", "\ud83d": 1}', BadRequest),
    ],
)
async def test_half_of_a_surrogate_pair_is_refused_anywhere(
    client: Client, body: str, error: type[RequestError]
) -> None:
    problem(await client.post("/translate", content=body.encode(), headers=JSON), error)


async def test_of_several_texts_the_unreadable_one_is_named(client: Client) -> None:
    response = await client.post("/translate", content=rb'{"text": ["a", "\ud83d"]}', headers=JSON)
    found = problem(response, InvalidFields)
    assert re.match("`text` .*surrogate pair.* 1", found["detail"])


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "text/plain"},
        {},
        {"content-type": "application/jsonp"},
        {"content-type": "application/json; charset=latin-1"},
        {"content-type": "application/json; charset=none-such"},
    ],
)
async def test_another_content_type_is_refused(client: Client, headers: dict[str, str]) -> None:
    response = await client.post("/translate", content=b'{"text": "a"}', headers=headers)
    assert "application/json in UTF-8" in problem(response, UnsupportedMediaType)["detail"]


async def test_a_compressed_body_is_refused_by_the_name_of_its_encoding(client: Client) -> None:
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    response = await client.post("/translate", content=gzip.compress(b'{"text": "a"}'), headers=headers)
    assert "gzip" in problem(response, UnsupportedMediaType)["detail"]


@pytest.mark.parametrize("parameters", ["", "; charset=utf-8", ';charset="UTF-8"', "; v=1; charset=utf8", ";" * 9000])
async def test_a_content_type_may_have_parameters(client: Client, parameters: str) -> None:
    headers = {"content-type": f"Application/JSON{parameters}"}
    assert (await client.post("/classify", content=b'{"text": "a"}', headers=headers)).status_code == 200


async def test_unknown_paths_methods_and_models_are_told(client: Client) -> None:
    assert "/nowhere" in problem(await client.get("/nowhere"), UnknownPath)["detail"]
    problem(await client.post("/translate/", json={"text": "a"}), UnknownPath)
    wrong_method = await client.get("/translate")
    assert re.match("/translate .*GET.*POST", problem(wrong_method, MethodNotAllowed)["detail"])
    assert wrong_method.headers["Allow"] == "POST"
    body = {"text": "a", "model": "big"}
    detail = problem(await client.post("/classify", json=body), UnknownModel)["detail"]
    assert re.search("'big'.*tiny-sentiment", detail)


async def test_too_much_is_refused_with_both_sizes(serve: Serve) -> None:
    async with serve(max_body_bytes=100, max_text_characters=20) as client:
        body = problem(await client.post("/translate", json={"text": "a" * 200}), TooLarge)
        text = problem(await client.post("/translate", json={"text": ["a", "b" * 21]}), TextTooLong)
    assert re.search("211.*100", body["detail"])
    assert re.search("21.*20", text["detail"])


async def test_too_many_sentences_are_refused_before_the_last_text_is_read(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []
    monkeypatch.setattr(
        service.tasks.translation.reading, "sentence_spans", lambda *given: read.append(given) or sentence_spans(*given)
    )
    monkeypatch.setattr(service.front.assembly, "MAX_SEQUENCES", 3)
    async with serve() as client:
        texts = ["a dog.\na dog.", "a dog.\na dog.", "a dog."]
        detail = problem(await client.post("/translate", json={"text": texts}), TooManyTexts)["detail"]
    assert re.search("4 sentences.*3", detail)
    assert len(read) == 2


async def test_evidence_and_alignment_of_too_many_tokens_are_refused(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service.tasks.classification, "MAX_EVIDENCE_TOKENS", 3)
    async with serve(max_answer_numbers=60) as client:
        for path, wish in (("/classify", "evidence"), ("/translate", "alignment")):
            few = await client.post(path, json={"text": "the dog", wish: True})
            assert few.status_code == 200, few.text
            many = await client.post(path, json={"text": ["the dog", "a dog runs"], wish: True})
            assert re.match(f"`{wish}` .*the limit is 3", problem(many, LimitExceeded)["detail"])


async def test_a_request_without_timeout_has_the_longest_if_the_default_is_longer(serve: Serve) -> None:
    async with serve(max_timeout_s=10.0) as client:
        assert (await client.post("/translate", json={"text": "the dog"})).status_code == 200
