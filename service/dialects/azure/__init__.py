"""Azure Translator: API 3.0, and the newest one. `api-version` in the query tells which."""

from fastapi import APIRouter, Request
from fastapi.security import APIKeyHeader
from pydantic import BaseModel, Field

from service.base.errors import InvalidFields, RequestError
from service.dialects.azure.requests import OLD, AzureTexts, read_inputs, read_texts, version_of
from service.dialects.azure.translate import CODES, NOTHING, Answer, add_translate, lengths, units_of
from service.dialects.shared.keys import credentials
from service.dialects.shared.languages import native_source
from service.dialects.shared.texts import detect_texts
from service.http.dialect import Backend, Dialect, ErrorBody
from service.schemas.answers import DetectedLanguage
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
"""Codes by the path or the name of the invalid field."""
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
"""Codes by attend's codes. Other errors have the status and three zeros."""


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


def routers(backend: Backend) -> list[APIRouter]:
    models, guards = backend.models, backend.access.guards(KEY)
    inputs, of_texts = AZURE.router(guards, read_inputs), AZURE.router(guards, read_texts)
    free = AZURE.router(backend.access.guards(None))
    add_translate(inputs, backend)

    @of_texts.post("/azure/detect")
    async def detect(request: AzureTexts, http: Request) -> list[Answer]:
        """Detect the language of each text."""
        detected = await detect_texts(models, CODES, [text.text for text in request.texts], http.state.context)
        supported = {"isTranslationSupported": True, "isTransliterationSupported": False}
        possible = [[_detected(language) | supported for language in ranked or (None,)] for ranked in detected]
        return [first | {"alternatives": others} for first, *others in possible]

    @of_texts.post("/azure/breaksentence")
    async def break_sentence(request: AzureTexts, http: Request) -> list[Answer]:
        """Return the lengths of the sentences of each text."""
        texts, context = [text.text for text in request.texts], http.state.context
        language = http.query_params.get("language")
        if language:
            native_source(language, models.catalog.directions(None))
        ranked = await detect_texts(models, CODES, texts, context)

        def cut(i: int) -> Answer:
            detected = _detected(ranked[i][0] if ranked[i] else None)
            spans = sentence_spans(texts[i], subtag(language or detected["language"]))
            sentences = {"sentLen": lengths(units_of(texts[i]), [span.start for span in spans])}
            return sentences if language else sentences | {"detectedLanguage": detected}

        return await run_on_each(range(len(texts)), cut, sum(map(len, texts)), backend.settings.default_timeout_s)

    @free.get("/azure/languages")
    async def languages(http: Request) -> Answer:
        """List the languages, with their names in the language of Accept-Language."""
        is_old = version_of(http) == OLD
        scopes = [*filter(None, http.query_params.get("scope", "").split(","))] or SCOPES
        if not {*scopes} <= {*SCOPES}:
            raise InvalidFields([(("scope",), f"must be some of {', '.join(SCOPES)}")])
        reader = http.headers.get("accept-language", "").split(",")[0].split(";")[0].strip()
        of_newest: Answer = {} if is_old else {"models": []}
        listed = {
            code: {"name": name_in(reader, code), "nativeName": name_in(code, code)}
            | {"dir": "rtl" if is_right_to_left(code) else "ltr"}
            | of_newest
            for code in CODES.listed(models.catalog.directions(None))
        }
        answer: Answer = {scope: listed if scope == "translation" else {} for scope in SCOPES if scope in scopes}
        if not is_old:
            answer.pop("dictionary", None)
        return answer | of_newest

    return [inputs, of_texts, free]


def _detected(language: DetectedLanguage | None) -> Answer:
    if language is None:
        return {"language": NOTHING, "score": 0}
    return {"language": language.language, "score": language.confidence}


AZURE = Dialect(
    name="azure",
    about="Azure Translator; the endpoint for its clients ends in /azure.",
    paths=("/azure",),
    error=AzureError,
    routers=routers,
    statuses={413: 400, 422: 400, 504: 408, "key_wrong": 401, "unknown_model": 400, "quota_exceeded": 403},
    client_fields={"source": ("from",), "target": ("to",)},
)
