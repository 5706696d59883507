"""Find the places of source regions in a translation, by the attention of each translated word.

A region gets the run of translated words with the largest sum, in which a word counts with the share of its attention
on the region, minus one half (Kadane's maximum subarray). Regions form a tree, and so do their places.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from service.kept.restoration import Copies
from service.text.aligned_words import AlignedWords, closes, core, marks_in, opens, reach
from service.text.spans import Span, overlapping

BRACKETS = (("(", ")"), ("[", "]"), ("{", "}"), ("「", "」"))
MAX_DEPTH = 60
"""Deeper regions are placed without a look at their words: a region has all words of the regions in it, so nesting
without a limit would take quadratic time."""


@dataclass(frozen=True)
class Region:
    """A region of the source, possibly empty, and the number of the region around it."""

    span: Span
    parent: int | None
    is_apart: bool = False
    """Whether an empty region is separate from the word before it: then it stays at the end of its sentence."""


def project(
    regions: Sequence[Region], source: str, target: str, aligned_words: Iterable[AlignedWords], copies: Copies
) -> list[Span]:
    """Return the place of each region in the translation. Nesting is kept, and regions of one parent do not overlap.
    Each region comes after its parent, and regions of one parent are in order."""
    projection = _Projection(source, target, aligned_words, copies)
    children: dict[int | None, list[int]] = {}
    depths: list[int] = []
    for i, region in enumerate(regions):
        children.setdefault(region.parent, []).append(i)
        depths.append(0 if region.parent is None else depths[region.parent] + 1)
    places = [Span(0, 0)] * len(regions)
    for parent in (None, *range(len(regions))):
        if parent in children:
            within = Span(0, len(source)) if parent is None else regions[parent].span
            into = Span(0, len(target)) if parent is None else places[parent]
            siblings = [regions[child] for child in children[parent]]
            is_deep = parent is not None and depths[parent] >= MAX_DEPTH
            placed = (projection.deep_siblings if is_deep else projection.siblings)(siblings, within, into)
            for child, place in zip(children[parent], placed, strict=True):
                places[child] = place
    return places


class _Projection:
    def __init__(self, source: str, target: str, aligned_words: Iterable[AlignedWords], copies: Copies) -> None:
        trims = [_trim(text, frozenset(copy[side] for copy in copies)) for side, text in enumerate((source, target))]
        sentences = [words.trim(*trims) for words in aligned_words if words.source and words.target]
        self._source, self._target, self._copies = source, target, copies
        self._sentences = sorted((s for s in sentences if s.source), key=lambda sentence: sentence.source[0].start)
        self._source_words = sorted({word for s in sentences for word in s.source}, key=lambda word: word.pair)
        self._target_words = sorted({word for s in sentences for word in s.target}, key=lambda word: word.pair)
        place = {word: i for i, word in enumerate(self._target_words)}
        self._rows = [[place[word] for word in sentence.target] for sentence in self._sentences]

    def siblings(self, regions: list[Region], within: Span, into: Span) -> list[Span]:
        """Return the places of the regions of one parent. `within` is the parent's source, `into` its place."""
        spans = [region.span for region in regions]
        gap = 1 if len(spans) == 1 else 0  # an image may follow the space
        exact = [self._exactly(span, within, into, gap) for span in spans]
        places = {i: place for i, place in enumerate(exact) if place is not None}
        words = [range(*overlapping(self._source_words, span)) if span.start < span.end else () for span in spans]
        worded = [i for i in range(len(spans)) if i not in places and words[i]]
        taken = {word for place in places.values() for word in range(*overlapping(self._target_words, place))}
        runs = self._runs({i: spans[i] for i in worded}, within, into, taken)
        places |= self._with_punctuation(spans, runs, into)
        occupied = sorted((place for place in places.values() if place.start < place.end), key=lambda place: place.pair)
        for i, region in enumerate(regions):
            if i not in places:
                places[i] = self._without_words(region, within, into, occupied)
                if places[i].start < places[i].end:
                    insort(occupied, places[i], key=lambda place: place.pair)
        return [places[i] for i in range(len(spans))]

    def deep_siblings(self, regions: list[Region], within: Span, into: Span) -> list[Span]:
        """Return places as `siblings` does, for regions in many others: the places of unchanged text, or else all of
        `into` for the first region."""
        gap = 1 if len(regions) == 1 else 0
        exact = [self._exactly(region.span, within, into, gap) for region in regions]
        has_text = (region.span.start < region.span.end for region in regions)
        if any(place is None and is_text for place, is_text in zip(exact, has_text, strict=True)):
            return [into] + [Span(into.end, into.end)] * (len(regions) - 1)
        places: list[Span] = []
        end = into.start
        for place in exact:  # a region without text follows the one before it
            places.append(place or Span(end, end))
            end = max(end, places[-1].end)
        return places

    def _exactly(self, span: Span, within: Span, into: Span, gap: int) -> Span | None:
        """Return the place of a region that covers its parent but for `gap` spaces, or that lies in a copied span."""
        if self._is_all_of(span, within, gap):
            start = into.start + (within.start < span.start and self._target[into.start : into.end].startswith(" "))
            end = into.end - (span.end < within.end and self._target[start : into.end].endswith(" "))
            return Span(start, end)
        i = bisect_right(self._copies, span.start, key=lambda copy: copy[0].start) - 1
        pair = self._copies[i] if i >= 0 and span.end <= self._copies[i][0].end else self._same_word(span, into)
        if pair is None:
            return None
        copied, place = pair
        if place.end - place.start != copied.end - copied.start:  # regions of a different copy have no places
            return place if span.start < span.end and into.start <= place.start and place.end <= into.end else None
        moved = Span(span.start - copied.start + place.start, span.end - copied.start + place.start)
        inside = span.end <= copied.end and (span.start < span.end or copied.start < span.start < copied.end)
        return moved if inside and into.start <= moved.start and moved.end <= into.end else None

    def _same_word(self, span: Span, into: Span) -> tuple[Span, Span] | None:
        """Return the word that contains the span, and the same word in the translation; of several the one with most
        attention."""
        first, last = overlapping(self._source_words, span)
        if last - first != 1 or span.start == span.end:
            return None
        word = self._source_words[first]
        if not (word.start <= span.start and span.end <= word.end) or word == span:
            return None
        attention = self._attention(word, self._words_in(into))
        same = [i for i in attention if self._target_words[i].of(self._target) == word.of(self._source)]
        best = max(same, key=lambda i: attention[i], default=None)
        return None if best is None else (word, self._target_words[best])

    def _is_all_of(self, span: Span, within: Span, gap: int) -> bool:
        before, after = Span(within.start, span.start), Span(span.end, within.end)
        short = before.end - before.start <= gap and after.end - after.start <= gap
        return short and not (before.of(self._source) + after.of(self._source)).strip(" ") and span.start < span.end

    def _attention(self, span: Span, words: range) -> dict[int, float]:
        """Map target words to their attention on a region, in every sentence that it overlaps. A region that covers a
        whole sentence gets all of its translation."""
        first = bisect_right(self._sentences, span.start, key=lambda sentence: sentence.source[-1].end)
        attention: dict[int, float] = {}
        for sentence, rows in zip(self._sentences[first:], self._rows[first:], strict=True):
            if sentence.source[0].start >= span.end:
                break
            covered = span.start <= sentence.source[0].start and sentence.source[-1].end <= span.end
            shares = [1.0] * len(rows) if covered else sentence.on(span).tolist()
            attention.update(zip(rows, shares, strict=True))
        return {word: mass for word, mass in attention.items() if word in words}

    def _runs(self, spans: dict[int, Span], within: Span, into: Span, taken: set[int]) -> dict[int, range]:
        words = self._words_in(into)
        attention = {i: self._attention(span, words) for i, span in spans.items()}
        owners: dict[int, int | None] = {
            w: i for i, masses in attention.items() for w, mass in masses.items() if mass > 0.5
        }
        owners |= dict.fromkeys(taken)
        runs = {}
        for i, span in spans.items():
            everything = overlapping(self._source_words, span) == overlapping(self._source_words, within)
            if everything and len(spans) == 1 and words and not taken:
                runs[i] = words
            elif run := _best_run(attention[i], owners, i):
                runs[i] = run
        occupied = {word for run in runs.values() for word in run} | taken
        left = [i for i in spans if i not in runs]
        for i in sorted(left, key=lambda i: -max(attention[i].values(), default=0)):
            free = [word for word in attention[i] if word not in occupied]
            if free:
                share = (spans[i].start - within.start) / (within.end - within.start)
                expected = words.start + share * len(words)
                best = max(free, key=lambda word: (attention[i][word], -abs(word - expected)))
                runs[i] = range(best, best + 1)
                occupied.add(best)
        return runs

    def _words_in(self, into: Span) -> range:
        first = bisect_left(self._target_words, into.start, key=lambda word: word.start)
        return range(first, max(first, bisect_right(self._target_words, into.end, key=lambda word: word.end)))

    def _with_punctuation(self, spans: list[Span], runs: dict[int, range], into: Span) -> dict[int, Span]:
        """Return the spans of the runs, each with as much punctuation around it as its region contains."""
        grown, left = {}, into.start
        for i, run in sorted(runs.items(), key=lambda item: item[1][0]):
            start, end = self._target_words[run[0]].start, self._target_words[run[-1]].end
            first, last = overlapping(self._source_words, spans[i])
            leading = self._source[spans[i].start : self._source_words[first].start]
            trailing = self._source[self._source_words[last - 1].end : spans[i].end]
            before, after = self._gap(run[0], into).start, self._gap(run[-1] + 1, into).end
            gap = " " * (before == 0) + self._target[before:start]
            start = max(left, start - reach(gap[::-1], marks_in(leading), closes))
            end = max(start, end + reach(self._target[end:after], marks_in(trailing), opens))
            grown[i] = self._with_brackets(Span(start, end), Span(max(left, before), after))
            left = grown[i].end
        return grown

    def _with_brackets(self, span: Span, within: Span) -> Span:
        inside, start, end = span.of(self._target), span.start, span.end
        for opening, closing in BRACKETS:
            surplus = inside.count(opening) - inside.count(closing)
            if surplus > 0 and self._target[end : within.end].startswith(closing):
                end += 1
            elif surplus < 0 and self._target[within.start : start].endswith(opening):
                start -= 1
        return Span(start, end)

    def _gap(self, word: int, into: Span) -> Span:
        start = self._target_words[word - 1].end if word > 0 else 0
        end = self._target_words[word].start if word < len(self._target_words) else len(self._target)
        return Span(max(start, into.start), min(end, into.end))

    def _without_words(self, region: Region, within: Span, into: Span, occupied: list[Span]) -> Span:
        """Return the place of a region without words: a point, or its punctuation if the translation has the same."""
        span = region.span
        point, after = self._point(span.start, within, into, region.is_apart)
        gap = self._gap(bisect_left(self._target_words, point, key=lambda word: word.start), into)
        marks = span.of(self._source).strip()
        start = self._target.find(marks, *gap.pair) if marks else -1
        i = bisect_left(occupied, point, key=lambda place: place.end)  # the first place that ends at the point or later
        if start >= 0:
            j = bisect_right(occupied, start, key=lambda place: place.end)
            if j == len(occupied) or occupied[j].start >= start + len(marks):
                return Span(start, start + len(marks))
        if i < len(occupied) and occupied[i].start < point < occupied[i].end:
            point = occupied[i].end if after else occupied[i].start
        return Span(point, point)

    def _point(self, position: int, within: Span, into: Span, is_apart: bool) -> tuple[int, bool]:
        """Return the place of an empty region, and whether it belongs to the text before it. The region goes before the
        translation of the next word, or after the translation of the word that it touches."""
        if self._is_blank(within.start, position):
            return into.start, False
        if self._is_blank(position, within.end):
            return into.end, True
        following = bisect_right(self._source_words, position, key=lambda word: word.end)
        touches = not self._source[position - 1].isspace() and not self._source[position].isalnum()
        for i in (following - 1, following) if touches else (following, following - 1):
            if 0 <= i < len(self._source_words):
                word = self._source_words[i]
                attention = self._attention(word, self._words_in(into))
                best = max(attention, key=lambda target: (attention[target], -target), default=None)
                if best is not None and i < following and is_apart and self._ends_sentence(word):
                    best = max(attention)
                elif best is not None and attention[best] <= 0:
                    best = None
                if best is not None and within.start < word.end and word.start < within.end:
                    place = self._target_words[best]
                    if i >= following:
                        return place.start, False
                    marks = marks_in(self._source[word.end : position])
                    gap = self._gap(best + 1, into)
                    return place.end + reach(gap.of(self._target), marks, opens), True
        return into.end, True

    def _ends_sentence(self, word: Span) -> bool:
        n = bisect_left(self._sentences, word.end, key=lambda sentence: sentence.source[-1].end)
        return self._sentences[n].source[-1] == word

    def _is_blank(self, start: int, end: int) -> bool:
        return end - start <= 1 and not self._source[start:end].strip(" ")


def _trim(text: str, whole: frozenset[Span]) -> Callable[[Span], Span | None]:
    return lambda word: word if word in whole else core(text, word)


def _best_run(masses: dict[int, float], owners: dict[int, int | None], region: int) -> range | None:
    """Return the run with the largest sum of masses less a half each, without words of other regions. Of equal runs it
    is the shortest and the first. None if all sums are negative."""
    best, best_sum = None, 0.0
    start, total = 0, 0.0
    for word in range(min(masses, default=0), max(masses, default=-1) + 1):
        if total <= 0:
            start, total = word, 0.0
        total += masses.get(word, 0.0) - 0.5
        if owners.get(word, region) != region:
            total = 0.0
        elif total > best_sum:
            best, best_sum = range(start, word + 1), total
    return best
