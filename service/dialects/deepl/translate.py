"""DeepL's translation of texts."""

from collections.abc import Iterable

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from service.base.errors import UnprocessableRequest
from service.dialects.deepl.fields import DeepLFields, DeepLTexts
from service.dialects.deepl.languages import code_of, served_source, served_target
from service.front.directions import AUTO, Directions
from service.front.models import Models
from service.http.json_route import validate
from service.markup.xml import is_well_formed
from service.schemas.answers import Translation
from service.schemas.requests import TranslateRequest

CLIENT_FIELDS = {
    "source": ("source_lang",),
    "target": ("target_lang",),
    "tags.keep": ("ignore_tags",),
    "tags.blocks": ("splitting_tags",),
    "tags.inline": ("non_splitting_tags",),
}


class DeepLTranslation(BaseModel):
    detected_source_language: str = Field(
        description="Detected, or the one that the request names, without its region.", examples=["EN"]
    )
    text: str
    billed_characters: int | None = Field(default=None, description="Characters, if the request asks for them.")
    model_type_used: str | None = None
    tag_handling_version: str | None = None


class DeepLTranslations(BaseModel):
    translations: list[DeepLTranslation] = Field(description="One translation for each text, in order.")


def add_translate(router: APIRouter, path: str, models: Models) -> None:
    """Add the route of texts."""

    @router.post(path, response_model_exclude_none=True)
    async def translate(request: DeepLTexts, http: Request) -> DeepLTranslations:
        """Translate texts. Without a source language, that of each text is detected."""
        _refuse_malformed(request)
        source, target = native_languages(request, models.catalog.directions(None))
        answer = await models.translate(to_native(request, source, target), http.state.context)
        return from_native(request, answer.translations, target if source == AUTO else source)


def native_languages(request: DeepLFields, directions: Directions) -> tuple[str, str]:
    """Return the native codes of source and target. Raises InvalidFields: no model translates from or into a language.
    Raises UnprocessableRequest: the request asks for a formality."""
    target = served_target(request.target_lang, directions)
    source = served_source(request.source_lang, directions) if request.source_lang else AUTO
    if request.formality in ("more", "less"):
        raise UnprocessableRequest(f"Target language '{request.target_lang.upper()}' doesn't support formality.")
    return source, target


def to_native(request: DeepLTexts, source: str, target: str) -> TranslateRequest:
    """Return the native request."""
    options = {
        "text": request.text,
        "source": source,
        "target": target,
        "split_sentences": request.split_sentences != "0",
        "glossary_id": glossary_id_of(request),
        "memory_id": request.translation_memory_id or None,
        "memory_threshold": 100,  # similar texts are not in the answer
    }
    if request.tag_handling is not None:
        options["format"] = request.tag_handling
        options["tags"] = {
            "keep": request.ignore_tags,
            "blocks": request.splitting_tags,
            "inline": request.non_splitting_tags,
            "detect": request.outline_detection is not False,
        }
    return validate(TranslateRequest, options)


def from_native(request: DeepLTexts, translations: Iterable[Translation], undetected: str) -> DeepLTranslations:
    """Return the answer. `undetected` is the language of texts whose language is not detected: the one that the request
    names, or the target's, since a text without words stays as it is."""
    return DeepLTranslations(
        translations=[
            _from_native(request, text, native, undetected)
            for text, native in zip(request.text, translations, strict=True)
        ]
    )


def glossary_id_of(request: DeepLFields) -> str | None:
    """Return the id of a glossary, or several ids with commas between them. Raises UnprocessableRequest: the request
    names a glossary, but no source language; in DeepL's words."""
    named = [*filter(None, [request.glossary_id, *request.glossary_ids])]
    if named and not request.source_lang:
        raise UnprocessableRequest("Use of a glossary requires the source_lang parameter to be specified.")
    return ",".join(named) or None


def _refuse_malformed(request: DeepLTexts) -> None:
    """Raises UnprocessableRequest, in DeepL's words."""
    is_strict = request.tag_handling == "xml" and request.tag_handling_version == "v2"
    if is_strict and not all(map(is_well_formed, request.text)):
        raise UnprocessableRequest("Tag handling parsing failed, please check input.")


def _from_native(request: DeepLTexts, text: str, native: Translation, undetected: str) -> DeepLTranslation:
    return DeepLTranslation(
        detected_source_language=code_of(native.detected.language if native.detected is not None else undetected),
        text=native.text,
        billed_characters=len(text) if request.show_billed_characters else None,
        model_type_used=request.model_type and request.model_type.removeprefix("prefer_"),
        tag_handling_version=request.tag_handling and (request.tag_handling_version or "v1"),
    )
