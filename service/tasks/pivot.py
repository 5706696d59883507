"""Translation through a third language: one model's translation is the text of another.

It goes on as it was read, not as it is written: its sentences are those of the source, its tags and what is kept of it
are where the first model's alignment has put them.
"""

from bisect import bisect_left

from service.base.errors import UnsupportedOption
from service.glossaries.terms import TermTable
from service.schemas.answers import Segment, Translation
from service.schemas.requests import TranslateRequest
from service.tasks import alignment
from service.tasks.composition import worst
from service.tasks.context import Context
from service.tasks.leg import Hear, Leg
from service.tasks.translation import Translator
from service.text.languages import Direction

Route = list[tuple[Translator, Direction]]
"""One leg or two."""


async def translate(
    route: Route,
    request: TranslateRequest,
    context: Context,
    hear: Hear | None = None,
    stored: TermTable | None = None,
) -> list[Translation]:
    """One translation for each text, in order. One deadline holds for both legs.

    Args:
        hear: gets each piece of a translation as soon as it and those before it are done.
        stored: terms beside those of the request.

    Raises:
        RequestError: what the legs raise.
    """
    *earlier, (translator, direction) = route
    if earlier and request.attention:
        names = " and ".join(one.manifest.name for one, _ in route)
        raise UnsupportedOption(
            f"`attention` needs one model; this translation takes two ({names}, through {direction.source})"
        )
    last = Leg(translator, direction, request, context, stored)
    first = None
    if earlier:
        plainly = request.model_copy(update={"alternatives": 0, "max_target_tokens": None})
        first = Leg(*earlier[0], plainly, context, stored)
        await first.read()
        await first.run()
    await last.read(await first.translated() if first else None)
    await last.run(hear)
    translations = await last.composed()
    if first is None:
        return translations
    return [_as_one(*both) for both in zip(await first.composed(), translations, strict=True)]


def _as_one(first: Translation, second: Translation) -> Translation:
    """The translation of a translation, as one of the first one's text."""
    for one in (second, *(second.alternatives or [])):
        one.score += first.score
        one.target_tokens += first.target_tokens
        one.finish_reason = worst([first.finish_reason, one.finish_reason])
    second.source_tokens += first.source_tokens
    second.segments = _segments(first.segments or [], second.segments or []) or None
    if first.alignment and second.alignment:
        second.alignment = alignment.composed(first.alignment, second.alignment)
    return second


def _segments(first: list[Segment], second: list[Segment]) -> list[Segment]:
    """Each segment of the first, with all that became of it: the second may have cut it where it was too long, or read
    two as one."""
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
