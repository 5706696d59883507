"""Translation through a third language: one model's translation is the text of another.

It goes on as it was read, not as it is written: its sentences are those of the source, its tags and what is kept of it
are where the first model's alignment has put them.
"""

from bisect import bisect_left
from typing import get_args

from service.contract import FinishReason
from service.engine.admission import Admission
from service.errors import NotAcceptable
from service.schemas.answers import Alignment, Links, Segment, ShownToken, Translation
from service.schemas.requests import TranslateRequest
from service.schemas.timing import Timing
from service.tasks.leg import Hear, Leg
from service.tasks.translation import Translator
from service.text.languages import Direction
from service.text.terms import TermTable

WORST_LAST = get_args(FinishReason)
Route = list[tuple[Translator, Direction]]
"""One leg or two."""


async def translate(
    route: Route,
    request: TranslateRequest,
    timeout_s: float,
    timing: Timing,
    admission: Admission,
    hear: Hear | None = None,
    stored: TermTable | None = None,
) -> list[Translation]:
    """One translation for each text, in order. One deadline holds for both legs.

    Args:
        admission: of the request.
        hear: gets each piece of a translation as soon as it and those before it are done.
        stored: terms beside those of the request.

    Raises:
        RequestError: what the legs raise.
    """
    *earlier, (translator, direction) = route
    if earlier and request.attention:
        names = " and ".join(one.manifest.name for one, _ in route)
        raise NotAcceptable(
            f"attention is of one model, and this translation is made by two, {names}, through {direction.source}"
        )
    last = Leg(translator, direction, request, timeout_s, timing, admission, stored)
    first = None
    if earlier:
        plainly = request.model_copy(update={"alternatives": 0, "max_target_tokens": None})
        first = Leg(*earlier[0], plainly, timeout_s, timing, admission, stored)
        await first.read()
        await first.run()
    await last.read(await first.translated() if first else None)
    await (last.run_in_pieces(hear) if hear else last.run())
    translations = await last.composed()
    if first is None:
        return translations
    return [_as_one(*both) for both in zip(await first.composed(), translations, strict=True)]


def _as_one(first: Translation, second: Translation) -> Translation:
    """The translation of a translation, as one of the first one's text."""
    for one in (second, *(second.alternatives or [])):
        one.score += first.score
        one.target_tokens += first.target_tokens
        one.finish_reason = max(one.finish_reason, first.finish_reason, key=WORST_LAST.index)
    second.source_tokens += first.source_tokens
    second.segments = _segments(first.segments or [], second.segments or []) or None
    if first.alignment and second.alignment:
        words = _composed(first.alignment.words, second.alignment.words)
        second.alignment = Alignment(**dict(_composed(first.alignment, second.alignment)), words=words)
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


def _composed(first: Links, second: Links) -> Links:
    """From the first one's source to the second one's target, wherever links meet in the text between them. The two
    may cut that text into other tokens."""
    sources: dict[int, list[int]] = {}
    for s, middle in _pairs(first):
        sources.setdefault(middle, []).append(s)
    written, reads = first.target, second.source
    found: set[tuple[int, int]] = set()
    for middle, t in _pairs(second):
        for other in _overlapping(written, reads[middle]):
            found.update((s, t) for s in sources.get(other, []))
    links = sorted(found, key=lambda link: (link[1], link[0]))
    return Links(
        source=first.source,
        target=second.target,
        pairs=" ".join(f"{s}-{t}" for s, t in links),
        spans=[(first.source[s].span, second.target[t].span) for s, t in links],
    )


def _pairs(links: Links) -> list[tuple[int, int]]:
    return [(int(s), int(t)) for s, _, t in (pair.partition("-") for pair in links.pairs.split())]


def _overlapping(tokens: list[ShownToken], token: ShownToken) -> range:
    """Numbers of the tokens, which are in order, that have a character of another one."""
    start, end = token.span
    first = bisect_left(tokens, start + 1, key=lambda one: one.span[1])
    last = bisect_left(tokens, end, key=lambda one: one.span[0])
    return range(first, max(first, last))
