"""Amazon Translate: operations that a header names, in JSON."""

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from fastapi import APIRouter, Request
from fastapi.security import APIKeyHeader
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_pascal

from service.access.guards import Credentials, requester_of
from service.base.errors import InvalidFields, RequestError, UnknownGlossary, UnprocessableRequest
from service.dialects.shared.files import name_of_type, translated_content
from service.dialects.shared.languages import LanguageCodes
from service.dialects.shared.texts import translate_texts
from service.glossaries.store import Glossary
from service.http.bodies import json_body
from service.http.dialect import Backend, Dialect, ErrorBody
from service.schemas.sent import Sent
from service.storage.database_threads import in_thread
from service.text.languages import name_in

SERVICE = "AWSShineFrontendService_20170701."
CODES = LanguageCodes({"zh-Hant": "zh-TW", "nb": "no", "fil": "tl", "pt-BR": "pt"})
DISPLAY_CODES = frozenset({"de", "en", "es", "fr", "it", "ja", "ko", "pt", "zh", "zh-TW"})
LARGEST_PAGE = 500
ACCESS_KEY = re.compile(r"AWS4-HMAC-SHA256\s+Credential=(.+?)/\d{8}/")
"""The part before the date is the key. The signature is not checked: attend keeps no secrets of keys."""
EXCEPTIONS = {
    "key_missing": "MissingAuthenticationTokenException",
    "key_wrong": "UnrecognizedClientException",
    "route_forbidden": "AccessDeniedException",
    "cross_site": "AccessDeniedException",
    "malformed_body": "SerializationException",
    "text_too_long": "TextSizeLimitExceededException",
    "content_too_large": "TextSizeLimitExceededException",
    "unsupported_language_pair": "UnsupportedLanguagePairException",
    "language_not_detected": "DetectedLanguageLowConfidenceException",
    "unknown_glossary": "ResourceNotFoundException",
    "unknown_path": "UnknownOperationException",
    "rate_limited": "TooManyRequestsException",
    "quota_exceeded": "ServiceQuotaExceededException",
    "internal_error": "InternalServerException",
}
"""Exceptions of Amazon's clients by attend's codes. Other errors are `ServiceUnavailableException` from 503 on, and
`InvalidRequestException` below."""
OF_FIELDS = {
    "SourceLanguageCode": "UnsupportedLanguagePairException",
    "TargetLanguageCode": "UnsupportedLanguagePairException",
    "DisplayLanguageCode": "UnsupportedDisplayLanguageCodeException",
    "X-Amz-Target": "UnknownOperationException",
}


class AmazonError(ErrorBody):
    type: str = Field(alias="__type", description="Name of an exception of Amazon's clients.")
    Message: str
    SourceLanguageCode: str | None = Field(default=None, description="If the language pair is not supported.")
    TargetLanguageCode: str | None = None

    model_config = ConfigDict(validate_by_name=True, serialize_by_alias=True)

    @classmethod
    def of(cls, error: RequestError) -> "AmazonError":
        name = OF_FIELDS.get(str(error.fields[0][0][0])) if error.fields else None
        name = name or EXCEPTIONS.get(getattr(error, "code", ""))
        name = name or ("ServiceUnavailableException" if error.status >= 503 else "InvalidRequestException")
        return cls(type=name, Message=str(error), **getattr(error, "languages", {}))


class Pascal(Sent):
    """Base of objects whose fields are named `LikeThis`."""

    model_config = ConfigDict(
        alias_generator=to_pascal, validate_by_name=True, validate_by_alias=True, serialize_by_alias=True
    )


class Languages(Pascal):
    source_language_code: str
    target_language_code: str
    terminology_names: list[str] = Field(default=[], max_length=1, description="Name or id of a stored glossary.")

    @property
    def pair(self) -> tuple[str, str]:
        return self.source_language_code, self.target_language_code


class Text(Languages):
    text: str = Field(min_length=1)


class DocumentContent(Pascal):
    content: str = Field(description="The file in base64.")
    content_type: str


class Document(Languages):
    document: DocumentContent


class Page(Pascal):
    max_results: int = Field(default=LARGEST_PAGE, ge=1, le=LARGEST_PAGE)
    next_token: str = Field(default="0", pattern=r"^\d{1,9}$")
    display_language_code: str = "en"

    def of(self, items: Sequence[Any]) -> dict[str, Any]:
        """Return these items under "", and `NextToken` if more follow."""
        start = int(self.next_token)
        end = start + self.max_results
        return {"": [*items[start:end]]} | ({"NextToken": str(end)} if end < len(items) else {})


class Named(Pascal):
    name: str


Operation = Callable[[Any, Request], Awaitable[dict[str, Any]]]


class Operations:
    """The operations of a server, each with the model of its requests."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.by_name: dict[str, tuple[type[BaseModel], Operation]] = {
            "TranslateText": (Text, self._translate_text),
            "TranslateDocument": (Document, self._translate_document),
            "ListLanguages": (Page, self._list_languages),
            "ListTerminologies": (Page, self._list_terminologies),
            "GetTerminology": (Named, self._get_terminology),
        }

    async def _translate_text(self, request: Text, http: Request) -> dict[str, Any]:
        glossary = await self._glossary(request.terminology_names, http)
        models, options = self._backend.models, {"glossary_id": glossary.id} if glossary else {}
        [translated] = await translate_texts(
            models, CODES, [request.text], *request.pair, http.state.context, **options
        )
        return {"TranslatedText": translated.text} | _languages(request, translated.source, glossary)

    async def _translate_document(self, request: Document, http: Request) -> dict[str, Any]:
        glossary = await self._glossary(request.terminology_names, http)
        glossary_id, name = glossary and glossary.id, name_of_type(request.document.content_type)
        source, content = await translated_content(
            self._backend,
            "Document.Content",
            request.document.content,
            name,
            *request.pair,
            http.state.context,
            glossary_id=glossary_id,
        )
        return {"TranslatedDocument": {"Content": content}} | _languages(request, CODES.name(source), glossary)

    async def _list_languages(self, request: Page, _: Request) -> dict[str, Any]:
        reader = request.display_language_code
        if reader not in DISPLAY_CODES:
            message = f"must be one of {', '.join(sorted(DISPLAY_CODES))}, not {reader}"
            raise InvalidFields([(("DisplayLanguageCode",), message)])
        codes = CODES.listed(self._backend.models.catalog.directions(None))
        page = request.of(["auto", *codes])
        named = [{"LanguageCode": code, "LanguageName": name_in(reader, code).capitalize()} for code in page.pop("")]
        return {"Languages": named, "DisplayLanguageCode": reader} | page

    async def _list_terminologies(self, request: Page, http: Request) -> dict[str, Any]:
        page = request.of(await in_thread(self._backend.stores.glossaries.all, requester_of(http)))
        return {"TerminologyPropertiesList": [_properties(glossary) for glossary in page.pop("")]} | page

    async def _get_terminology(self, request: Named, http: Request) -> dict[str, Any]:
        glossary = await self._glossary([request.name], http)
        return {"TerminologyProperties": _properties(glossary)} if glossary else {}

    async def _glossary(self, names: list[str], http: Request) -> Glossary | None:
        """Raises UnknownGlossary: no stored glossary has this name or id."""
        if not names:
            return None
        for glossary in await in_thread(self._backend.stores.glossaries.all, requester_of(http)):
            if names[0] in (glossary.id, glossary.name):
                return glossary
        raise UnknownGlossary(f"No glossary has the name or id {names[0]}")


def routers(backend: Backend) -> list[APIRouter]:
    router, operations = AMAZON.router(backend.access.guards(KEY)), Operations(backend).by_name

    @router.post("/aws/")
    @router.post("/aws")
    async def perform(http: Request) -> dict[str, Any]:
        """Perform the operation that X-Amz-Target names."""
        target = http.headers.get("x-amz-target", "")
        model, operation = operations.get(target.removeprefix(SERVICE), (None, None))
        if model is None or operation is None:
            raise InvalidFields([(("X-Amz-Target",), f"must be one of {', '.join(operations)}, not {target}")])
        request = await json_body(model, http)
        try:
            return await operation(request, http)
        except UnprocessableRequest as error:
            if isinstance(request, Languages):
                error.languages = _asked(request)  # type: ignore[attr-defined]
            raise

    return [router]


def _asked(request: Languages) -> dict[str, Any]:
    return request.model_dump(include={"source_language_code", "target_language_code"}, by_alias=True)


def _languages(request: Languages, source: str | None, glossary: Glossary | None) -> dict[str, Any]:
    """A text without words counts as in the target language."""
    applied = {"AppliedTerminologies": [{"Name": glossary.name, "Terms": []}]} if glossary else {}
    return _asked(request) | {"SourceLanguageCode": source or request.target_language_code} | applied


def _properties(glossary: Glossary) -> dict[str, Any]:
    dictionaries = glossary.dictionaries
    return {
        "Name": glossary.name,
        "Arn": glossary.id,
        "SourceLanguageCode": CODES.name(min((dictionary.source for dictionary in dictionaries), default="")),
        "TargetLanguageCodes": sorted(map(CODES.name, {dictionary.target for dictionary in dictionaries})),
        "TermCount": sum(dictionary.n_entries for dictionary in dictionaries),
        "CreatedAt": glossary.created_at.timestamp(),
    }


async def _key(request: Request) -> bytes | None:
    match = ACCESS_KEY.match(request.headers.get("authorization", ""))
    return match[1].encode("latin-1") if match else None


KEY = Credentials(
    _key,
    "the access key id of an AWS signature",
    APIKeyHeader(name="Authorization", scheme_name="AWS4-HMAC-SHA256", auto_error=False),
)
AMAZON = Dialect(
    name="amazon",
    about="Amazon Translate; the endpoint URL for its clients ends in /aws.",
    paths=("/aws",),
    error=AmazonError,
    routers=routers,
    statuses={401: 400, 413: 400, 415: 400, 422: 400, "key_wrong": 400, "quota_exceeded": 400, 504: 503},
    client_fields={
        "text": ("Text",),
        "source": ("SourceLanguageCode",),
        "target": ("TargetLanguageCode",),
        "glossary_id": ("TerminologyNames",),
    },
)
