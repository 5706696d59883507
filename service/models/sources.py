"""In which language texts are, where a request does not say it, and whether there is anything to translate."""

from collections.abc import Sequence

from service.base.errors import LanguageNotDetected
from service.models.catalog import Models
from service.models.directions import Directions, some
from service.schemas.requests import TranslateRequest
from service.schemas.timing import Timing
from service.tasks.detection import detected
from service.text.identification import Identified
from service.text.languages import are_same, canonical

AUTO = "auto"


async def languages_of(models: Models, request: TranslateRequest, timeout_s: float) -> tuple[str, str]:
    """From which language into which the first text of a request is translated; both are the same if it is not.

    Raises:
        UnknownModel, UnprocessableRequest: nothing here translates it.
        DeadlinePassed: it took longer than `timeout_s`.
    """
    directions = models.directions(request.model)
    if (both := same_languages(directions, request)) is not None:
        return both
    source, target = request.source, request.target
    if must_be_detected(directions, request):
        target = directions.target(target)
        [language, *_] = await languages_of_texts(directions, request, target, timeout_s, Timing())
        if language is None or are_same(language.language, target):
            return target, target
        source = language.language
    route = directions.route(source, target, request.pivot)
    return route[0][1].source, route[-1][1].target


def must_be_detected(directions: Directions, request: TranslateRequest) -> bool:
    source, target = request.source, request.target
    return source == AUTO or (source is None and target is not None and len(directions.sources(target)) > 1)


def same_languages(directions: Directions, request: TranslateRequest) -> tuple[str, str] | None:
    """Both languages, if they are the same, so that there is nothing to translate."""
    source, target = request.source, request.target
    if source is None or target is None or not are_same(source, target) or directions.has(source, target):
        return None
    return canonical(source) or source, canonical(target) or target


async def languages_of_texts(
    directions: Directions, request: TranslateRequest, target: str, timeout_s: float, timing: Timing
) -> list[Identified | None]:
    """The language of each text, of those that are translated into the target, or the target; None for one without
    words.

    Raises:
        LanguageNotDetected: a text is in another one.
    """
    sources = directions.sources(target, request.pivot)
    with timing.tokenizing():
        served = [*dict.fromkeys([*sources, target])]
        found = await detected(request.text, request.format, served, timeout_s, request.tags)
    languages = [ranked[0] if ranked else None for ranked in found]
    for i, language in enumerate(languages):
        if language is not None and not language.is_served and not are_same(language.language, target):
            raise LanguageNotDetected(_refusal(i, len(languages), language, target, sources))
    return languages


def _refusal(i: int, n: int, language: Identified, target: str, sources: Sequence[str]) -> str:
    which = "The text" if n == 1 else f"Text {i} of {n}"
    what = f"is probably in {language.language}" if language.confidence else "is in letters of no known language"
    return f"{which} {what}, which is not translated to {target}; `source` may be: {some(sources)}"
