"""Google Translation, version 2: fields of queries, forms and JSON; answers in `data`."""

from typing import Generic, Literal, TypeVar

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from manifest.stops_early import StopsEarly
from service.dialects.google.codes import CODES, UNKNOWN, native_model
from service.dialects.shared.fields import CamelAnswer, Refused, Texts
from service.dialects.shared.texts import detect_texts, translate_texts
from service.front.models import Models
from service.http.bodies import fields_of, form_or_json
from service.text.languages import name_in

Content = TypeVar("Content")


class GoogleTexts(StopsEarly):
    q: Texts = Field(examples=["A dog runs."])
    target: str = Field(examples=["fr"])
    source: str | None = Field(default=None, description="Without it, the language of each text is detected.")
    format: Literal["html", "text"] | None = Field(default=None, description="html by default.")
    model: str | None = Field(default=None, description="nmt, base or a name from /models.")
    cid: Refused = Field(default=None, description="Refused.")


class GoogleTextsToDetect(StopsEarly):
    q: Texts = Field(examples=["A dog runs."])


class Data(BaseModel, Generic[Content]):
    data: Content


class GoogleTranslation(CamelAnswer):
    translated_text: str
    detected_source_language: str | None = Field(default=None, description="If the request names no source.")
    model: str | None = Field(default=None, description="If the request names one.")


class GoogleTranslations(BaseModel):
    translations: list[GoogleTranslation]


class GoogleDetection(CamelAnswer):
    language: str
    confidence: float
    is_reliable: bool = False


class GoogleDetections(BaseModel):
    detections: list[list[GoogleDetection]] = Field(description="For each text a list of one.")


class GoogleLanguage(BaseModel):
    language: str
    name: str | None = Field(default=None, description="In the language `target` of the request.")


class GoogleLanguages(BaseModel):
    languages: list[GoogleLanguage]


def add_v2(router: APIRouter, path: str, models: Models) -> None:
    """Add the routes of version 2."""

    @router.post(path, response_model_exclude_none=True)
    async def translate(request: GoogleTexts, http: Request) -> Data[GoogleTranslations]:
        """Translate texts, as HTML unless `format` is text."""
        options = {"format": request.format or "html", "model": native_model(request.model)}
        found = await translate_texts(
            models, CODES, request.q, request.source, request.target, http.state.context, **options
        )
        translations = [
            GoogleTranslation(
                translated_text=one.text,
                detected_source_language=None if request.source else one.source or UNKNOWN,
                model=request.model,
            )
            for one in found
        ]
        return Data(data=GoogleTranslations(translations=translations))

    @router.post(f"{path}/detect")
    async def detect(request: GoogleTextsToDetect, http: Request) -> Data[GoogleDetections]:
        """Detect the language of each text."""
        found = await detect_texts(models, CODES, request.q, http.state.context)
        detections = [
            [GoogleDetection(**vars(ranked[0])) if ranked else GoogleDetection(language=UNKNOWN, confidence=0)]
            for ranked in found
        ]
        return Data(data=GoogleDetections(detections=detections))

    @router.get(path, response_model_exclude_none=True)
    async def translate_query(http: Request) -> Data[GoogleTranslations]:
        """Translate the texts of a query."""
        return await translate(await form_or_json(GoogleTexts, http), http)

    @router.get(f"{path}/detect")
    async def detect_query(http: Request) -> Data[GoogleDetections]:
        """Detect the language of each text of a query."""
        return await detect(await form_or_json(GoogleTextsToDetect, http), http)

    @router.get(f"{path}/languages", response_model_exclude_none=True)
    @router.post(f"{path}/languages", response_model_exclude_none=True)
    async def languages(http: Request) -> Data[GoogleLanguages]:
        """List the languages; with `target`, their names in that language."""
        reader = (await fields_of(http)).get("target")
        listed = [
            GoogleLanguage(language=code, name=name_in(reader, code) if isinstance(reader, str) else None)
            for code in CODES.listed(models.catalog.directions(None))
        ]
        return Data(data=GoogleLanguages(languages=listed))
