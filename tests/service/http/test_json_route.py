"""Bodies: read once where they are good, and as Python's own parser reads them where they are not."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.base.errors import BadRequest, InvalidFields, RequestError
from service.http import json_route
from service.http.json_route import parse_json_body
from service.schemas.requests import ClassifyRequest, EmbedRequest, TranslateRequest
from tests.service.conftest import Serve

MODELS = (TranslateRequest, ClassifyRequest, EmbedRequest)
FIELDS = sorted({name for model in MODELS for name in model.model_fields})
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.sampled_from(["all", "base64"]),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), children, max_size=2),
    max_leaves=4,
)
BODIES = st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=4).map(lambda body: {"text": "a dog", **body})


def outcome(model: Any, body: bytes) -> Any:
    """What a body says, or why it says nothing."""
    try:
        return parse_json_body(model, body)
    except RequestError as error:
        return type(error), str(error), error.fields


@given(st.sampled_from(MODELS), BODIES, st.booleans(), st.data())
def test_a_body_says_the_same_read_fast_or_slowly(model: Any, body: dict[str, Any], in_ascii: bool, data: Any) -> None:
    content = json.dumps(body, ensure_ascii=in_ascii).encode("utf-8", "surrogatepass")
    if data.draw(st.booleans()):  # a byte that was lost
        place = data.draw(st.integers(0, len(content) - 1))
        content = content[:place] + content[place + 1 :]
    with pytest.MonkeyPatch.context() as patch:
        found = outcome(model, content)
        patch.setattr(model, "model_validate_json", model_validate_never)
        slowly = outcome(model, content)
    assert found == slowly


def model_validate_never(_: bytes) -> Any:
    """As if every body had a mistake."""
    return TranslateRequest.model_validate({})


@pytest.mark.parametrize("model", MODELS)
def test_a_good_body_is_read_once(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_again(body: bytes) -> Any:
        raise AssertionError(body)

    monkeypatch.setattr(json_route, "parse_json_object", read_again)
    assert parse_json_body(model, '{"text": ["Là", "\\ud83d\\ude00"], "timeout_s": 5}'.encode()).text == ["Là", "😀"]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ('\ufeff{"text": "a"}', "a"),
        ('{"text": "a", "text": "b"}', "b"),
        ('{"text": 1, "text": "b"}\n', "b"),
        (r'{"\u0074ext": "a\u0000"}', "a\0"),
    ],
)
def test_what_pythons_parser_takes_is_taken(body: str, text: str) -> None:
    assert parse_json_body(ClassifyRequest, body.encode()).text == [text]


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b'{"text": "a", "timeout_s": NaN}', InvalidFields),
        (b'{"text": "a", "timeout_s": 1e400}', InvalidFields),
        (b'{"text": "a", "text": 1}', InvalidFields),
        (b'{"text": "\\ud83d"}', InvalidFields),
        (b'{"text": "a", "more": ' + b"[" * 300 + b"]" * 300 + b"}", InvalidFields),
        (b'{"text": "\xed\xa0\xbd"}', BadRequest),
        (b'{"text": "a"} {}', BadRequest),
        (b"null", BadRequest),
    ],
)
def test_what_no_request_may_have_is_refused(body: bytes, error: type[RequestError]) -> None:
    with pytest.raises(error):
        parse_json_body(ClassifyRequest, body)


@pytest.mark.anyio
async def test_nobody_logs_requests_unless_that_is_asked_for(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "service.http")
    async with serve() as client:
        await client.post("/classify", json={"text": "the dog"})
        assert caplog.messages == []
    async with serve(access_log=True) as client:
        await client.get("/health/ready")
        await client.get("/metrics")
        await client.post("/classify", json={"text": "the dog"}, headers={"X-Request-ID": "abc-1"})
    (message,) = caplog.messages
    assert message.startswith("POST /classify 200 ")
    assert message.endswith(" ms abc-1")
