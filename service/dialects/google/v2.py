"""Google Translation, version 2: fields of queries, forms and JSON; answers in `data`."""

from typing import Any, Literal

from fastapi import APIRouter, Request
from pydantic import Field

from service.dialects.google.codes import CODES, UNKNOWN, native_model
from service.dialects.shared.fields import Refused, Texts
from service.dialects.shared.texts import detect_texts, translate_texts
from service.front.models import Models
from service.http.bodies import fields_of, form_or_json
from service.schemas.sent import Sent
from service.text.languages import name_in

Answer = dict[str, dict[str, list[Any]]]
"""Everything is in `data`. Google's reference describes the rest."""


class GoogleTexts(Sent):
    q: Texts = Field(examples=["A dog runs."])
    target: str = Field(examples=["fr"])
    source: str | None = Field(default=None, description="Without it, the language of each text is detected.")
    format: Literal["html", "text"] | None = Field(default=None, description="html by default.")
    model: str | None = Field(default=None, description="nmt, base or a name from /models.")
    cid: Refused = Field(default=None, description="Refused.")


class GoogleTextsToDetect(Sent):
    q: Texts = Field(examples=["A dog runs."])


def add_v2(router: APIRouter, path: str, models: Models) -> None:
    """Add the routes of version 2."""

    @router.post(path)
    async def translate(request: GoogleTexts, http: Request) -> Answer:
        """Translate texts, as HTML unless `format` is text."""
        options: dict[str, Any] = {"format": request.format or "html", "model": native_model(request.model)}
        pair = request.source, request.target
        translated = await translate_texts(models, CODES, request.q, *pair, http.state.context, **options)
        named = {"model": request.model} if request.model else {}
        translations = [
            {"translatedText": text.text}
            | ({} if request.source else {"detectedSourceLanguage": text.source or UNKNOWN})
            | named
            for text in translated
        ]
        return {"data": {"translations": translations}}

    @router.post(f"{path}/detect")
    async def detect(request: GoogleTextsToDetect, http: Request) -> Answer:
        """Detect the language of each text."""
        detected = await detect_texts(models, CODES, request.q, http.state.context)
        best = [(ranked[0].language, ranked[0].confidence) if ranked else (UNKNOWN, 0) for ranked in detected]
        detections = [[{"language": code, "confidence": share, "isReliable": False}] for code, share in best]
        return {"data": {"detections": detections}}

    @router.get(path)
    async def translate_query(http: Request) -> Answer:
        """Translate the texts of a query."""
        return await translate(await form_or_json(GoogleTexts, http), http)

    @router.get(f"{path}/detect")
    async def detect_query(http: Request) -> Answer:
        """Detect the language of each text of a query."""
        return await detect(await form_or_json(GoogleTextsToDetect, http), http)

    @router.get(f"{path}/languages")
    @router.post(f"{path}/languages")
    async def languages(http: Request) -> Answer:
        """List the languages; with `target`, their names in that language."""
        reader = str((await fields_of(http)).get("target") or "")
        codes = CODES.listed(models.catalog.directions(None))
        named = [{"language": code} | ({"name": name_in(reader, code)} if reader else {}) for code in codes]
        return {"data": {"languages": named}}
