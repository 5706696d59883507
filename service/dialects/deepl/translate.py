"""DeepL's translation of texts."""

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from service.base.errors import UnprocessableRequest
from service.dialects.deepl.fields import DeepLFields, DeepLTexts
from service.dialects.deepl.languages import code_of, served_source, served_target
from service.http.bodies import as_native
from service.markup.xml import is_well_formed
from service.models.directions import AUTO, Directions
from service.models.models import Models
from service.schemas.answers import Translation
from service.schemas.requests import TranslateRequest

SENT_AS = {
    "tags.keep": ("ignore_tags",),
    "tags.blocks": ("splitting_tags",),
    "tags.inline": ("non_splitting_tags",),
}
"""Where fields of native requests come from."""


class DeepLTranslation(BaseModel):
    detected_source_language: str = Field(description="Or the one that was named.", examples=["EN"])
    text: str
    billed_characters: int | None = Field(default=None, description="Its characters, where they were asked for.")
    model_type_used: str | None = None
    tag_handling_version: str | None = None


class DeepLTranslations(BaseModel):
    translations: list[DeepLTranslation] = Field(description="One for each text, in order.")


def add_translate(router: APIRouter, models: Models) -> None:
    """The route for texts."""

    @router.post("/v2/translate", response_model_exclude_none=True)
    async def translate(request: DeepLTexts, http: Request) -> DeepLTranslations:
        """Translate texts, each from its own language if none is named."""
        _refuse_malformed(request)
        texts = [text for text in request.text if text]
        source, target = languages(request, models.catalog.directions(None))
        found: list[Translation] = []
        if texts:
            answer = await models.translate(_native(request, texts, source, target), http.state.context)
            found = answer.translations
        remaining = iter(found)
        answered = [_answered(request, text, next(remaining) if text else None, target) for text in request.text]
        return DeepLTranslations(translations=answered)


def languages(request: DeepLFields, directions: Directions) -> tuple[str, str]:
    """Source and target as they are named here.

    Raises:
        InvalidFields: one is not served.
        UnprocessableRequest: there is no such formality.
    """
    target = served_target(request.target_lang, directions)
    source = served_source(request.source_lang, directions) if request.source_lang else AUTO
    if request.formality in ("more", "less"):
        raise UnprocessableRequest(f"Target language '{request.target_lang.upper()}' doesn't support formality.")
    return source, target


def _native(request: DeepLTexts, texts: list[str], source: str, target: str) -> TranslateRequest:
    options = {
        "text": texts,
        "source": source,
        "target": target,
        "split_sentences": request.split_sentences != "0",
        "glossary_id": glossary_id_of(request),
    }
    if request.tag_handling is not None:
        options["format"] = request.tag_handling
        options["tags"] = {
            "keep": request.ignore_tags,
            "blocks": request.splitting_tags,
            "inline": request.non_splitting_tags,
            "detect": request.outline_detection is not False,
        }
    return as_native(TranslateRequest, options, SENT_AS)


def glossary_id_of(request: DeepLFields) -> str | None:
    """One, or several with commas between them. Raises UnprocessableRequest: there is no language that they are of."""
    named = [*filter(None, [request.glossary_id, *request.glossary_ids])]
    if named and not request.source_lang:
        raise UnprocessableRequest("Use of a glossary requires the source_lang parameter to be specified.")
    return ",".join(named) or None


def _refuse_malformed(request: DeepLTexts) -> None:
    """Raises UnprocessableRequest, in DeepL's words."""
    is_strict = request.tag_handling == "xml" and request.tag_handling_version == "v2"
    if is_strict and not all(map(is_well_formed, request.text)):
        raise UnprocessableRequest("Tag handling parsing failed, please check input.")


def _answered(request: DeepLTexts, text: str, found: Translation | None, target: str) -> DeepLTranslation:
    """A text without words is in the target's language: it comes back as it is."""
    detected = found.detected.language if found is not None and found.detected is not None else target
    return DeepLTranslation(
        detected_source_language=request.source_lang.upper() if request.source_lang else code_of(detected),
        text=found.text if found is not None else text,
        billed_characters=len(text) if request.show_billed_characters else None,
        model_type_used=request.model_type and request.model_type.removeprefix("prefer_"),
        tag_handling_version=request.tag_handling and (request.tag_handling_version or "v1"),
    )
