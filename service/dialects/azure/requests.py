"""Requests of Azure Translator. Requests of API 3.0 are read into the shape of the newest API, where each text has its
own language, kind and targets."""

from typing import Annotated, Any, Literal

from fastapi import Request
from pydantic import AliasChoices, BeforeValidator, Field

from service.base.errors import InvalidFields
from service.dialects.deepl.fields import lower
from service.dialects.shared.fields import CamelRequest, Refused
from service.http.json_route import Body, check_encoding, parse_json, validate
from service.schemas.sent import Sent

OLD = "3.0"
VERSIONS = (OLD, "2025-10-01-preview", "2026-06-06")
OF_TARGET = {
    "toScript": "script",
    "category": "deploymentName",
    "allowFallback": "allowFallback",
    "profanityAction": "profanityAction",
    "profanityMarker": "profanityMarker",
}
"""Parameters of API 3.0 that belong to a target, by the names of its fields."""
CLIENT_FIELDS = {"source": ("inputs", "language"), "target": ("targets", "language"), "text": ("inputs", "text")}
"""Of the newest API."""
_ANY_CASE = BeforeValidator(lower, json_schema_input_type=str)
NoAction = Annotated[Literal["noaction"], _ANY_CASE]
Neutral = Annotated[Literal["neutral"], _ANY_CASE]
TextType = Annotated[Literal["plain", "html"], _ANY_CASE]


class AzureText(Sent):
    text: str = Field(validation_alias=AliasChoices("text", "Text"), examples=["A dog runs."])


class AzureTexts(Sent):
    texts: list[AzureText] = Field(min_length=1)


class AzureTarget(CamelRequest):
    language: str = Field(examples=["fr"])
    script: str | None = None
    deployment_name: str | None = Field(default=None, description="general or a name from /models.")
    allow_fallback: bool | None = None
    profanity_action: NoAction | None = None
    profanity_marker: Any = Field(default=None, description="Has no effect.")
    tone: Neutral | None = None
    gender: Neutral | None = None
    adaptive_dataset_id: Refused = Field(default=None, description="Refused.")
    reference_text_pairs: Refused = Field(default=None, description="Refused.")


class AzureInput(CamelRequest):
    text: str = Field(validation_alias=AliasChoices("text", "Text"), examples=["A dog runs."])
    language: str | None = Field(default=None, description="Detected by default.")
    script: str | None = None
    text_type: TextType = "plain"
    targets: list[AzureTarget] = Field(min_length=1)


class AzureInputs(Sent):
    inputs: list[AzureInput] = Field(min_length=1)


def version_of(request: Request) -> str:
    """Return the version of the API. Raises InvalidFields."""
    version = request.query_params.get("api-version", "")
    if version not in VERSIONS:
        raise InvalidFields([(("api-version",), f"must be one of {', '.join(VERSIONS)}, not {version!r}")])
    return version


async def read_texts(model: type[Body], request: Request) -> Body:
    """Read a list of texts. Raises BadRequest, InvalidFields."""
    version_of(request)
    return validate(model, {"texts": _listed(await _json(request))})


async def read_inputs(model: type[Body], request: Request) -> Body:
    """Read texts with their languages and targets, of any version. Raises BadRequest, InvalidFields."""
    version, query = version_of(request), request.query_params
    body = await _json(request)
    if version != OLD:
        request.state.client_fields = CLIENT_FIELDS
        return validate(model, body if isinstance(body, dict) else {"inputs": body})
    if not (targets := [*filter(None, query.getlist("to"))]):
        raise InvalidFields([(("to",), "is required")])
    common = {field: query[name] for name, field in OF_TARGET.items() if query.get(name)}
    shared = {
        "language": query.get("from") or None,
        "script": query.get("fromScript") or None,
        "textType": query.get("textType") or "plain",
        "targets": [{"language": target, **common} for target in targets],
    }
    inputs = [{**text, **shared} if isinstance(text, dict) else text for text in _listed(body)]
    return validate(model, {"inputs": inputs})


async def _json(request: Request) -> Any:
    check_encoding(request.headers.get("content-encoding", ""))
    return parse_json(await request.body())


def _listed(body: Any) -> list[Any]:
    if not isinstance(body, list):
        raise InvalidFields([(("body",), "must be a JSON array")])
    return body
