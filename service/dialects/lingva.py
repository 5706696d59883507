"""Lingva's interface: the text is a part of the path."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.convertors import StringConvertor, register_url_convertor

from service.base.errors import MethodNotAllowed, RequestError, UnknownPath
from service.dialects.google.codes import OWN
from service.dialects.shared.keys import credentials
from service.dialects.shared.languages import LanguageCodes
from service.dialects.shared.texts import translate_texts
from service.front.directions import AUTO
from service.http.dialect import Backend, Dialect, ErrorBody
from service.text.languages import english_name

CODES = LanguageCodes(OWN | {"zh": "zh", "zh-Hant": "zh_HANT"})
KEY = credentials("Authorization: Bearer <key>, or the name of http://<key>@host", schemes=("bearer", "basic"))
NO_INFO: dict[str, Any] = {
    "pronunciation": {},
    "definitions": [],
    "examples": [],
    "similar": [],
    "extraTranslations": [],
}
MESSAGES = {"source": "Invalid source language", "target": "Invalid target language"}
"""Lingva's words by the invalid field."""


class AnyText(StringConvertor):
    """A part of a path with slashes and line breaks."""

    regex = "(?s:.+)"


register_url_convertor("text", AnyText())


class LingvaError(ErrorBody):
    error: str

    @classmethod
    def of(cls, error: RequestError) -> "LingvaError":
        if isinstance(error, UnknownPath | MethodNotAllowed):
            return cls(error="Not Found" if error.status == 404 else "Method Not Allowed")
        return cls(error=MESSAGES.get(str(error.fields[0][0][0]), str(error)) if error.fields else str(error))


def routers(backend: Backend) -> list[APIRouter]:
    models = backend.models
    keyed = LINGVA.router(backend.access.guards(KEY, is_open_to_all=True))
    free = LINGVA.router(backend.access.guards(None, is_open_to_all=True))

    @keyed.get("/lingva/api/v1/{source}/{target}/{query:text}")
    async def translate(http: Request, source: str, target: str, query: str) -> dict[str, Any]:
        """Translate a text."""
        [translated] = await translate_texts(models, CODES, [query], source, target, http.state.context)
        detected = {"detectedSource": translated.source or target} if source == AUTO else {}
        return {"translation": translated.text, "info": NO_INFO | detected}

    @free.get("/lingva/api/v1/languages")
    @free.get("/lingva/api/v1/languages/{side}")
    async def languages(_: Request, side: str = "") -> dict[str, Any]:
        """List the languages: all, sources or targets."""
        if side not in ("", "source", "target"):
            raise UnknownPath(f"{side} must be source or target")
        listed = [
            {"code": code, "name": english_name(code)}
            for code, use in CODES.listed(models.catalog.directions(None)).items()
            if (use.is_source and side != "target") or (use.is_target and side != "source")
        ]
        auto = [{"code": AUTO, "name": "Detect"}] if side != "target" else []
        return {"languages": [*auto, *listed]}

    return [keyed, free]


LINGVA = Dialect(
    name="lingva",
    about="Lingva's interface; the URL for its clients ends in /lingva.",
    paths=("/lingva",),
    error=LingvaError,
    routers=routers,
    statuses={413: 400, 422: 400, "key_wrong": 401},
    is_open_to_all=True,
)
