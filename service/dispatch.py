"""Each text of a request to the model for its source, given or detected; to none, if the source is the target."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Iterable, Iterator, Sequence
from time import perf_counter
from typing import TypeVar

from service.errors import NotAcceptable
from service.registry import Models, some
from service.schemas.answers import (
    DetectedLanguage,
    Detection,
    DetectResponse,
    TranslateResponse,
    Translation,
    TranslationUsage,
)
from service.schemas.requests import DetectRequest, TranslateRequest
from service.schemas.timing import Timing
from service.tasks.detection import detected
from service.tasks.translation import Translator
from service.text.identification import Identified
from service.text.languages import Direction, are_same, canonical

AUTO = "auto"
LEAST_CONFIDENCE = 0.01
"""Of languages that are listed behind the most probable one."""

Result = TypeVar("Result")


async def translate(models: Models, request: TranslateRequest, timeout_s: float, timing: Timing) -> TranslateResponse:
    """Each text by the model for its language.

    Raises:
        UnknownModel, NotAcceptable: nothing here translates what is asked for.
        RequestError: what translators raise.
    """
    name, source, target = request.model, request.source, request.target
    if source == AUTO or (source is None and target is not None and len(models.sources(name, target)) > 1):
        return await _translate_detected(models, request, timeout_s, timing)
    try:
        translator, direction = models.translator(name, source, target)
    except NotAcceptable:
        if source is None or target is None or not are_same(source, target):
            raise
        unchanged = [_unchanged(text) for text in request.text]
        return _answer(unchanged, None, canonical(source) or source, canonical(target) or target)
    translations = await translator.translate(request, direction, timeout_s, timing)
    return _answer(translations, translator.manifest.name, direction.source, direction.target)


async def detect(models: Models, request: DetectRequest, timeout_s: float, timing: Timing) -> DetectResponse:
    """The languages that each text may be in, of those that translators read.

    Raises:
        UnknownModel: no translator has this name, or there are none.
        DeadlinePassed: it took longer than `timeout_s`.
    """
    with timing.tokenizing():
        found = await detected(request.text, request.format, models.sources(request.model), timeout_s)
    return DetectResponse(detections=[Detection(languages=[*_told(ranked)]) for ranked in found])


async def _translate_detected(
    models: Models, request: TranslateRequest, timeout_s: float, timing: Timing
) -> TranslateResponse:
    ends_at = perf_counter() + timeout_s
    target = models.target(request.model, request.target)
    sources = models.sources(request.model, target)
    with timing.tokenizing():
        found = await detected(request.text, request.format, [*sources, target], timeout_s)
    languages = [ranked[0] if ranked else None for ranked in found]
    translations = [_unchanged(text) for text in request.text]
    places: dict[tuple[Translator, Direction], list[int]] = defaultdict(list)
    for i, language in enumerate(languages):
        if language is not None and not are_same(language.language, target):
            if not language.is_served:
                raise NotAcceptable(_refusal(i, len(languages), language, target, sources))
            places[models.translator(request.model, language.language, target)].append(i)
    parts = [request.model_copy(update={"text": [request.text[i] for i in group]}) for group in places.values()]
    answers = await _all(
        translator.translate(part, direction, ends_at - perf_counter(), timing)
        for (translator, direction), part in zip(places, parts, strict=True)
    )
    for ((translator, _), group), answer in zip(places.items(), answers, strict=True):
        for i, translation in zip(group, answer, strict=True):
            translation.model = translator.manifest.name
            translations[i] = translation
    for translation, language in zip(translations, languages, strict=True):
        translation.detected = _shown(language) if language is not None else None
    return _answer(translations, None, AUTO, target)


async def _all(awaitables: Iterable[Awaitable[Result]]) -> list[Result]:
    """What all give; as soon as one fails the others are given up."""
    tasks = [asyncio.ensure_future(awaitable) for awaitable in awaitables]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


def _answer(translations: list[Translation], model: str | None, source: str, target: str) -> TranslateResponse:
    usage = TranslationUsage(
        source_tokens=sum(translation.source_tokens for translation in translations),
        target_tokens=sum(translation.target_tokens for translation in translations),
    )
    return TranslateResponse(model=model, source=source, target=target, translations=translations, usage=usage)


def _unchanged(text: str) -> Translation:
    return Translation(text=text, score=0, finish_reason="eos", source_tokens=0, target_tokens=0)


def _told(ranked: list[Identified]) -> Iterator[DetectedLanguage]:
    served = [one for one in ranked if one.is_served]
    return (_shown(one) for one in served if one is served[0] or one.confidence >= LEAST_CONFIDENCE)


def _shown(language: Identified) -> DetectedLanguage:
    return DetectedLanguage(language=language.language, confidence=round(language.confidence, 3))


def _refusal(i: int, n: int, language: Identified, target: str, sources: Sequence[str]) -> str:
    which = "the text" if n == 1 else f"text {i} of {n}"
    what = f"is probably {language.language}" if language.confidence else "is in letters of no language known here"
    return f"{which} {what}; {target} is translated from {some(sources)}: if it is one of these, name source"
