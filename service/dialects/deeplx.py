"""DeepLX: a text at a time, with DeepL's codes."""

from typing import Literal
from zlib import crc32

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from service.base.errors import KeyMissing, KeyWrong, RequestError, UnknownPath
from service.dialects.deepl.languages import code_of
from service.dialects.shared.keys import TOKEN
from service.dialects.shared.languages import LanguageCodes
from service.dialects.shared.texts import translate_texts
from service.http.access import Guards
from service.http.dialect import Backend, Dialect, ErrorBody, Sent

PATHS = ("/deeplx/translate", "/deeplx/v1/translate", "/mtran/deeplx")
CODES = LanguageCodes()


class DeepLXError(ErrorBody):
    code: int
    message: str

    @classmethod
    def of(cls, error: RequestError) -> "DeepLXError":
        message = "Invalid access token" if isinstance(error, KeyMissing | KeyWrong) else str(error)
        return cls(code=DEEPLX.status_of(error), message=message)


class DeepLXText(Sent):
    text: str = Field(examples=["A dog runs."])
    target_lang: str = Field(examples=["FR"])
    source_lang: str | None = Field(default=None, description="auto or nothing: detected.")
    tag_handling: Literal["", "html", "xml"] | None = None


class DeepLXTranslation(BaseModel):
    code: Literal[200] = 200
    id: int
    data: str = Field(description="The translation.")
    alternatives: list[str] = Field(default=[], description="Always empty.")
    source_lang: str
    target_lang: str
    method: Literal["Free"] = "Free"


class DeepLXAbout(BaseModel):
    code: Literal[200] = 200
    message: str = "DeepLX's interface, by attend. POST to /deeplx/translate"


def routers(backend: Backend) -> list[APIRouter]:
    router, free = DEEPLX.router(backend.access.guards(TOKEN, is_open_to_all=True)), DEEPLX.router(Guards())

    async def translate(request: DeepLXText, http: Request) -> DeepLXTranslation:
        """Translate a text."""
        if not request.text:
            raise UnknownPath("No text to translate")
        options = {"format": request.tag_handling or "text"}
        [found] = await translate_texts(
            backend.models,
            CODES,
            [request.text],
            request.source_lang,
            request.target_lang,
            http.state.context,
            **options,
        )
        source, target = found.source or request.target_lang, request.target_lang.upper()
        return DeepLXTranslation(
            id=crc32(found.text.encode()), data=found.text, source_lang=code_of(source), target_lang=target
        )

    for path in PATHS:
        router.post(path)(translate)

    @free.get("/deeplx")
    @free.get("/deeplx/")
    async def about(_: Request) -> DeepLXAbout:
        """Say what is here."""
        return DeepLXAbout()

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
