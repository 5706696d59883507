"""Translate and detect texts for a dialect: languages have its codes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from service.dialects.shared.languages import LanguageCodes, native_source, native_target
from service.front.directions import AUTO
from service.front.models import Models
from service.http.json_route import validate
from service.schemas.answers import DetectedLanguage, Translation
from service.schemas.requests import DetectRequest, TranslateRequest
from service.tasks.context import Context


@dataclass(frozen=True)
class Translated:
    """A translated text.

    Attributes:
        source: the dialect's code of the source, detected or given; None: the text has no words to detect it.
        confidence: probability of the source; 1 if it was given.
        native: the translation.
    """

    text: str
    source: str | None
    confidence: float
    native: Translation


async def translate_texts(
    models: Models,
    codes: LanguageCodes,
    texts: Sequence[str],
    source: str | None,
    target: str,
    context: Context,
    **options: Any,
) -> list[Translated]:
    """Translate texts.

    Args:
        source, target: codes of the client; no source, or `auto`: that of each text is detected.
        options: fields of the native request.

    Raises:
        InvalidFields: of `source`, `target`, `text` or an option.
        RequestError: what `Models.translate` raises.
    """
    directions = models.catalog.directions(options.get("model"))
    languages = {"source": native_source(source, directions), "target": native_target(target, directions)}
    if not texts:
        return []
    native = validate(TranslateRequest, {"text": [*texts], **languages, **options})
    named = codes.name(languages["source"]) if languages["source"] != AUTO else None
    translations = (await models.translate(native, context)).translations
    return [_translated(translation, named, codes) for translation in translations]


def _translated(native: Translation, named: str | None, codes: LanguageCodes) -> Translated:
    if named is not None:
        return Translated(native.text, named, 1, native)
    if native.detected is None:
        return Translated(native.text, None, 0, native)
    return Translated(native.text, codes.name(native.detected.language), native.detected.confidence, native)


async def detect_texts(
    models: Models, codes: LanguageCodes, texts: Sequence[str], context: Context, **options: Any
) -> list[list[DetectedLanguage]]:
    """Return the possible languages of each text, the most probable first; none for a text without words. Raises
    InvalidFields, and what `Models.detect` raises."""
    native = validate(DetectRequest, {"text": [*texts], **options})
    return [
        [language.model_copy(update={"language": codes.name(language.language)}) for language in detection.languages]
        for detection in (await models.detect(native, context)).detections
    ]
