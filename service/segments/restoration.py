"""Puts placeholders back into a translation, each exactly once.

One whose slot came out takes the place of the slot's token. For one without, the original goes before the word that is
aligned to it, or in the place of the word that is its translation.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise, takewhile

import numpy as np

from service.segments.icu_messages import has_icu_messages
from service.segments.kept_spans import kept_spans
from service.segments.placeholders import Placeholder, Protected, is_letter
from service.segments.shortcuts import place_of, sign_of
from service.text.aligned_words import AlignedWords, Mass, core, opens
from service.text.scripts import is_unspaced
from service.text.sentences import FIRST, Before
from service.text.spans import Edits, Span, edited, overlapping

Copies = Sequence[tuple[Span, Span]]
"""Spans of a source text, in order, that a translation has unchanged, or as a glossary says, and where it has them."""


@dataclass(frozen=True)
class Restored:
    """A translation with the placeholders where their stand-ins were."""

    text: str
    edits: Edits
    """The edits from the translation as the model wrote it to this one."""
    copies: Copies
    """Spans of the original text that are in this text as they were, or as a glossary says, in the order of the
    original, and where."""
    align_words: Callable[[], list[AlignedWords]]
    """The words of the original text and of this one; a placeholder is aligned to itself alone. Only formats such as
    HTML need them."""


@dataclass(frozen=True)
class _Edit:
    """A span of the translation, and the placeholder that replaces it."""

    span: Span
    text: str
    placeholder: int


def restore(
    protected: Protected,
    translated: str,
    slots: Mapping[int, Span],
    aligned_words: Iterable[AlignedWords] = (),
    before: Before = FIRST,
) -> Restored:
    """Put every placeholder back.

    Args:
        slots: where in the translation the slots of placeholders are, by their numbers.
        aligned_words: of the protected text and of its translation, one for each sentence, in order.
        before: what comes before a piece of a text.
    """
    sentences = [one for one in aligned_words if one.source and one.target]
    return _Restoration(protected, translated, slots, sentences, before).restored()


def untranslated(protected: Protected) -> Restored:
    """Return the original, with the glossary's terms in it, as a translation of the protected text."""
    original = protected.original
    changes = [(one.span, one.written) for one in protected.placeholders if one.written != one.span.of(original)]
    text, moves = edited(original, changes)
    ends = pairwise([0, *(position for span, _ in changes for position in span.pair), len(original)])
    pieces = [Span(*piece) for piece in ends if piece[0] < piece[1]]
    edits = Edits(protected.edits.new, tuple(map(moves.after, protected.edits.old)))
    return Restored(text, edits, [(piece, moves.after(piece)) for piece in pieces], list)


class _Restoration:
    def __init__(
        self,
        protected: Protected,
        translated: str,
        slots: Mapping[int, Span],
        sentences: list[AlignedWords],
        before: Before,
    ) -> None:
        self._protected, self._translated, self._sentences, self._before_it = protected, translated, sentences, before
        self._slots = slots
        self._written = [
            one.written if one.reads != "shortcut" else sign_of(one.written) for one in protected.placeholders
        ]
        self._places = [one.place for one in protected.placeholders]
        self._sentence_of = [self._sentence(placeholder) for placeholder in protected.placeholders]
        # Nothing is put into what looks as if it had to be kept whole.
        strange = kept_spans(translated) if len(slots) < len(protected.placeholders) else []
        self._taken = sorted([*slots.values(), *(kept.span for kept in strange)], key=lambda span: span.pair)
        shown, written = ([i for i, c in enumerate(one) if c == "\n"] for one in (protected.text, translated))
        self._line_ends = dict(zip(shown, written, strict=True)) if len(shown) == len(written) else {}
        """No model writes any, so that those of a translation are those of the text."""
        self._put_at: set[int] = set()
        """Points where something was put."""

    def restored(self) -> Restored:
        edits = [
            self._in_place(self._slots[i], i) if i in self._slots else self._put(i) for i in range(len(self._written))
        ]
        edits = self._spaced(_apart(sorted(edits, key=lambda edit: edit.span.pair)))
        if has_icu_messages(self._protected.original):
            edits = [self._unquoted(edit) for edit in edits]
        text, moves = edited(self._translated, [(edit.span, edit.text) for edit in edits])
        places = {}
        for edit, new in zip(edits, moves.new, strict=True):
            written = self._written[edit.placeholder]
            start = new.start + edit.text.index(written)
            places[edit.placeholder] = Span(start, start + len(written))
        copies = [(one.span, places[i]) for i, one in enumerate(self._protected.placeholders)]
        return Restored(text, moves, copies, partial(self._words, moves, copies))

    def _sentence(self, placeholder: Placeholder) -> int | None:
        """Return the number of the sentence that has the stand-in among its words."""
        n = bisect_right(self._sentences, placeholder.place.start, key=lambda sentence: sentence.source[-1].end)
        if n == len(self._sentences):
            return None
        first, last = overlapping(self._sentences[n].source, placeholder.place)
        return n if first < last else None

    def _attention(self, i: int) -> Mass:
        n = self._sentence_of[i]
        return np.zeros(0) if n is None else self._sentences[n].on(self._protected.placeholders[i].place)

    def _put(self, i: int) -> _Edit:
        """A placeholder without a slot in the translation.

        It takes the place of the word that is the translation of its stand-in, or goes before the word that is aligned
        to it at least a little, or to the end.
        """
        if not self._protected.placeholders[i].stand_in:
            return self._symbol(i)
        attention = self._attention(i)
        words = self._target_words(i)
        for row in np.argsort(-attention, kind="stable").tolist():
            word = words[row]
            if word is None or attention[row] < MIN_ATTENTION:
                continue
            first, after = overlapping(self._taken, word)
            if first == after and attention[row] > 0.5:
                insort(self._taken, word, key=lambda span: span.pair)
                return _Edit(word, self._written[i], i)
            if first == after:
                return self._before(word.start, i)
        last = next((word.end for word in reversed(words) if word is not None), len(self._translated.rstrip()))
        first, after = overlapping(self._taken, Span(last, last))
        return self._after(self._taken[first].end if first < after else last, i)

    def _symbol(self, i: int) -> _Edit:
        """The model was not shown it: inside a sentence it goes to the translation of the word that it touches or else
        of the word before it, as close as it was, and outside to where it was."""
        placeholder, n = self._protected.placeholders[i], self._home(i)
        around = self._protected.original
        if placeholder.reads == "shortcut":
            return self._shortcut(i)
        if placeholder.reads == "break" and placeholder.place.start in self._line_ends:
            start = self._line_ends[placeholder.place.start]
            return _Edit(Span(start, start + 1), self._written[i], i)
        if n is None:
            point, end = self._between(placeholder.place.start), self._between(placeholder.place.end)
            out, inside = placeholder.taken_out, placeholder.span
            left, right = around[out.start : inside.start], around[inside.end : out.end]
            taken_out, (before, _) = f"{left}{placeholder.written}{right}", self._around(point, end)
            return _Edit(Span(point, end), taken_out.lstrip(" ") if is_unspaced(before) else taken_out, i)
        sentence = self._sentences[n]
        touches_next = around[placeholder.span.end : placeholder.span.end + 1].isalnum()
        space = around[placeholder.span.start - 1 : placeholder.span.start].isspace()
        following = bisect_left(sentence.source, placeholder.place.end, key=lambda span: span.start)
        if touches_next and space and following < len(sentence.source):
            point = sentence.target[int(sentence.mass[:, following].argmax())].start
            return _Edit(Span(point, point), self._written[i], i)
        word = bisect_right(sentence.source, placeholder.place.start, key=lambda span: span.end)
        if word < len(sentence.source) and sentence.source[word].start < placeholder.place.start:
            opened = self._opened(sentence.target[int(sentence.mass[:, word].argmax())])
            if opened is not None:
                return self._inserted(opened, i, space_before=False, space_after=False)
        point = sentence.target[int(sentence.mass[:, max(0, word - 1)].argmax())].end
        _, after = self._around(point, point)
        return self._inserted(point, i, space_before=space, space_after=after.isalnum() and not touches_next)

    def _opened(self, word: Span) -> int | None:
        """Return the position behind the opening punctuation of a word; None if it opens nothing."""
        marks = [*takewhile(opens, word.of(self._translated))]
        return word.start + len(marks) if marks else None

    def _shortcut(self, i: int) -> _Edit:
        """A shortcut's mark goes before a letter of its sentence, best of the translation of its word, or behind the
        sentence if its letters are on no keyboard."""
        original, span = self._protected.original, self._protected.placeholders[i].span
        position = self._protected.placeholders[i].place.start
        n = bisect_left(self._sentences, position, key=lambda sentence: sentence.source[-1].end)
        words: list[Span] = [Span(0, len(self._translated))]
        if n < len(self._sentences):
            sentence = self._sentences[n]
            word = bisect_right(sentence.source, position, key=lambda span: span.end)
            mass = sentence.mass[:, word] if word < len(sentence.source) else np.zeros(len(sentence.target))
            words = [sentence.target[row] for row in np.argsort(-mass, kind="stable").tolist()]
        free = [word for word in words if len(set(overlapping(self._taken, word))) == 1]
        letters = [at for word in free for at in range(*word.pair) if self._translated[at].isalnum()]
        key = next(filter(str.isalnum, span.of(original) + original[span.end :]))
        point, text = place_of(self._translated, letters, key), self._written[i]
        if point is None:
            point, text = max(word.end for word in words), span.of(original)
        elif is_unspaced(self._translated[point]):
            point, text = max(letters) + 1, f"({text}{key.upper()})"
        return _Edit(Span(point, point), text, i)

    def _between(self, position: int) -> int:
        """Map a position between two sentences to the translation: what is between them is the same in both."""
        n = bisect_right(self._sentences, position, key=lambda sentence: sentence.source[-1].end)
        end = self._sentences[n].target[0].start if n < len(self._sentences) else len(self._translated)
        if n == 0:
            return min(position, end)
        before = self._sentences[n - 1]
        return min(before.target[-1].end + position - before.source[-1].end, end)

    def _target_words(self, i: int) -> list[Span | None]:
        n = self._sentence_of[i]
        return [] if n is None else [core(self._translated, word) for word in self._sentences[n].target]

    def _in_place(self, slot: Span, i: int) -> _Edit:
        """Replace a slot, and the spaces beside it where the source has none."""
        start, end = slot.pair
        before, after = self._around(start, end)
        touches_before, touches_after = self._touches(i)
        if before == " " and touches_before and not self._around(start - 1, start)[0].isalnum():
            start -= 1
        if after == " " and touches_after:
            end += 1
        return _Edit(Span(start, end), " " * is_letter(before) + self._written[i], i)

    def _touches(self, i: int) -> tuple[bool, bool]:
        """Whether something that is no white space stands right before a placeholder, and a letter right behind it;
        where words have spaces between them."""
        span, original = self._protected.placeholders[i].span, self._protected.original
        before, after = original[max(0, span.start - 1) : span.start], original[span.end : span.end + 1]
        before = before or self._before_it.source
        return before != "" and not before.isspace() and not is_unspaced(before), is_letter(after)

    def _before(self, point: int, i: int) -> _Edit:
        before, _ = self._around(point, point)
        touches = before != "" and not before.isspace() and before not in OPENING
        return self._inserted(point, i, space_before=touches, space_after=True)

    def _after(self, point: int, i: int) -> _Edit:
        _, after = self._around(point, point)
        is_first = point == 0 and point not in self._put_at
        return self._inserted(point, i, space_before=not is_first, space_after=after.isalnum())

    def _inserted(self, point: int, i: int, space_before: bool, space_after: bool) -> _Edit:
        """Insert a placeholder between spaces, but not beside Japanese; `_spaced` parts two at one point."""
        before, after = self._around(point, point)
        if is_unspaced(before) or (point in self._put_at and is_unspaced(after)):
            space_before = False
        spaces = " " * space_before, " " * (space_after and not is_unspaced(after))
        self._put_at.add(point)
        return _Edit(Span(point, point), self._written[i].join(spaces), i)

    def _spaced(self, edits: list[_Edit]) -> list[_Edit]:
        """Put a space between placeholders that would touch because one was put there: "{a}{b}" is read as one."""

        def touch(left: _Edit, right: _Edit) -> bool:
            is_put = left.span.start == left.span.end or right.span.start == right.span.end
            is_between = left.span.end != right.span.start or left.text.endswith(" ") or right.text.startswith(" ")
            return is_put and not is_between and self._is_shown(left) and self._is_shown(right)

        followers = (
            replace(edit, text=f" {edit.text}") if touch(last, edit) else edit for last, edit in pairwise(edits)
        )
        return [*edits[:1], *followers]

    def _unquoted(self, edit: _Edit) -> _Edit:
        """Double an apostrophe before a brace, which it would quote in an ICU message."""
        before, _ = self._around(edit.span.start, edit.span.end)
        return replace(edit, text=f"'{edit.text}") if before == "'" and edit.text[:1] in ("{", "}", "#") else edit

    def _is_shown(self, edit: _Edit) -> bool:
        """Whether the model was shown a stand-in for the placeholder."""
        return self._protected.placeholders[edit.placeholder].stand_in != ""

    def _around(self, start: int, end: int) -> tuple[str, str]:
        before = self._translated[max(0, start - 1) : start] if start > 0 else self._before_it.target
        return before, self._translated[end : end + 1]

    def _words(self, moves: Edits, copies: list[tuple[Span, Span]]) -> list[AlignedWords]:
        """Align the words of the original and of this text; a placeholder is a word that is aligned to itself alone."""
        homes = [self._home(i) for i in range(len(copies))]
        copied = sorted((place for _, place in copies), key=lambda place: place.pair)
        words = []
        for n, sentence in enumerate(self._sentences):
            own = [i for i, home in enumerate(homes) if home == n]
            symbols = [i for i in own if not self._protected.placeholders[i].stand_in]
            source = [self._source_word(word) for word in sentence.source] + [copies[i][0] for i in symbols]
            rows = []
            for word, row in zip(sentence.target, sentence.mass, strict=True):
                place = moves.after(word)
                first, last = overlapping(copied, place)
                if first == last and place.start < place.end:
                    rows.append((place, np.pad(row, (0, len(symbols)))))
            for i in own:
                first, last = overlapping(sentence.source, self._protected.placeholders[i].place)
                if i in symbols:
                    first = len(sentence.source) + symbols.index(i)
                    last = first + 1
                row = np.zeros(len(source), sentence.mass.dtype)
                row[first:last] = 1 / (last - first)
                rows.append((copies[i][1], row))
            rows.sort(key=lambda item: item[0].pair)
            order = sorted(range(len(source)), key=lambda column: source[column].pair)
            mass = np.array([row for _, row in rows]).reshape(len(rows), len(source))[:, order]
            words.append(AlignedWords([source[column] for column in order], [place for place, _ in rows], mass))
        alone = [copy for copy, home in zip(copies, homes, strict=True) if home is None]
        return words + [AlignedWords([span], [place], np.ones((1, 1))) for span, place in alone]

    def _home(self, i: int) -> int | None:
        """Return the number of the sentence that a placeholder is in."""
        placeholder = self._protected.placeholders[i]
        if placeholder.stand_in:
            return self._sentence_of[i]
        position = placeholder.place.start
        n = bisect_right(self._sentences, position, key=lambda sentence: sentence.source[-1].end)
        return n if n < len(self._sentences) and self._sentences[n].source[0].start < position else None

    def _source_word(self, word: Span) -> Span:
        """Map a word of the protected text to the original; to all of a placeholder, if its stand-in is in the word."""
        first, last = overlapping(self._places, word)
        return self._protected.placeholders[first].span if first < last else self._protected.edits.before(word)


OPENING = "([{«“¿¡"

MIN_ATTENTION = 0.2
"""Less attention says nothing of where a word belongs."""


def _apart(edits: list[_Edit]) -> list[_Edit]:
    """Trim edits that overlap: two placeholders may share the space between them."""
    apart: list[_Edit] = []
    end = 0
    for edit in edits:
        start = max(edit.span.start, end)
        end = max(edit.span.end, start)
        apart.append(replace(edit, span=Span(start, end)))
    return apart
