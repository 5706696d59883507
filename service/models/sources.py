"""The language of each text of a request that does not name it."""

from collections.abc import Sequence

from service.base.errors import UnprocessableRequest
from service.models.directions import Directions, some
from service.schemas.requests import TranslateRequest
from service.tasks.context import Context
from service.tasks.detection import detected
from service.text.identification import Identified
from service.text.languages import are_same


async def languages_of_texts(
    directions: Directions, request: TranslateRequest, target: str, context: Context
) -> list[Identified | None]:
    """Detect the language of each text, among those that are translated into the target, and the target itself; None
    for a text without words.

    Raises:
        UnprocessableRequest: a text is in another language.
        DeadlinePassed: it took too long.
    """
    sources = directions.sources(target, request.pivot)
    with context.timing.tokenizing():
        served = [*dict.fromkeys([*sources, target])]
        found = await detected(request.text, request.format, served, context.left_s, request.tags)
    languages = [ranked[0] if ranked else None for ranked in found]
    for i, language in enumerate(languages):
        if language is not None and not language.is_served and not are_same(language.language, target):
            raise UnprocessableRequest(_refusal(i, len(languages), language, target, sources))
    return languages


def _refusal(i: int, n: int, language: Identified, target: str, sources: Sequence[str]) -> str:
    which = "the text" if n == 1 else f"text {i} of {n}"
    what = f"is probably {language.language}" if language.confidence else "is in letters of no language known here"
    return f"{which} {what}; {target} is translated from {some(sources)}: if it is one of these, name source"
