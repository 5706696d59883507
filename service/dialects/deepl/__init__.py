"""DeepL's interface: translations, languages, usage, glossaries, translation memories, documents."""

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from service.base.errors import InvalidFields
from service.dialects.deepl import languages
from service.dialects.deepl.documents import add_documents, read_form
from service.dialects.deepl.errors import KEY, DeepLError
from service.dialects.deepl.glossaries import add_glossaries
from service.dialects.deepl.memories import add_memories
from service.dialects.deepl.memory_jobs import FILE_PATH, add_memory_jobs
from service.dialects.deepl.translate import CLIENT_FIELDS, add_translate
from service.dialects.shared.keys import TOKEN
from service.http.bodies import fields_of, form_or_json
from service.http.dialect import Backend, Dialect

PARTS = ("translate", "languages", "usage", "glossary-language-pairs", "glossaries", "document")
OF_APPS = ("/mtran/deepl", "/deeplx/v2/translate")
"""Paths of other services that have DeepL's shape."""
NO_LIMIT = 10**12
"""What DeepL tells users without a limit. Its clients read 0 as a limit that is reached."""


class DeepLUsage(BaseModel):
    character_count: int = Field(
        description="Characters that the key has used in this month; if it has no name, those that were translated "
        "since the service started, for all clients."
    )
    character_limit: int = NO_LIMIT


def routers(backend: Backend) -> list[APIRouter]:
    models = backend.models
    router = DEEPL.router(backend.access.guards(KEY), form_or_json)
    add_translate(router, "/v2/translate", models)
    of_apps = DEEPL.router(backend.access.guards(TOKEN, is_open_to_all=True), form_or_json)
    for path in OF_APPS:
        add_translate(of_apps, path, models)
    add_glossaries(router, models, backend.stores.glossaries)
    keyless = DEEPL.router(backend.access.guards(None))
    add_memory_jobs(router, keyless, backend)  # first, as `import` would be the id of a memory
    add_memories(router, backend.stores.memories)
    uploads = DEEPL.router(backend.access.guards(KEY), read_form)
    add_documents(router, uploads, backend)

    @router.get("/v2/languages", response_model_exclude_none=True)
    async def list_languages(http: Request) -> list[languages.DeepLLanguage]:
        """List the source languages, or with `type=target` the target languages."""
        kind = (await fields_of(http)).get("type") or "source"
        if kind not in ("source", "target"):
            raise InvalidFields([(("type",), "must be source or target")])
        directions = models.catalog.directions(None)
        return languages.sources(directions) if kind == "source" else languages.targets(directions)

    @router.get("/v2/usage")
    async def usage(http: Request) -> DeepLUsage:
        """Return how many characters were translated."""
        account = http.state.context.account
        if account is not None:
            await account.usage.refresh()
            return DeepLUsage(character_count=account.used, character_limit=account.limit or NO_LIMIT)
        return DeepLUsage(character_count=models.catalog.metrics.n_characters())

    return [router, of_apps, uploads, keyless]


DEEPL = Dialect(
    name="deepl",
    about="DeepL's interface; the server URL for its clients has no path.",
    paths=("/v2", *(f"/v2/{name}" for name in PARTS), "/v3", *OF_APPS),
    error=DeepLError,
    routers=routers,
    statuses={401: 403, 409: 503, 422: 400, "quota_exceeded": 456},
    client_fields=CLIENT_FIELDS,
    paths_of_documents=("/v2/document", FILE_PATH),
)
