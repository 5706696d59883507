"""LibreTranslate: its clients, and its own page in a browser."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from service.base.errors import (
    BadRequest,
    KeyMissing,
    KeyWrong,
    NotReady,
    RateLimited,
    RequestError,
    UnprocessableRequest,
)
from service.base.settings import Settings
from service.dialects.libretranslate.files import add_files
from service.documents.kinds import KINDS_BY_ENDING
from service.http.access import Access, Credentials
from service.http.bodies import as_native, fields_of, form_or_json
from service.http.dialect import Dialect, ErrorBody
from service.http.json_route import Body, validate
from service.models.catalog import Catalog
from service.models.directions import AUTO, Directions
from service.models.models import Models
from service.schemas.answers import DetectedLanguage, Translation
from service.schemas.requests import DetectRequest, TranslateRequest
from service.text.languages import are_same, english_name

MOST_ALTERNATIVES = 7
TEXT = "text"
FORMATS = (TEXT, "html")
EMPTY = "\n"
"""In place of a text that is empty, as native texts never are."""


class LibreTranslateError(ErrorBody):
    error: str

    @classmethod
    def of(cls, error: RequestError) -> "LibreTranslateError":
        if isinstance(error, KeyMissing | KeyWrong):
            return cls(error="Invalid API key")
        return cls(error=f"Slowdown: {error}" if isinstance(error, RateLimited) else str(error))


class Disabled(RequestError):  # noqa: N818
    status = 403


class LibreTranslateRequest(BaseModel):
    q: str | list[str] | None = Field(
        default=None, description="A text; in JSON also a list.", examples=["A dog runs."]
    )
    source: str | None = Field(default=None, description="A code from /languages, or auto.", examples=["en"])
    target: str | None = Field(default=None, examples=["fr"])
    format: str | None = Field(default=None, description="text or html; text by default.", examples=["text"])
    alternatives: Any = Field(default=0, description=f"How many; {MOST_ALTERNATIVES} at most.", examples=[0])


class Detected(BaseModel):
    confidence: float = Field(description="0 to 100.")
    language: str


class LibreTranslation(BaseModel):
    translatedText: str | list[str]  # noqa: N815
    detectedLanguage: Detected | list[Detected] | None = None  # noqa: N815
    alternatives: list[str] | list[list[str]] | None = None


class TextToDetect(BaseModel):
    q: str | None = Field(default=None, examples=["A dog runs."])


class LibreLanguage(BaseModel):
    code: str
    name: str
    targets: list[str] = Field(description="Its own too.")


class NamedLanguage(BaseModel):
    code: str
    name: str


class Languages(BaseModel):
    source: NamedLanguage
    target: NamedLanguage


class FrontendSettings(BaseModel):
    """What a page needs to know."""

    charLimit: int  # noqa: N815
    frontendTimeout: Annotated[int, Field(description="Milliseconds to wait while somebody types.")] = 500  # noqa: N815
    apiKeys: bool  # noqa: N815
    keyRequired: bool  # noqa: N815
    suggestions: bool = False
    filesTranslation: bool = True  # noqa: N815
    supportedFilesFormat: list[str]  # noqa: N815
    language: Languages


class Health(BaseModel):
    status: str = "ok"


def routers(models: Models, settings: Settings, access: Access) -> list[APIRouter]:
    keyed = LIBRETRANSLATE.router(access.guards(Credentials(_key, "api_key", None)), _fields)
    free = LIBRETRANSLATE.router(access.guards(None))

    @keyed.post("/libretranslate/translate", response_model_exclude_none=True)
    async def translate(request: LibreTranslateRequest, http: Request) -> LibreTranslation:
        """Translate a text or a list of texts."""
        texts, n_alternatives = _wanted(request, settings)
        catalog = models.catalog
        try:
            native = _native(request, texts, n_alternatives, catalog)
            answer = await models.translate(native, http.state.context)
        except UnprocessableRequest:
            _refuse_languages(str(request.source), str(request.target), catalog.directions(None))
            raise
        return _as_asked(request, texts, answer.translations, n_alternatives)

    @keyed.post("/libretranslate/detect")
    async def detect(request: TextToDetect, http: Request) -> list[Detected]:
        """Tell the language of a text."""
        if not request.q:
            raise BadRequest("Invalid request: missing q parameter")
        native = validate(DetectRequest, {"text": request.q})
        answer = await models.detect(native, http.state.context)
        return [_detected(one) for one in answer.detections[0].languages] or [_detected(None)]

    @free.get("/libretranslate/languages")
    async def list_languages(_: Request) -> list[LibreLanguage]:
        """Which languages are translated into which."""
        reachable = models.catalog.directions(None).reachable()
        return [
            LibreLanguage(
                code=one.language, name=one.name, targets=sorted({*one.targets, *one.through_pivot, one.language})
            )
            for one in reachable
        ]

    @free.get("/libretranslate/frontend/settings")
    async def frontend_settings(_: Request) -> FrontendSettings:
        """What a page needs to know."""
        reachable = models.catalog.directions(None).reachable()
        target = next((one.targets[0] for one in reachable if one.targets), "en")
        languages = Languages(
            source=NamedLanguage(code=AUTO, name="Auto Detect"),
            target=NamedLanguage(code=target, name=english_name(target)),
        )
        return FrontendSettings(
            charLimit=settings.max_text_characters,
            apiKeys=access.wants_keys,
            keyRequired=access.wants_keys,
            supportedFilesFormat=[*KINDS_BY_ENDING],
            language=languages,
        )

    @free.get("/libretranslate/health")
    async def health(_: Request) -> Health:
        """Whether texts are translated now."""
        reason = models.unready_reason()
        if reason is not None:
            raise NotReady(f"Not ready: {reason}")
        return Health()

    @free.post("/libretranslate/suggest", responses=LIBRETRANSLATE.documented(403))
    async def suggest(_: Request) -> Health:
        """There are no suggestions here."""
        raise Disabled("Suggestions are disabled on this server.")

    def refuse(source: str, target: str) -> None:
        _refuse_languages(source, target, models.catalog.directions(None))

    add_files(keyed, free, settings, refuse)
    return [keyed, free]


async def _key(request: Request) -> bytes | None:
    with _in_its_words():
        key = (await fields_of(request)).get("api_key")
    return key.encode(errors="surrogatepass") if isinstance(key, str) and key else None


async def _fields(model: type[Body], request: Request) -> Body:
    with _in_its_words():
        return await form_or_json(model, request)


@contextmanager
def _in_its_words() -> Iterator[None]:
    try:
        yield
    except BadRequest as error:
        raise BadRequest("Invalid JSON format") from error


def _wanted(request: LibreTranslateRequest, settings: Settings) -> tuple[list[str], int]:
    """The texts and the number of alternatives. Raises BadRequest, in LibreTranslate's words."""
    for name in ("q", "source", "target"):
        if not getattr(request, name):
            raise BadRequest(f"Invalid request: missing {name} parameter")
    try:
        n_alternatives = int(request.alternatives or 0)
    except (TypeError, ValueError, OverflowError):  # the last of an infinite one
        raise BadRequest("Invalid request: alternatives parameter is not a number") from None
    if n_alternatives > MOST_ALTERNATIVES:
        raise BadRequest(f"Invalid request: alternatives parameter must be <= {MOST_ALTERNATIVES}")
    if (request.format or TEXT) not in FORMATS:
        raise BadRequest(f"{request.format} format is not supported")
    texts = [request.q] if isinstance(request.q, str) else request.q or []
    longest = max(map(len, texts))
    for size, limit in ((len(texts), settings.max_texts), (longest, settings.max_text_characters)):
        if size > limit:
            raise BadRequest(f"Invalid request: request ({size}) exceeds text limit ({limit})")
    return texts, max(0, n_alternatives)


def _native(
    request: LibreTranslateRequest, texts: list[str], n_alternatives: int, catalog: Catalog
) -> TranslateRequest:
    options: dict[str, Any] = {}
    text_format = request.format or TEXT
    if n_alternatives and text_format == TEXT:
        own = max(one.manifest.decoding.beam_size for one in catalog.translators if one.manifest.decoding)
        options = {"alternatives": n_alternatives, "beam_size": max(n_alternatives + 1, own)}
    source = AUTO if (request.source or "").lower() == AUTO else request.source
    languages = {"source": source, "target": request.target}
    given = [text or EMPTY for text in texts]
    return as_native(TranslateRequest, {"text": given, "format": text_format} | languages | options, {"text": ("q",)})


def _refuse_languages(source: str, target: str, directions: Directions) -> None:
    """Raises BadRequest: a language is not served, or there is no way from the one to the other."""
    served = {one.language: one for one in directions.reachable()}
    found = [next((one for one in served if are_same(code, one)), None) for code in (source, target)]
    for code, language in zip((source, target), found, strict=True):
        if language is None and (code == target or code.lower() != AUTO):
            raise BadRequest(f"{code} is not supported")
    one, other = found
    if one and other and other not in {*served[one].targets, *served[one].through_pivot}:
        raise BadRequest(
            f"{english_name(other)} ({other}) is not available as a target language from {english_name(one)} ({one})"
        )


def _as_asked(
    request: LibreTranslateRequest, texts: list[str], found: list[Translation], n_alternatives: int
) -> LibreTranslation:
    translated = [one.text if text else "" for text, one in zip(texts, found, strict=True)]
    alternatives = [[other.text for other in one.alternatives or []] for one in found]
    detected = [_detected(one.detected) for one in found]
    is_list, is_auto = isinstance(request.q, list), str(request.source).lower() == AUTO
    return LibreTranslation(
        translatedText=translated if is_list else translated[0],
        detectedLanguage=(detected if is_list else detected[0]) if is_auto else None,
        alternatives=(alternatives if is_list else alternatives[0]) if n_alternatives else None,
    )


def _detected(language: DetectedLanguage | None) -> Detected:
    """A text without words is in English, as LibreTranslate says."""
    if language is None:
        return Detected(confidence=0, language="en")
    return Detected(confidence=round(100 * language.confidence, 1), language=language.language)


LIBRETRANSLATE = Dialect(
    name="libretranslate",
    about="As LibreTranslate's clients ask: URL /libretranslate.",
    paths=("/libretranslate",),
    error=LibreTranslateError,
    routers=routers,
    statuses={401: 403, 413: 400, 422: 400},
    paths_of_documents=("/libretranslate/translate_file",),
    is_open_to_all=True,
)
