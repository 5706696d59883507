"""DeepL: translations, languages, usage, glossaries, documents."""

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from service.base.errors import InvalidFields
from service.base.settings import Settings
from service.dialects.deepl import languages
from service.dialects.deepl.documents import add_documents, read_form
from service.dialects.deepl.errors import KEY, DeepLError
from service.dialects.deepl.glossaries import add_glossaries
from service.dialects.deepl.translate import add_translate
from service.http.access import Access
from service.http.bodies import fields_of, form_or_json
from service.http.dialect import Dialect
from service.models.models import Models

PARTS = ("translate", "languages", "usage", "glossary-language-pairs", "glossaries", "document")
NO_LIMIT = 10**12
"""As DeepL says to those who have none; its clients take 0 for one that is reached."""


class DeepLUsage(BaseModel):
    character_count: int = Field(description="Of texts that were translated since the service began, by whomever.")
    character_limit: int = NO_LIMIT


def routers(models: Models, settings: Settings, access: Access) -> list[APIRouter]:
    router = DEEPL.router(access.guards(KEY), form_or_json)
    add_translate(router, models)
    add_glossaries(router, models)
    uploads = DEEPL.router(access.guards(KEY), read_form)
    add_documents(router, uploads, models, settings)

    @router.get("/v2/languages", response_model_exclude_none=True)
    async def list_languages(http: Request) -> list[languages.DeepLLanguage]:
        """Those that are translated, or with the type target those that are translated into."""
        kind = (await fields_of(http)).get("type") or "source"
        if kind not in ("source", "target"):
            raise InvalidFields([(("type",), "must be source or target")])
        directions = models.catalog.directions(None)
        return languages.sources(directions) if kind == "source" else languages.targets(directions)

    @router.get("/v2/usage")
    async def usage(_: Request) -> DeepLUsage:
        """How much was translated."""
        return DeepLUsage(character_count=models.catalog.metrics.n_characters())

    return [router, uploads]


DEEPL = Dialect(
    name="deepl",
    about="As DeepL's clients ask: server URL without a path.",
    paths=("/v2", *(f"/v2/{name}" for name in PARTS), "/v3"),
    error=DeepLError,
    routers=routers,
    statuses={401: 403, 409: 503, 422: 400},
    paths_of_documents=("/v2/document",),
)
