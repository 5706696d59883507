"""MTranServer's interface, and those of add-ons of browsers that it serves: Immersive Translate, KISS Translator, and
Selection Translator (hcfy)."""

import re
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import Field

from service import __version__
from service.access.guards import Guards
from service.base.errors import KeyMissing, KeyWrong, RequestError
from service.dialects.google.codes import CODES as OF_GOOGLE
from service.dialects.shared.keys import TOKEN
from service.dialects.shared.languages import LanguageCodes, language_pairs
from service.dialects.shared.texts import detect_texts, translate_texts
from service.front.directions import AUTO
from service.http.dialect import Backend, Dialect, ErrorBody
from service.schemas.sent import SentJson
from service.text.languages import are_same, canonical, name_in

CODES = LanguageCodes({"zh": "zh-Hans", "nb": "no", "pt-BR": "pt"})
OF_IMMERSIVE = LanguageCodes({"zh": "zh-CN", "zh-Hant": "zh-TW"})
OF_KISS = LanguageCodes({"zh": "zh-CN", "zh-Hant": "zh-TW", "no": "nb", "pt-BR": "pt"})
CHINESE = {"zh": "中文(简体)", "zh-Hant": "中文(繁体)"}
"""Names that Selection Translator has for Chinese. Other languages have the names of CLDR."""
TAG = re.compile(r"</?[a-z]\w*\s*/?>", re.IGNORECASE)
"""A tag that stands for an element of a page, such as <b0>."""
Answer = dict[str, Any]


class MTranError(ErrorBody):
    error: str

    @classmethod
    def of(cls, error: RequestError) -> "MTranError":
        return cls(error="Unauthorized" if isinstance(error, KeyMissing | KeyWrong) else str(error))


class Pair(SentJson):
    source: str = Field(default=AUTO, alias="from", examples=["en"])
    target: str = Field(alias="to", examples=["fr"])


class MTranText(Pair):
    text: str = Field(examples=["A dog runs."])
    html: bool = False


class MTranTexts(Pair):
    texts: list[str] = Field(examples=[["A dog runs."]])
    html: bool = False


class MTranTextToDetect(SentJson):
    text: str = Field(examples=["A dog runs."])
    minConfidence: float | None = None  # noqa: N815


class ImmersiveTexts(SentJson):
    source_lang: str = AUTO
    target_lang: str = Field(examples=["zh-CN"])
    text_list: list[str] = Field(examples=[["A <b0>dog</b0> runs."]])


class KissTexts(Pair):
    text: str | None = Field(default=None, examples=["A dog runs."])
    texts: list[str] | None = None


class HcfyText(SentJson):
    text: str = Field(examples=["A dog runs."])
    destination: list[str] = Field(min_length=1, description="Chinese names. The second is for texts in the first.")
    source: str | None = None


def routers(backend: Backend) -> list[APIRouter]:
    models, guards = backend.models, backend.access.guards(TOKEN, is_open_to_all=True)
    router = MTRANSERVER.router(guards)
    of_immersive = MTRANSERVER.router(guards, client_fields=OF_IMMERSIVE_FIELDS)
    free = MTRANSERVER.router(Guards())

    async def translated(request: Pair, texts: list[str], is_html: bool, http: Request) -> list[str]:
        pair, options = (request.source, request.target), {"format": "html" if is_html else "text"}
        translations = await translate_texts(models, CODES, texts, *pair, http.state.context, **options)
        return [translation.text for translation in translations]

    @router.post("/mtran/translate")
    async def translate(request: MTranText, http: Request) -> Answer:
        """Translate a text."""
        return {"result": (await translated(request, [request.text], request.html, http))[0]}

    @router.post("/mtran/translate/batch")
    async def translate_batch(request: MTranTexts, http: Request) -> Answer:
        """Translate texts."""
        return {"results": await translated(request, request.texts, request.html, http)}

    @router.post("/mtran/detect")
    async def detect(request: MTranTextToDetect, http: Request) -> Answer:
        """Detect the language of a text."""
        [ranked] = await detect_texts(models, CODES, [request.text], http.state.context)
        language, confidence = (ranked[0].language, ranked[0].confidence) if ranked else ("", 0)
        return {"language": language} | ({} if request.minConfidence is None else {"confidence": confidence})

    @router.get("/mtran/languages")
    async def languages(_: Request) -> Answer:
        """List the languages, and the language pairs."""
        directions = models.catalog.directions(None)
        names = ((CODES.name(source), CODES.name(target)) for source, target in language_pairs(directions))
        pairs = [{"from": source, "to": target} for source, target in names]
        return {"languages": [*CODES.listed(directions)], "pairs": pairs}

    @of_immersive.post("/immersive")
    @of_immersive.post("/mtran/imme")
    async def translate_pages(request: ImmersiveTexts, http: Request) -> Answer:
        """Translate texts of a page, whose elements are tags such as <b0></b0>."""
        target, texts = request.target_lang, request.text_list
        have_tags = [TAG.search(text) is not None for text in texts]
        translated = []
        for form in ("text", "html"):
            chosen = [text for text, has_tags in zip(texts, have_tags, strict=True) if has_tags == (form == "html")]
            pair = request.source_lang, target
            translations = await translate_texts(models, OF_IMMERSIVE, chosen, *pair, http.state.context, format=form)
            translated.append(iter(translations))
        in_order = [next(translated[has_tags]) for has_tags in have_tags]
        return {
            "translations": [{"detected_source_lang": text.source or target, "text": text.text} for text in in_order]
        }

    @router.post("/mtran/kiss")
    async def translate_for_kiss(request: KissTexts, http: Request) -> Answer:
        """Translate a text, or texts."""
        texts = request.texts if request.texts is not None else [request.text or ""]
        pair = request.source, request.target
        translations = await translate_texts(models, OF_KISS, texts, *pair, http.state.context)
        answers = [{"text": text.text, "src": text.source or request.target} for text in translations]
        return {"translations": answers} if request.texts is not None else answers[0]

    @router.post("/mtran/hcfy")
    async def translate_selection(request: HcfyText, http: Request) -> Answer:
        """Translate the lines of a selected text."""
        listed = CODES.listed(models.catalog.directions(None))
        codes = {_chinese_name(code): code for code in listed} | {"中文": "zh"}
        target, *others = [codes.get(name, name) for name in request.destination]
        source = codes.get(request.source, request.source) if request.source else None
        if source is None:
            [ranked] = await detect_texts(models, CODES, [request.text], http.state.context)
            source = ranked[0].language if ranked else target
        if others and are_same(source, target):
            target = others[0]
        lines = request.text.split("\n")
        translations = await translate_texts(models, CODES, lines, source, target, http.state.context)
        names = {"from": _chinese_name(source), "to": _chinese_name(target)}
        return {"text": request.text, "result": [translation.text for translation in translations]} | names

    @router.get("/mtran/google/translate_a/single")
    async def translate_single(http: Request, q: str, tl: str, sl: str = AUTO, dj: str = "") -> Any:
        """Translate the text of a query, as Google's page does."""
        [translated] = await translate_texts(models, OF_GOOGLE, [q], sl, tl, http.state.context)
        source, text = translated.source or tl, translated.text
        if dj == "1":
            return {"sentences": [{"trans": text, "orig": q}], "src": source}
        return [[[text, q, None, None, 1]], None, source]

    @free.get("/mtran/health")
    async def health(_: Request) -> Answer:
        """Say whether texts are translated now."""
        models.refuse_unready()
        return {"status": "ok"}

    @free.get("/mtran/version")
    async def version(_: Request) -> Answer:
        """Return the version of attend."""
        return {"version": __version__}

    @free.get("/mtran/__heartbeat__", response_class=Response)
    @free.get("/mtran/__lbheartbeat__", response_class=Response)
    async def heartbeat(_: Request) -> Response:
        """Say whether texts are translated now."""
        models.refuse_unready()
        return Response()

    return [router, of_immersive, free]


def _chinese_name(code: str) -> str:
    return CHINESE.get(canonical(code) or code, name_in("zh", code))


OF_IMMERSIVE_FIELDS = {"source": ("source_lang",), "target": ("target_lang",), "text": ("text_list",)}
MTRANSERVER = Dialect(
    name="mtranserver",
    about="MTranServer's interface, at /mtran, and Immersive Translate's, at /immersive.",
    paths=("/mtran", "/immersive"),
    error=MTranError,
    routers=routers,
    statuses={413: 400, 415: 400, 422: 400, "key_wrong": 401},
    client_fields={"source": ("from",), "target": ("to",)},
    is_open_to_all=True,
)
