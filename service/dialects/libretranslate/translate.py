"""LibreTranslate's translation and detection, and its words for what it refuses."""

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from service.base.errors import BadRequest, UnprocessableRequest
from service.base.settings import Settings
from service.front.directions import AUTO
from service.front.models import Models
from service.http.json_route import validate
from service.schemas.answers import DetectedLanguage, TranslateResponse
from service.schemas.requests import DetectRequest, TranslateRequest
from service.schemas.sent import Sent
from service.text.languages import are_same, english_name

MAX_ALTERNATIVES = 7
TEXT = "text"
FORMATS = (TEXT, "html")


class LibreTranslateRequest(Sent):
    q: str | list[str] | None = Field(default=None, description="A text; in JSON also a list.", examples=["A dog."])
    source: str | None = Field(default=None, description="A code from /languages, or auto.", examples=["en"])
    target: str | None = Field(default=None, examples=["fr"])
    format: str | None = Field(default=None, description="text or html; text by default.", examples=["text"])
    alternatives: Any = Field(default=0, description=f"Their number, at most {MAX_ALTERNATIVES}.", examples=[0])


class Detected(BaseModel):
    confidence: int = Field(description="0 to 100.")
    language: str


class LibreTranslation(BaseModel):
    translatedText: str | list[str]  # noqa: N815
    detectedLanguage: Detected | list[Detected] | None = None  # noqa: N815
    alternatives: list[str] | list[list[str]] | None = None


class TextToDetect(Sent):
    q: str | None = Field(default=None, examples=["A dog runs."])


def add_translate(router: APIRouter, models: Models, settings: Settings) -> None:
    """Add the routes of texts."""

    @router.post("/libretranslate/translate", response_model_exclude_none=True)
    async def translate(request: LibreTranslateRequest, http: Request) -> LibreTranslation:
        """Translate a text or a list of texts."""
        try:
            native = to_native(request, models, settings)
            return from_native(request, await models.translate(native, http.state.context))
        except UnprocessableRequest:
            refuse_languages(str(request.source), str(request.target), models)
            raise

    @router.post("/libretranslate/detect")
    async def detect(request: TextToDetect, http: Request) -> list[Detected]:
        """Detect the language of a text."""
        if not request.q:
            raise BadRequest("Invalid request: missing q parameter")
        answer = await models.detect(validate(DetectRequest, {"text": request.q}), http.state.context)
        return [_detected(language) for language in answer.detections[0].languages or (None,)]


def to_native(request: LibreTranslateRequest, models: Models, settings: Settings) -> TranslateRequest:
    """Return the native request. Raises BadRequest: a field is missing or not allowed; in LibreTranslate's words.
    Raises InvalidFields: a text is not valid."""
    for name in ("q", "source", "target"):
        if not getattr(request, name):
            raise BadRequest(f"Invalid request: missing {name} parameter")
    n_alternatives, text_format, texts = _n_alternatives(request), request.format or TEXT, _texts(request)
    if text_format not in FORMATS:
        raise BadRequest(f"{text_format} format is not supported")
    longest = max(map(len, texts))
    for size, limit in ((len(texts), settings.max_texts), (longest, settings.max_text_characters)):
        if size > limit:
            raise BadRequest(f"Invalid request: request ({size}) exceeds text limit ({limit})")
    options: dict[str, Any] = {}
    if n_alternatives and text_format == TEXT:
        decodings = (translator.manifest.decoding for translator in models.catalog.translators)
        beam_sizes = (decoding.beam_size for decoding in decodings if decoding)
        options = {"alternatives": n_alternatives, "beam_size": max(n_alternatives + 1, *beam_sizes)}
    languages = {"source": native_source(str(request.source)), "target": request.target}
    return validate(TranslateRequest, {"text": texts, "format": text_format} | languages | options)


def from_native(request: LibreTranslateRequest, answer: TranslateResponse) -> LibreTranslation:
    """Return the answer: lists if the request has a list of texts."""
    translated = [translation.text for translation in answer.translations]
    alternatives = [[other.text for other in translation.alternatives or []] for translation in answer.translations]
    detected = [_detected(translation.detected) for translation in answer.translations]
    is_list, is_auto = isinstance(request.q, list), native_source(str(request.source)) == AUTO
    return LibreTranslation(
        translatedText=translated if is_list else translated[0],
        detectedLanguage=(detected if is_list else detected[0]) if is_auto else None,
        alternatives=(alternatives if is_list else alternatives[0]) if _n_alternatives(request) else None,
    )


def native_source(source: str) -> str:
    """Return the native name of a source: `auto` may be in any case."""
    return AUTO if source.lower() == AUTO else source


def _detected(language: DetectedLanguage | None) -> Detected:
    """A text without words counts as English, as LibreTranslate has it."""
    if language is None:
        return Detected(confidence=0, language="en")
    return Detected(confidence=round(100 * language.confidence), language=language.language)


def refuse_languages(source: str, target: str, models: Models) -> None:
    """Raises BadRequest, in LibreTranslate's words: a language is not served, or not translated into the other."""
    served = {language.language: language for language in models.catalog.directions(None).reachable()}
    native = [next((language for language in served if are_same(code, language)), None) for code in (source, target)]
    for code, language in zip((source, target), native, strict=True):
        if language is None and (code == target or code.lower() != AUTO):
            raise BadRequest(f"{code} is not supported")
    reads, writes = native
    if reads and writes and writes not in served[reads].all_targets:
        names = f"{english_name(writes)} ({writes})", f"{english_name(reads)} ({reads})"
        raise BadRequest(f"{names[0]} is not available as a target language from {names[1]}")


def _texts(request: LibreTranslateRequest) -> list[str]:
    return [request.q] if isinstance(request.q, str) else request.q or []


def _n_alternatives(request: LibreTranslateRequest) -> int:
    """Raises BadRequest: the field is no number, or too large."""
    try:
        number = int(request.alternatives or 0)
    except (TypeError, ValueError, OverflowError):  # OverflowError: an infinite number
        raise BadRequest("Invalid request: alternatives parameter is not a number") from None
    if number > MAX_ALTERNATIVES:
        raise BadRequest(f"Invalid request: alternatives parameter must be <= {MAX_ALTERNATIVES}")
    return max(0, number)
