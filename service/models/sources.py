"""The language of each text of a request that does not name it."""

from collections.abc import Sequence

from service.base.errors import LanguageNotDetected
from service.models.directions import Directions, some
from service.schemas.requests import TranslateRequest
from service.tasks.context import Context
from service.tasks.detection import detect_languages
from service.text.identification import IdentifiedLanguage
from service.text.languages import are_same


async def languages_of_texts(
    directions: Directions, request: TranslateRequest, target: str, context: Context
) -> list[IdentifiedLanguage | None]:
    """Detect the language of each text, among those that are translated into the target, and the target itself; None
    for a text without words.

    Raises:
        LanguageNotDetected: a text is in another language.
        DeadlinePassed: it took too long.
    """
    sources = directions.sources(target, request.pivot)
    with context.timing.tokenizing():
        served = [*dict.fromkeys([*sources, target])]
        found = await detect_languages(request.text, request.format, served, context.left_s, request.tags)
    languages = [ranked[0] if ranked else None for ranked in found]
    for i, language in enumerate(languages):
        if language is not None and not language.is_served and not are_same(language.language, target):
            raise LanguageNotDetected(_refusal(i, len(languages), language, target, sources))
    return languages


def _refusal(i: int, n: int, language: IdentifiedLanguage, target: str, sources: Sequence[str]) -> str:
    which = "The text" if n == 1 else f"Text {i} of {n}"
    what = f"is probably in {language.language}" if language.confidence else "is in letters of no known language"
    return f"{which} {what}, which is not translated to {target}; `source` may be: {some(sources)}"
