"""Translation through a third language: the second model translates the translation of the first.

The intermediate text keeps the sentences of the source, and has its tags and kept spans at the places that the first
model's alignment gave them.
"""

from bisect import bisect_left

from service.base.errors import UnsupportedOption
from service.glossaries.terms import TermTable
from service.memories.recall import Recall
from service.schemas.answers import Segment, Translation
from service.schemas.requests import TranslateRequest
from service.tasks.context import Context
from service.tasks.translation import alignment
from service.tasks.translation.composition import worst_reason
from service.tasks.translation.leg import Leg, OnPiece
from service.tasks.translation.translator import Translator
from service.text.languages import Direction

Route = list[tuple[Translator, Direction]]
"""The translator and the direction of each leg."""


async def translate(
    route: Route,
    request: TranslateRequest,
    context: Context,
    on_piece: OnPiece | None = None,
    stored_terms: TermTable | None = None,
    recall: Recall | None = None,
) -> list[Translation]:
    """Return one translation for each text, in order. One deadline holds for both legs. `on_piece` receives each piece
    of a translation as soon as it and all pieces before it are done. `stored_terms` come from a stored glossary, in
    addition to terms of the request. Raises RequestError: a leg failed."""
    *earlier, (translator, direction) = route
    if earlier and request.attention:
        names = " and ".join(leg.manifest.name for leg, _ in route)
        raise UnsupportedOption(
            f"`attention` needs one model; this translation takes two ({names}, through {direction.source})"
        )
    last = Leg(translator, direction, request, context, stored_terms, recall=None if earlier else recall)
    first = None
    if earlier:
        plainly = request.model_copy(update={"alternatives": 0, "max_target_tokens": None, "target_prefix": None})
        first = Leg(*earlier[0], plainly, context, stored_terms, direction.target, recall)
        await first.read()
        await first.run()
    await last.read(await first.translated_texts() if first else None)
    await last.run(on_piece)
    translations = await last.compose()
    if first is not None:
        translations = [_merge(*both) for both in zip(await first.compose(), translations, strict=True)]
    (first or last).show_remembered(translations)
    return translations


def _merge(first: Translation, second: Translation) -> Translation:
    for answer in (second, *(second.alternatives or [])):
        answer.score += first.score
        answer.target_tokens += first.target_tokens
        answer.finish_reason = worst_reason([first.finish_reason, answer.finish_reason])
    second.source_tokens += first.source_tokens
    if first.checks is not None and second.checks is not None:
        second.checks = first.checks + second.checks
    second.segments = _segments(first.segments or [], second.segments or []) or None
    if second.confidence is not None:
        second.confidence = first.confidence and first.confidence * second.confidence
    if first.alignment and second.alignment:
        second.alignment = alignment.compose(first.alignment, second.alignment)
    return second


def _segments(first: list[Segment], second: list[Segment]) -> list[Segment]:
    """Return the segments of the first leg with their targets in the second leg. The second leg may have cut a long
    segment, or read two segments as one."""
    ends = [segment.source[1] for segment in second]
    segments: list[Segment] = []
    for segment in first:
        start, end = segment.target
        targets = []
        for other in second[bisect_left(ends, start + 1) :]:
            if other.source[0] >= end:
                break
            targets.append(other.target)
        if not targets:
            continue
        source, target = segment.source, (targets[0][0], targets[-1][1])
        if segments and target[0] < segments[-1].target[1]:
            before = segments.pop()
            source, target = (before.source[0], source[1]), (before.target[0], target[1])
        segments.append(Segment(source=source, target=target))
    return segments
