"""Each text of a request to the model for its source, given or detected; to none, if the source is the target."""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Iterable, Iterator
from contextlib import suppress
from typing import TypeVar

from service.base.errors import UnknownGlossary, UnprocessableRequest
from service.glossaries.store import Glossaries
from service.glossaries.terms import TermTable
from service.models.catalog import Models
from service.models.directions import Directions
from service.models.sources import AUTO, languages_of_texts, must_be_detected, same_languages
from service.schemas.answers import (
    DetectedLanguage,
    Detection,
    DetectResponse,
    Piece,
    Pivot,
    TranslateResponse,
    Translation,
    TranslationUsage,
)
from service.schemas.requests import DetectRequest, TranslateRequest
from service.schemas.timing import Timing
from service.tasks import pivot
from service.tasks.context import Context
from service.tasks.detection import detected
from service.tasks.leg import Hear
from service.tasks.pivot import Route
from service.text.identification import Identified
from service.text.languages import are_same
from service.workers.pool import admission_of

LEAST_CONFIDENCE = 0.01
"""Of languages that are listed behind the most probable one."""

Result = TypeVar("Result")


async def translate(
    models: Models,
    request: TranslateRequest,
    timeout_s: float,
    timing: Timing,
    hear: Hear | None = None,
    glossaries: Glossaries | None = None,
) -> TranslateResponse:
    """Each text by the model for its language, or by two.

    Args:
        hear: gets each piece of a translation as soon as it and those before it are done.
        glossaries: that the request may name.

    Raises:
        UnknownModel, UnprocessableRequest: nothing here translates what is asked for.
        UnknownGlossary: there is none of this id.
        RequestError: what translators raise.
    """
    directions = models.directions(request.model)
    with admission_of(models.metrics.of_task("translation")) as admission:
        context = Context(time.monotonic() + timeout_s, timing, admission)
        answer = await _translated(directions, request, context, hear, glossaries)
    models.metrics.characters.inc(answer.usage.characters)
    return answer


async def stream(
    models: Models,
    request: TranslateRequest,
    timeout_s: float,
    timing: Timing,
    glossaries: Glossaries | None = None,
) -> AsyncGenerator[Piece | TranslateResponse, None]:
    """The same, piece by piece; the whole answer comes last.

    Raises:
        RequestError: as above.
    """
    if request.attention:
        raise UnprocessableRequest("attention comes with a whole answer, not with one in pieces")
    heard: asyncio.Queue[tuple[int, str] | None] = asyncio.Queue()

    def hear(i: int, piece: str) -> None:
        heard.put_nowait((i, piece))

    work = asyncio.create_task(translate(models, request, timeout_s, timing, hear, glossaries))
    work.add_done_callback(lambda _: heard.put_nowait(None))
    waiting: dict[int, list[str]] = defaultdict(list)
    index = 0
    try:
        while (one := await heard.get()) is not None:
            waiting[one[0]].append(one[1])
            while waiting[index]:
                piece = waiting[index].pop(0)
                if piece:
                    yield Piece(index=index, piece=piece)
                else:
                    index += 1
        yield await work
    finally:
        work.cancel()


async def detect(models: Models, request: DetectRequest, timeout_s: float, timing: Timing) -> DetectResponse:
    """The languages that each text may be in, of those that translators read.

    Raises:
        UnknownModel: no translator has this name, or there are none.
        DeadlinePassed: it took longer than `timeout_s`.
    """
    with timing.tokenizing():
        found = await detected(request.text, request.format, models.directions(request.model).sources(), timeout_s)
    return DetectResponse(detections=[Detection(languages=[*_told(ranked)]) for ranked in found])


async def _translated(
    directions: Directions,
    request: TranslateRequest,
    context: Context,
    hear: Hear | None,
    glossaries: Glossaries | None,
) -> TranslateResponse:
    if must_be_detected(directions, request):
        return await _translate_detected(directions, request, context, hear, glossaries)
    if (both := same_languages(directions, request)) is not None:
        unchanged = [_unchanged(i, text, hear) for i, text in enumerate(request.text)]
        return _answer(request, unchanged, *both)
    route = directions.route(request.source, request.target, request.pivot)
    source, target = route[0][1].source, route[-1][1].target
    stored = await _stored(glossaries, request, source, target)
    translations = await pivot.translate(route, request, context, hear, stored)
    return _answer(request, translations, source, target, route)


async def _translate_detected(
    directions: Directions,
    request: TranslateRequest,
    context: Context,
    hear: Hear | None,
    glossaries: Glossaries | None,
) -> TranslateResponse:
    target = directions.target(request.target)
    languages = await languages_of_texts(directions, request, target, context.left_s, context.timing)
    routes: dict[str, Route] = {}
    stored: dict[str, TermTable | None] = {}
    places: dict[str, list[int]] = defaultdict(list)
    unchanged = []
    for i, language in enumerate(languages):
        if language is None or are_same(language.language, target):
            unchanged.append(i)
            continue
        name = language.language
        if name not in routes:
            routes[name] = directions.route(name, target, request.pivot)
            with suppress(
                UnprocessableRequest
            ):  # texts of other languages than the glossary's are translated without it
                stored[name] = await _stored(glossaries, request, name, target)
        places[name].append(i)
    translations = {i: _unchanged(i, request.text[i], hear) for i in unchanged}
    parts = [request.model_copy(update={"text": [request.text[i] for i in places[name]]}) for name in routes]
    answers = await _all(
        pivot.translate(routes[name], part, context, hear and _hear_of(places[name], hear), stored.get(name))
        for name, part in zip(routes, parts, strict=True)
    )
    for name, answer in zip(routes, answers, strict=True):
        for i, translation in zip(places[name], answer, strict=True):
            translation.model, translation.pivot = _made_by(routes[name])
            translations[i] = translation
    for i, language in enumerate(languages):
        translations[i].detected = _shown(language) if language is not None else None
    return _answer(request, [translations[i] for i in range(len(languages))], AUTO, target)


async def _stored(
    glossaries: Glossaries | None, request: TranslateRequest, source: str, target: str
) -> TermTable | None:
    """The terms of the glossary that a request names.

    Raises:
        UnknownGlossary: there is none.
        UnprocessableRequest: it has no dictionary for these languages.
    """
    if request.glossary_id is None:
        return None
    if glossaries is None:
        raise UnknownGlossary(f"there is no glossary {request.glossary_id}")
    return await glossaries.table(request.glossary_id, source, target)


def _hear_of(places: list[int], hear: Hear) -> Hear:
    """For texts that are some of a request's."""
    return lambda i, piece: hear(places[i], piece)


async def _all(awaitables: Iterable[Awaitable[Result]]) -> list[Result]:
    """What all give; as soon as one fails the others are given up."""
    tasks = [asyncio.ensure_future(awaitable) for awaitable in awaitables]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


def _answer(
    request: TranslateRequest, translations: list[Translation], source: str, target: str, route: Route | None = None
) -> TranslateResponse:
    model, through = _made_by(route) if route else (None, None)
    usage = TranslationUsage(
        characters=sum(map(len, request.text)),
        source_tokens=sum(translation.source_tokens for translation in translations),
        target_tokens=sum(translation.target_tokens for translation in translations),
    )
    return TranslateResponse(
        model=model, pivot=through, source=source, target=target, translations=translations, usage=usage
    )


def _made_by(route: Route) -> tuple[str | None, Pivot | None]:
    """The one model, or what two went through."""
    if len(route) == 1:
        return route[0][0].manifest.name, None
    (first, into), (second, _) = route
    return None, Pivot(language=into.target, models=(first.manifest.name, second.manifest.name))


def _unchanged(i: int, text: str, hear: Hear | None) -> Translation:
    if hear is not None:
        hear(i, text)
        hear(i, "")
    return Translation(text=text, score=0, finish_reason="eos", source_tokens=0, target_tokens=0)


def _told(ranked: list[Identified]) -> Iterator[DetectedLanguage]:
    served = [one for one in ranked if one.is_served]
    return (_shown(one) for one in served if one is served[0] or one.confidence >= LEAST_CONFIDENCE)


def _shown(language: Identified) -> DetectedLanguage:
    return DetectedLanguage(language=language.language, confidence=round(language.confidence, 3))
