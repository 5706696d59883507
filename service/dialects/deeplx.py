"""DeepLX: a text at a time, with DeepL's codes."""

from typing import Any, Literal
from zlib import crc32

from fastapi import APIRouter, Request
from pydantic import Field

from service.access.guards import Guards
from service.base.errors import KeyMissing, KeyWrong, RequestError, UnknownPath
from service.dialects.deepl.languages import code_of
from service.dialects.shared.keys import TOKEN
from service.dialects.shared.languages import LanguageCodes
from service.dialects.shared.texts import translate_texts
from service.http.dialect import Backend, Dialect, ErrorBody
from service.schemas.sent import SentJson

PATHS = ("/deeplx/translate", "/deeplx/v1/translate", "/mtran/deeplx")
CODES = LanguageCodes()


class DeepLXError(ErrorBody):
    code: int
    message: str

    @classmethod
    def of(cls, error: RequestError) -> "DeepLXError":
        message = "Invalid access token" if isinstance(error, KeyMissing | KeyWrong) else str(error)
        return cls(code=DEEPLX.status_of(error), message=message)


class DeepLXText(SentJson):
    text: str = Field(examples=["A dog runs."])
    target_lang: str = Field(examples=["FR"])
    source_lang: str | None = Field(default=None, description="auto or nothing: detected.")
    tag_handling: Literal["", "html", "xml"] | None = None


def routers(backend: Backend) -> list[APIRouter]:
    router, free = DEEPLX.router(backend.access.guards(TOKEN, is_open_to_all=True)), DEEPLX.router(Guards())

    async def translate(request: DeepLXText, http: Request) -> dict[str, Any]:
        """Translate a text."""
        if not request.text:
            raise UnknownPath("No text to translate")
        pair, options = (request.source_lang, request.target_lang), {"format": request.tag_handling or "text"}
        [translated] = await translate_texts(
            backend.models, CODES, [request.text], *pair, http.state.context, **options
        )
        source, target = translated.source or request.target_lang, request.target_lang.upper()
        languages = {"source_lang": code_of(source), "target_lang": target}
        number = crc32(translated.text.encode())  # the same answer each time
        return {"code": 200, "id": number, "data": translated.text, "alternatives": [], "method": "Free"} | languages

    for path in PATHS:
        router.post(path)(translate)

    @free.get("/deeplx")
    @free.get("/deeplx/")
    async def about(_: Request) -> dict[str, Any]:
        """Say what is here."""
        return {"code": 200, "message": "DeepLX's interface, by attend. POST to /deeplx/translate"}

    return [router, free]


DEEPLX = Dialect(
    name="deeplx",
    about="DeepLX's interface; the URL for its clients ends in /deeplx/translate.",
    paths=("/deeplx", "/mtran/deeplx"),
    error=DeepLXError,
    routers=routers,
    statuses={413: 400, 415: 400, 422: 400, "key_wrong": 401},
    client_fields={"source": ("source_lang",), "target": ("target_lang",)},
    is_open_to_all=True,
)
