"""Azure Translator: API 3.0, and the newest one. `api-version` in the query tells which."""

from fastapi import APIRouter, Request
from fastapi.security import APIKeyHeader
from pydantic import BaseModel, Field

from service.base.errors import InvalidFields, RequestError
from service.dialects.azure.requests import OLD, AzureTexts, read_inputs, read_texts, version_of
from service.dialects.azure.translate import CODES, NOTHING, AzureDetected, add_translate, lengths, units_of
from service.dialects.shared.fields import CamelAnswer
from service.dialects.shared.keys import credentials
from service.dialects.shared.languages import native_source
from service.dialects.shared.texts import detect_texts
from service.http.dialect import Backend, Dialect, ErrorBody
from service.text.languages import is_right_to_left, name_in, subtag
from service.text.sentences import sentence_spans
from service.text.tokenization import run_on_each

HEADER = "Ocp-Apim-Subscription-Key"
KEY = credentials(
    f"{HEADER}: <key>",
    headers=(HEADER,),
    query=("Subscription-Key",),
    described=APIKeyHeader(name=HEADER, auto_error=False),
)
SCOPES = ("translation", "transliteration", "dictionary")
OF_FIELDS = {
    "to": 400036,
    "targets.language": 400036,
    "from": 400035,
    "inputs.language": 400035,
    "fromScript": 400018,
    "toScript": 400004,
    "text": 400005,
    "Text": 400005,
    "textType": 400071,
    "scope": 400001,
    "api-version": 400021,
    "category": 400079,
    "profanityAction": 400042,
    "tone": 400042,
    "gender": 400042,
    "adaptiveDatasetId": 400042,
    "referenceTextPairs": 400042,
    "mstrans:dictionary": 400042,
}
"""Codes by the invalid field: by its path, or by its name."""
OF_ERRORS = {
    "quota_exceeded": 403001,
    "rate_limited": 429001,
    "deadline_passed": 408002,
    "body_timeout": 408002,
    "malformed_body": 400074,
    "unsupported_language_pair": 400023,
    "text_too_long": 400050,
    "too_many_texts": 400072,
    "content_too_large": 400077,
}
"""Codes by those of attend. Others are the status and three zeros."""


class AzureReason(BaseModel):
    code: int = Field(description="The status, and three digits more.", examples=[400036])
    message: str


class AzureError(ErrorBody):
    error: AzureReason

    @classmethod
    def of(cls, error: RequestError) -> "AzureError":
        names = [part for part in error.fields[0][0] if isinstance(part, str)] if error.fields else [""]
        code = OF_FIELDS.get(".".join(names), OF_FIELDS.get(names[-1]))
        code = code or OF_ERRORS.get(getattr(error, "code", "")) or 1000 * AZURE.status_of(error)
        return cls(error=AzureReason(code=code, message=str(error)))


class AzureLanguage(CamelAnswer):
    name: str = Field(description="In the language of Accept-Language.")
    native_name: str
    dir: str
    models: list[str] | None = Field(default=None, description="Of newer APIs; empty.")


class AzureLanguages(CamelAnswer):
    translation: dict[str, AzureLanguage] | None = None
    transliteration: dict[str, AzureLanguage] | None = None
    dictionary: dict[str, AzureLanguage] | None = Field(default=None, description="Of API 3.0.")
    models: list[str] | None = Field(default=None, description="Of newer APIs; empty.")


class AzurePossible(CamelAnswer):
    language: str
    score: float
    is_translation_supported: bool = True
    is_transliteration_supported: bool = False


class AzureDetection(AzurePossible):
    alternatives: list[AzurePossible]


class AzureSentences(CamelAnswer):
    detected_language: AzureDetected | None = Field(default=None, description="If the request names no language.")
    sent_len: list[int] = Field(description="UTF-16 units, with the white space behind.")


def routers(backend: Backend) -> list[APIRouter]:
    models, guards = backend.models, backend.access.guards(KEY)
    inputs, texts = AZURE.router(guards, read_inputs), AZURE.router(guards, read_texts)
    free = AZURE.router(backend.access.guards(None))
    add_translate(inputs, backend)

    @texts.post("/azure/detect")
    async def detect(request: AzureTexts, http: Request) -> list[AzureDetection]:
        """Detect the language of each text."""
        found = await detect_texts(models, CODES, [one.text for one in request.texts], http.state.context)
        possible = [
            [AzurePossible(language=one.language, score=one.confidence) for one in ranked]
            or [AzurePossible(language=NOTHING, score=0)]
            for ranked in found
        ]
        return [AzureDetection(**vars(first), alternatives=others) for first, *others in possible]

    @texts.post("/azure/breaksentence", response_model_exclude_none=True)
    async def break_sentence(request: AzureTexts, http: Request) -> list[AzureSentences]:
        """Return the lengths of the sentences of each text."""
        given, context = [one.text for one in request.texts], http.state.context
        language = http.query_params.get("language")
        if language:
            native_source(language, models.catalog.directions(None))
        detected = [
            AzureDetected(language=ranked[0].language, score=ranked[0].confidence)
            if ranked
            else AzureDetected(language=NOTHING, score=0)
            for ranked in await detect_texts(models, CODES, given, context)
        ]

        def cut(i: int) -> AzureSentences:
            spans = sentence_spans(given[i], subtag(language or detected[i].language))
            return AzureSentences(
                detected_language=None if language else detected[i],
                sent_len=lengths(units_of(given[i]), [span.start for span in spans]),
            )

        return await run_on_each(range(len(given)), cut, sum(map(len, given)), backend.settings.default_timeout_s)

    @free.get("/azure/languages", response_model_exclude_none=True)
    async def languages(http: Request) -> AzureLanguages:
        """List the languages, with their names in the language of Accept-Language."""
        is_old = version_of(http) == OLD
        scopes = [*filter(None, http.query_params.get("scope", "").split(","))] or SCOPES
        if not {*scopes} <= {*SCOPES}:
            raise InvalidFields([(("scope",), f"must be some of {', '.join(SCOPES)}")])
        reader = http.headers.get("accept-language", "").split(",")[0].split(";")[0].strip()
        listed = {
            code: AzureLanguage(
                name=name_in(reader, code),
                native_name=name_in(code, code),
                dir="rtl" if is_right_to_left(code) else "ltr",
                models=None if is_old else [],
            )
            for code in CODES.listed(models.catalog.directions(None))
        }
        return AzureLanguages(
            translation=listed if "translation" in scopes else None,
            transliteration={} if "transliteration" in scopes else None,
            dictionary={} if "dictionary" in scopes and is_old else None,
            models=None if is_old else [],
        )

    return [inputs, texts, free]


AZURE = Dialect(
    name="azure",
    about="Azure Translator; the endpoint for its clients ends in /azure.",
    paths=("/azure",),
    error=AzureError,
    routers=routers,
    statuses={413: 400, 422: 400, 504: 408, "key_wrong": 401, "unknown_model": 400, "quota_exceeded": 403},
    client_fields={"source": ("from",), "target": ("to",)},
)
