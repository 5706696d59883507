"""What a wrong request gets: a whole problem that names what is wrong."""

import gzip
import json
from typing import Any

import pytest

import service.tasks.reading
from service.schemas.requests import TranslateRequest
from service.text.sentences import sentence_spans
from tests.service.conftest import Serve, problem

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("body", "loc", "detail"),
    [
        ({"text": ""}, ["text"], "text: must not be empty"),
        ({"text": ["a", ""]}, ["text"], "text: text 1 of 2 is empty"),
        ({"text": []}, ["text"], "text: List should have at least 1 item after validation, not 0"),
        ({"text": 5}, ["text"], "text: must be a string or a list of strings"),
        ({}, ["text"], "text: Field required"),
        ({"text": "a", "txet": "b"}, ["txet"], "txet: Extra inputs are not permitted"),
        ({"text": "a", "beam_size": 9}, ["beam_size"], "beam_size: Input should be less than or equal to 8, not 9"),
        ({"text": "a", "beam_size": 0}, ["beam_size"], "beam_size: Input should be greater than or equal to 1, not 0"),
        ({"text": "a", "beam_size": "1"}, ["beam_size"], "beam_size: Input should be a valid integer"),
        ({"text": "a", "alternatives": 8}, ["alternatives"], "alternatives: Input should be less than 8, not 8"),
        ({"text": "a", "alternatives": -1}, ["alternatives"], "alternatives: Input should be greater than or equal to 0, not -1"),  # noqa: E501
        ({"text": "a", "length_penalty": -0.5}, ["length_penalty"], "length_penalty: Input should be greater than or equal to 0, not -0.5"),  # noqa: E501
        ({"text": "a", "length_penalty": 11}, ["length_penalty"], "length_penalty: Input should be less than or equal to 10, not 11"),  # noqa: E501
        ({"text": "a", "timeout_s": 0}, ["timeout_s"], "timeout_s: Input should be greater than 0, not 0"),
        ({"text": "a", "attention": "yes"}, ["attention"], "attention: must be true, false or an object that selects kinds, layers, heads and encoding"),  # noqa: E501
        ({"text": "a", "attention": {"kinds": ["self"]}}, ["attention", "kinds", 0], "attention.kinds.0: Input should be 'cross', 'encoder' or 'decoder'"),  # noqa: E501
        ({"text": "a", "attention": {"encoding": "hex"}}, ["attention", "encoding"], "attention.encoding: Input should be 'json' or 'base64'"),  # noqa: E501
        ({"text": "a", "attention": {"layers": [-1]}}, ["attention", "layers"], 'attention.layers: must be "all", "last" or a list of numbers from 0 on'),  # noqa: E501
        ({"text": "a", "attention": {"heads": []}}, ["attention", "heads"], 'attention.heads: must be "all", "mean" or a list of numbers from 0 on'),  # noqa: E501
        ({"text": "a", "alignment": "yes"}, ["alignment"], "alignment: Input should be a valid boolean"),
        ({"text": "a", "target": ""}, ["target"], "target: String should have at least 1 character"),
        ({"text": [1] * 1000}, ["text", 0], "text.0: Input should be a valid string"),
        ({"text": "a", "attention": {"kinds": ["self"] * 1000}}, ["attention", "kinds", 0], "attention.kinds.0: Input should be 'cross', 'encoder' or 'decoder'"),  # noqa: E501
        ({"text": "a", "attention": {str(i): i for i in range(1000)}}, ["attention"], "attention: has 1000 fields, there are 4"),  # noqa: E501
    ],
)  # fmt: skip
async def test_an_unacceptable_field_is_named(serve: Serve, body: Any, loc: list[str], detail: str) -> None:
    async with serve() as client:
        found = problem(await client.post("/translate", json=body), 422)
    assert found["detail"] == detail
    assert found["errors"] == [{"loc": loc, "msg": detail.partition(": ")[2]}]


TOO_MANY = f"the body: has 1000 fields, there are {len(TranslateRequest.model_fields)}"
UNREADABLE = "the body is JSON that cannot be read: nested too deeply, or with a number of too many digits"


async def test_several_unacceptable_fields_are_all_listed(serve: Serve) -> None:
    async with serve() as client:
        found = problem(await client.post("/classify", json={"text": "a", "evidence": 1, "x": 1}), 422)
    assert found["detail"].startswith(
        "2 fields are not acceptable; the first is evidence: Input should be a valid boolean"
    )
    assert [error["loc"] for error in found["errors"]] == [["evidence"], ["x"]]


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ({"text": "a", "source": "xx"}, "no model translates from xx to any language; there are en-fr (tiny-en-fr)"),
        ({"text": "a", "max_target_tokens": 999}, "max_target_tokens is 999, tiny-en-fr writes at most 70"),
        ({"text": "a", "alternatives": 2}, "alternatives is 2, a beam of 2 has 1"),
        ({"text": "a", "beam_size": 1, "alternatives": 1}, "alternatives is 1, a beam of 1 has 0"),
        (
            {"text": "a", "beam_size": 8, "alternatives": 7, "max_target_tokens": 99},
            "max_target_tokens is 99, tiny-en-fr writes at most 70",
        ),
        ({"text": "a", "timeout_s": 1000}, "timeout_s is 1000, the limit is 300"),
        ({"text": ["a"] * 300}, "there are 300 texts, the limit is 256"),
        ({"text": "a", "beam_threshold": -1}, "beam_threshold: Input should be greater than or equal to 0, not -1"),
        (
            {"text": "a", "keep": [{"pattern": "(?=x)"}]},
            "keep.0.pattern.pattern: must be a regular expression of RE2: invalid perl operator: (?=",
        ),
        ({"text": "a", "keep": [" "]}, "keep.0.term: must not be white space only"),
        ({"text": "a", "keep": [{"pattern": "a"}] * 21}, "keep: has 21 patterns, the limit is 20"),
        ({"text": "a" * 20_000, "keep": [{"pattern": "a"}]}, "patterns of keep match more than 10,000 times in a text"),
    ],
)
async def test_what_only_the_models_can_refuse_is_refused_with_the_numbers(
    serve: Serve, body: Any, detail: str
) -> None:
    async with serve() as client:
        assert problem(await client.post("/translate", json=body), 422)["detail"] == detail


@pytest.mark.parametrize(
    ("content", "detail"),
    [
        (b'{"text": "a"', "the body is not JSON: Expecting ',' delimiter at character 12"),
        (b"", "the body is not a JSON object"),
        (b'["a"]', "the body is not a JSON object"),
        (b'"a"', "the body is not a JSON object"),
        (b'{"text": "\xff"}', "the body is not UTF-8: invalid start byte at byte 10"),
        ('{"text": "a"}'.encode("utf-16"), "the body is not UTF-8: invalid start byte at byte 0"),
        ('{"text": "a"}'.encode("utf-16-le"), "the body is not JSON in UTF-8: it has a null byte at character 1"),
        (b'{"text": "a\n"}', "the body is not JSON: Invalid control character at character 11"),
        (json.dumps({str(i): i for i in range(1000)}).encode(), TOO_MANY),
        (b"[" * 100_000, UNREADABLE),
        (b'{"text": "a", "beam_size": ' + b"1" * 5000 + b"}", UNREADABLE),
    ],
)
async def test_a_body_of_the_wrong_shape_is_a_bad_request(serve: Serve, content: bytes, detail: str) -> None:
    async with serve() as client:
        response = await client.post("/translate", content=content, headers={"content-type": "application/json"})
    assert problem(response, 400)["detail"] == detail


@pytest.mark.parametrize(
    ("body", "status"),
    [(r'{"text": "\ud83d"}', 422), (r'{"text": "a", "source": "\ud83d"}', 422), (r'{"text": "a", "\ud83d": 1}', 400)],
)
async def test_half_of_a_surrogate_pair_is_refused_anywhere(serve: Serve, body: str, status: int) -> None:
    async with serve() as client:
        headers = {"content-type": "application/json"}
        problem(await client.post("/translate", content=body.encode(), headers=headers), status)


async def test_of_several_texts_the_unreadable_one_is_named(serve: Serve) -> None:
    async with serve() as client:
        headers = {"content-type": "application/json"}
        found = problem(await client.post("/translate", content=rb'{"text": ["a", "\ud83d"]}', headers=headers), 422)
    assert found["detail"] == "text: text 1 of 2 has half of a surrogate pair, which is no character"


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
async def test_another_content_type_is_refused(serve: Serve, headers: dict[str, str]) -> None:
    async with serve() as client:
        response = await client.post("/translate", content=b'{"text": "a"}', headers=headers)
    assert "this route reads application/json in UTF-8" in problem(response, 415)["detail"]


async def test_a_compressed_body_is_refused_by_the_name_of_its_encoding(serve: Serve) -> None:
    async with serve() as client:
        headers = {"content-type": "application/json", "content-encoding": "gzip"}
        response = await client.post("/translate", content=gzip.compress(b'{"text": "a"}'), headers=headers)
    assert problem(response, 415)["detail"] == "the content encoding is gzip, this route reads none"


@pytest.mark.parametrize("parameters", ["", "; charset=utf-8", ';charset="UTF-8"', "; v=1; charset=utf8", ";" * 9000])
async def test_a_content_type_may_have_parameters(serve: Serve, parameters: str) -> None:
    async with serve() as client:
        headers = {"content-type": f"Application/JSON{parameters}"}
        assert (await client.post("/classify", content=b'{"text": "a"}', headers=headers)).status_code == 200


async def test_unknown_paths_methods_and_models_are_told(serve: Serve) -> None:
    async with serve() as client:
        assert problem(await client.get("/nowhere"), 404)["detail"] == "there is nothing at /nowhere"
        problem(await client.post("/translate/", json={"text": "a"}), 404)
        wrong_method = await client.get("/translate")
        assert problem(wrong_method, 405)["detail"] == "/translate does not take GET"
        assert wrong_method.headers["Allow"] == "POST"
        body = {"text": "a", "model": "big"}
        detail = problem(await client.post("/classify", json=body), 404)["detail"]
    assert detail == "no model named 'big' can classify here; there are tiny-sentiment"


async def test_too_much_is_refused_with_both_sizes(serve: Serve) -> None:
    async with serve(max_body_bytes=100, max_text_characters=20) as client:
        body = problem(await client.post("/translate", json={"text": "a" * 200}), 413)
        text = problem(await client.post("/translate", json={"text": ["a", "b" * 21]}), 413)
    assert body["detail"] == "the body announces 211 bytes, the limit is 100"
    assert text["detail"] == "a text has 21 characters, the limit is 20"


async def test_too_many_sentences_are_refused_before_the_last_text_is_read(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []
    monkeypatch.setattr(
        service.tasks.reading, "sentence_spans", lambda *given: read.append(given) or sentence_spans(*given)
    )
    async with serve(max_sequences=3) as client:
        texts = ["a dog.\na dog.", "a dog.\na dog.", "a dog."]
        detail = problem(await client.post("/translate", json={"text": texts}), 422)["detail"]
    assert detail == "the request has at least 4 sentences or windows of a text, the limit is 3"
    assert len(read) == 2


async def test_evidence_and_alignment_of_too_many_tokens_are_refused(serve: Serve) -> None:
    async with serve(max_shown_tokens=3, max_evidence_tokens=3) as client:
        for path, wish in (("/classify", "evidence"), ("/translate", "alignment")):
            few = await client.post(path, json={"text": "the dog", wish: True})
            assert few.status_code == 200, few.text
            many = await client.post(path, json={"text": ["the dog", "a dog runs"], wish: True})
            assert problem(many, 422)["detail"].startswith(f"{wish}: ")
            assert "the limit is 3" in problem(many, 422)["detail"]


async def test_who_names_no_timeout_has_the_longest_where_the_default_is_longer(serve: Serve) -> None:
    async with serve(max_timeout_s=10.0) as client:
        assert (await client.post("/translate", json={"text": "the dog"})).status_code == 200


async def test_a_deadline_that_passed_is_a_gateway_timeout(serve: Serve) -> None:
    async with serve() as client:
        response = await client.post("/translate", json={"text": "the dog", "timeout_s": 1e-9})
    assert "the deadline passed" in problem(response, 504)["detail"]
