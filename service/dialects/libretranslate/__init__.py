"""LibreTranslate's interface, for its clients and for its own page in a browser."""

from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from service.access.guards import Credentials, requester_of
from service.access.ownership import ANYBODY
from service.base.errors import BadRequest, KeyMissing, KeyWrong, NotStored, RateLimited, RequestError
from service.dialects.libretranslate.files import add_files
from service.dialects.libretranslate.translate import add_translate
from service.documents.kinds import KINDS_BY_ENDING
from service.front.directions import AUTO
from service.http.bodies import fields_of
from service.http.dialect import Backend, Dialect, ErrorBody
from service.http.json_route import Body, validate
from service.memories.store import Memories, Segment
from service.schemas.sent import Sent
from service.storage.database_threads import in_thread
from service.text.languages import are_same, english_name

SUGGESTIONS = "suggestions"
"""The name of a memory that receives suggestions."""


class LibreTranslateError(ErrorBody):
    error: str

    @classmethod
    def of(cls, error: RequestError) -> "LibreTranslateError":
        if isinstance(error, KeyMissing | KeyWrong):
            return cls(error="Invalid API key")
        return cls(error=f"Slowdown: {error}" if isinstance(error, RateLimited) else str(error))


class Disabled(RequestError):  # noqa: N818
    status = 403


class LibreLanguage(BaseModel):
    code: str
    name: str
    targets: list[str] = Field(description="With the language itself.")


class NamedLanguage(BaseModel):
    code: str
    name: str


class Languages(BaseModel):
    source: NamedLanguage
    target: NamedLanguage


class FrontendSettings(BaseModel):
    """Settings for a page in a browser."""

    charLimit: int  # noqa: N815
    frontendTimeout: Annotated[int, Field(description="Milliseconds to wait while somebody types.")] = 500  # noqa: N815
    apiKeys: bool  # noqa: N815
    keyRequired: bool  # noqa: N815
    suggestions: bool
    filesTranslation: bool = True  # noqa: N815
    supportedFilesFormat: list[str]  # noqa: N815
    language: Languages


class Suggestion(Sent):
    q: str = Field(examples=["A dog."])
    s: str = Field(description="The better translation.", examples=["Un chien."])
    source: str = Field(examples=["en"])
    target: str = Field(examples=["fr"])


class Suggested(BaseModel):
    success: bool = True


class Health(BaseModel):
    status: str = "ok"


def routers(backend: Backend) -> list[APIRouter]:
    models, settings, access, memories = backend.models, backend.settings, backend.access, backend.stores.memories
    keyed = LIBRETRANSLATE.router(access.guards(Credentials(_key, "api_key", None), is_open_to_all=True), _read_body)
    free = LIBRETRANSLATE.router(access.guards(None, is_open_to_all=True))
    add_translate(keyed, models, settings)

    @free.get("/libretranslate/languages")
    async def list_languages(_: Request) -> list[LibreLanguage]:
        """List the languages, each with those into which it is translated."""
        return [
            LibreLanguage(
                code=source.language, name=source.name, targets=sorted({*source.all_targets, source.language})
            )
            for source in models.catalog.directions(None).reachable()
        ]

    @free.get("/libretranslate/frontend/settings")
    async def frontend_settings(_: Request) -> FrontendSettings:
        """Return settings for a page in a browser."""
        reachable = models.catalog.directions(None).reachable()
        target = next((source.targets[0] for source in reachable if source.targets), "en")
        languages = Languages(
            source=NamedLanguage(code=AUTO, name="Auto Detect"),
            target=NamedLanguage(code=target, name=english_name(target)),
        )
        return FrontendSettings(
            charLimit=settings.max_text_characters,
            apiKeys=access.wants_keys,
            keyRequired=access.wants_keys,
            suggestions=await _takes_suggestions(memories),
            supportedFilesFormat=[*KINDS_BY_ENDING],
            language=languages,
        )

    @free.get("/libretranslate/health")
    async def health(_: Request) -> Health:
        """Say whether texts are translated now."""
        models.refuse_unready()
        return Health()

    @keyed.post("/libretranslate/suggest", responses=LIBRETRANSLATE.document_errors(403))
    async def suggest(request: Suggestion, http: Request) -> Suggested:
        """Store a better translation, not reviewed, in the memory named `suggestions` of both languages."""
        pair, requester = (request.source, request.target), requester_of(http)
        for memory in await in_thread(memories.all, requester):
            if memory.name == SUGGESTIONS and all(map(are_same, (memory.source, memory.target), pair)):
                await in_thread(memories.put, requester, memory.id, [Segment(request.q, request.s, is_reviewed=False)])
                return Suggested()
        raise Disabled("Suggestions are disabled on this server.")

    add_files(keyed, free, backend)
    return [keyed, free]


async def _takes_suggestions(memories: Memories) -> bool:
    with suppress(NotStored):
        return any(memory.name == SUGGESTIONS for memory in await in_thread(memories.all, ANYBODY))
    return False


async def _key(request: Request) -> bytes | None:
    key = (await _fields_of(request)).get("api_key")
    return key.encode(errors="surrogatepass") if isinstance(key, str) and key else None


async def _read_body(model: type[Body], request: Request) -> Body:
    return validate(model, await _fields_of(request))


async def _fields_of(request: Request) -> dict[str, Any]:
    """Raises BadRequest, in LibreTranslate's words."""
    try:
        return await fields_of(request)
    except BadRequest as error:
        raise BadRequest("Invalid JSON format") from error


LIBRETRANSLATE = Dialect(
    name="libretranslate",
    about="LibreTranslate's interface; the URL for its clients ends in /libretranslate.",
    paths=("/libretranslate",),
    error=LibreTranslateError,
    routers=routers,
    statuses={401: 403, 413: 400, 422: 400},
    client_fields={"text": ("q",)},
    paths_of_documents=("/libretranslate/translate_file",),
    is_open_to_all=True,
)
