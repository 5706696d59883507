"""Put placeholders back into a translation, each exactly once.

A placeholder whose slot is in the translation replaces the token of the slot. Any other placeholder goes before the
word that is aligned to it, or replaces the word that translates its stand-in.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise, takewhile

import numpy as np

from service.kept.icu_messages import has_icu_messages
from service.kept.kept_spans import kept_spans
from service.kept.placeholders import Placeholder, Protected, is_letter
from service.kept.shortcuts import place_of, sign_of
from service.text.aligned_words import AlignedWords, core, opens
from service.text.scripts import end_of_unspaced_word, is_unspaced
from service.text.sentences import NOTHING_BEFORE, Before
from service.text.spans import Edits, Span, overlapping, replace_spans

Copies = Sequence[tuple[Span, Span]]
"""Spans of a source text, in order, and their places in the translation, unchanged or as a glossary's terms."""


@dataclass(frozen=True)
class Restored:
    """A translation in which placeholders have replaced their stand-ins."""

    text: str
    edits: Edits
    """The edits from the model's translation to this text."""
    copies: Copies
    """Kept spans of the original text in order, and their places in this text."""
    align_words: Callable[[], list[AlignedWords]]
    """Returns the aligned words of the original and of this text. A placeholder is aligned only to itself."""


@dataclass(frozen=True)
class _Edit:
    """A span of the translation, and the placeholder that replaces it; None for an edit beside a placeholder."""

    span: Span
    text: str
    placeholder: int | None


def restore(
    protected: Protected,
    translated: str,
    slots: Mapping[int, Span],
    aligned_words: Iterable[AlignedWords] = (),
    before: Before = NOTHING_BEFORE,
    starts: Sequence[int] = (),
    language: str = "",
    begun: int = 0,
) -> Restored:
    """Put every placeholder back.

    Args:
        slots: the places of slots in the translation, by the number of the placeholder.
        aligned_words: the words of the protected text and its translation, one entry for each sentence, in order.
        before: the characters before a piece of a text.
        language: the language of the translation.
        starts: the starts of the sentences of the translation that begin with a capital, in order.
        begun: the number of characters with which the translation must begin. Words are put back after them.
    """
    sentences = [words for words in aligned_words if words.source and words.target]
    return _Restoration(protected, translated, slots, sentences, before, starts, language, begun).restore()


def keep_original(protected: Protected) -> Restored:
    """Return the original, with the glossary's terms, as a translation of the protected text."""
    original = protected.original
    changes = []
    for placeholder in protected.placeholders:
        kept, at_start = placeholder.span.of(original), placeholder.at_start
        written = at_start if at_start is not None and kept[:1].isupper() else placeholder.written
        changes += [(placeholder.span, written)] if written != kept else []
    text, moves = replace_spans(original, changes)
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
        starts: Sequence[int],
        language: str,
        begun: int,
    ) -> None:
        self._protected, self._translated, self._sentences, self._before_it = protected, translated, sentences, before
        self._starts, self._language, self._slots = starts, language, slots
        self._written = [p.written if p.role != "shortcut" else sign_of(p.written) for p in protected.placeholders]
        self._sentence_of = [self._sentence(placeholder) for placeholder in protected.placeholders]
        # Nothing is inserted into a span of the translation that looks like a kept one.
        strange = kept_spans(translated) if len(slots) < len(protected.placeholders) else []
        self._taken = sorted([*slots.values(), *(kept.span for kept in strange)], key=lambda span: span.pair)
        if begun:
            self._taken = [Span(0, begun), *(span for span in self._taken if span.start >= begun)]
        shown, written = ([i for i, c in enumerate(text) if c == "\n"] for text in (protected.text, translated))
        self._line_ends = dict(zip(shown, written, strict=True)) if len(shown) == len(written) else {}
        """The line ends of the translation by those of the text: models write none of their own."""
        self._put_at: set[int] = set()
        """Positions where a placeholder was inserted."""

    def restore(self) -> Restored:
        edits = [
            self._in_place(self._slots[i], i) if i in self._slots else self._put(i) for i in range(len(self._written))
        ]
        edits = [self._begin(edit) for edit in sorted(edits, key=lambda edit: edit.span.pair)]
        edits = self._separate(_trim_overlaps(edits))
        if self._language == "fr":
            edits = sorted([*edits, *self._unelided(edits)], key=lambda edit: edit.span.pair)
        if has_icu_messages(self._protected.original):
            unelided = {edit.span.end for edit in edits if edit.placeholder is None}
            edits = [edit if edit.span.start in unelided else self._double_quote(edit) for edit in edits]
        text, moves = replace_spans(self._translated, [(edit.span, edit.text) for edit in edits])
        places = {}
        for edit, new in zip(edits, moves.new, strict=True):
            if edit.placeholder is not None:
                written = self._written[edit.placeholder]
                start = new.start + edit.text.index(written)
                places[edit.placeholder] = Span(start, start + len(written))
        copies = [(placeholder.span, places[i]) for i, placeholder in enumerate(self._protected.placeholders)]
        return Restored(text, moves, copies, partial(self._words, moves, copies))

    def _begin(self, edit: _Edit) -> _Edit:
        assert edit.placeholder is not None, "elided words are mended later"
        at_start, written = self._protected.placeholders[edit.placeholder].at_start, self._written[edit.placeholder]
        n = bisect_right(self._starts, edit.span.start)
        if n == 0 or at_start is None or any(map(str.isalnum, self._translated[self._starts[n - 1] : edit.span.start])):
            return edit
        self._written[edit.placeholder] = at_start
        return replace(edit, text=edit.text.replace(written, at_start))

    def _sentence(self, placeholder: Placeholder) -> int | None:
        n = bisect_right(self._sentences, placeholder.place.start, key=lambda sentence: sentence.source[-1].end)
        if n == len(self._sentences):
            return None
        first, last = overlapping(self._sentences[n].source, placeholder.place)
        return n if first < last else None

    def _put(self, i: int) -> _Edit:
        """Place a placeholder whose slot is not in the translation. It replaces the word that translates its stand-in.
        Otherwise it goes before the word with most attention on it, if that is enough, or to the end."""
        placeholder, n = self._protected.placeholders[i], self._sentence_of[i]
        if not placeholder.stand_in:
            return self._symbol(i)
        if placeholder.role == "sign" and (conjunction := self._conjunction(i)):
            insort(self._taken, conjunction, key=lambda span: span.pair)
            return _Edit(conjunction, self._written[i], i)
        attention = np.zeros(0) if n is None else self._sentences[n].on(placeholder.place)
        words = [] if n is None else [core(self._translated, word) for word in self._sentences[n].target]
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

    def _conjunction(self, i: int) -> Span | None:
        """Return the word for the sign "&" in the translation: the sign, or a short word with most attention on it."""
        placeholder, n = self._protected.placeholders[i], self._sentence_of[i]
        if n is None:
            return None
        target, mass = self._sentences[n].target, self._sentences[n].mass
        attention = self._sentences[n].on(placeholder.place)
        written = [word.of(self._translated) for word in target]
        free = [row for row, word in enumerate(target) if len(set(overlapping(self._taken, word))) == 1]
        same = [row for row in free if set(written[row]) <= set(placeholder.stand_in)]
        words = [row for row in free if written[row].isalpha() and len(written[row]) <= MAX_CONJUNCTION]
        short = [row for row in words if attention[row] >= mass[row].max()]
        best = max(same or short, key=lambda row: attention[row], default=None)
        return None if best is None else target[best]

    def _symbol(self, i: int) -> _Edit:
        """Place a symbol, which the model did not see. Inside a sentence it goes to the translation of the word that it
        touches, or of the word before it, at the same distance. Between sentences it keeps its place."""
        placeholder, n = self._protected.placeholders[i], self._home(i)
        around = self._protected.original
        if placeholder.role == "shortcut":
            return self._shortcut(i)
        if placeholder.role == "break" and placeholder.place.start in self._line_ends:
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
            place = sentence.target[int(sentence.mass[:, word].argmax())]
            if opening := [*takewhile(opens, place.of(self._translated))]:
                return self._insert(place.start + len(opening), i, space_before=False, space_after=False)
        point = sentence.target[int(sentence.mass[:, max(0, word - 1)].argmax())].end
        _, after = self._around(point, point)
        if touches_next and not space and after == " ":  # 10&nbsp;km
            return _Edit(Span(point, point + 1), self._written[i], i)
        return self._insert(point, i, space_before=space, space_after=after.isalnum() and not touches_next)

    def _shortcut(self, i: int) -> _Edit:
        """Place the mark of a shortcut: before a letter of its sentence, preferably in the translation of its word, or
        after the sentence if a keyboard has none of its letters."""
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
        """Map a position between two sentences to the translation: the text between sentences is the same in both."""
        n = bisect_right(self._sentences, position, key=lambda sentence: sentence.source[-1].end)
        end = self._sentences[n].target[0].start if n < len(self._sentences) else len(self._translated)
        if n == 0:
            return min(position, end)
        before = self._sentences[n - 1]
        return min(before.target[-1].end + position - before.source[-1].end, end)

    def _in_place(self, slot: Span, i: int) -> _Edit:
        """Replace a slot, the spaces beside it that the source does not have, and the ending of its word. The rest of a
        compound becomes a separate word."""
        start, end = slot.pair
        before, after = self._around(start, end)
        touches_before, touches_after = self._touches(i)
        last = self._around(start - 1, start)[0]
        n_before = self._protected.placeholders[i].span.start
        if before == " " and touches_before and last != "«":
            start -= not last.isalnum() or last == self._protected.original[n_before - 1 : n_before]
        if after == " " and touches_after:
            end += 1
        written = " " * is_letter(before) + self._written[i]
        end = end if touches_after else end_of_digits(self._translated, end)
        glued = 0 if touches_after else _letters_at(self._translated, end)
        if glued > MAX_ENDING:
            first = self._translated[end]
            return _Edit(Span(start, end + 1), f"{written} {first.upper() if self._language == 'de' else first}", i)
        return _Edit(Span(start, end + glued * (not self._is_possessive(i))), written, i)

    def _is_possessive(self, i: int) -> bool:
        end = self._protected.placeholders[i].span.end
        return self._protected.original[end : end + 1] in APOSTROPHES

    def _touches(self, i: int) -> tuple[bool, bool]:
        """Return whether a visible character stands right before a placeholder, and a letter right after it, in scripts
        with spaces between words."""
        span, original = self._protected.placeholders[i].span, self._protected.original
        before, after = original[max(0, span.start - 1) : span.start], original[span.end : span.end + 1]
        before = before or self._before_it.source
        touches_before = before != "" and not before.isspace() and not is_unspaced(before)
        return touches_before, after.isalnum() and not is_unspaced(after)

    def _before(self, point: int, i: int) -> _Edit:
        before, _ = self._around(point, point)
        touches = before != "" and not before.isspace() and before not in OPENING
        return self._insert(point, i, space_before=touches, space_after=True)

    def _after(self, point: int, i: int) -> _Edit:
        _, after = self._around(point, point)
        is_first = point == 0 and point not in self._put_at
        return self._insert(point, i, space_before=not is_first, space_after=after.isalnum())

    def _insert(self, point: int, i: int, space_before: bool, space_after: bool) -> _Edit:
        """Insert a placeholder between spaces, but not beside Japanese, nor in a word of it. `_separate` separates two
        at one position."""
        point = end_of_unspaced_word(self._translated, point)
        before, after = self._around(point, point)
        if before == " " or is_unspaced(before) or (point in self._put_at and is_unspaced(after)):
            space_before = False
        spaces = " " * space_before, " " * (space_after and after != " " and not is_unspaced(after))
        self._put_at.add(point)
        return _Edit(Span(point, point), self._written[i].join(spaces), i)

    def _separate(self, edits: list[_Edit]) -> list[_Edit]:
        """Separate placeholders that touch only because one was inserted: the model reads "{a}{b}" as one."""

        def touch(left: _Edit, right: _Edit) -> bool:
            is_put = left.span.start == left.span.end or right.span.start == right.span.end
            is_between = left.span.end != right.span.start or left.text.endswith(" ") or right.text.startswith(" ")
            return is_put and not is_between and self._is_shown(left) and self._is_shown(right)

        followers = (
            replace(edit, text=f" {edit.text}") if touch(last, edit) else edit for last, edit in pairwise(edits)
        )
        return [*edits[:1], *followers]

    def _unelided(self, edits: list[_Edit]) -> Iterator[_Edit]:
        """Yield edits that write "de" for "d'" before placeholders, or take the space behind "d'" before a vowel."""
        end = 0
        for edit in edits:
            elided = _ELIDED.search(self._translated, max(end, edit.span.start - 2), edit.span.start)
            if elided and edit.text[:1].strip() and self._is_shown(edit):
                if unicodedata.normalize("NFD", edit.text)[:1].lower() in VOWELS:
                    yield _Edit(Span(elided.start() + 1, edit.span.start), "", None)
                else:
                    yield _Edit(Span(elided.start(), elided.start() + 1), "e" if elided[1] else "e ", None)
            end = edit.span.end

    def _double_quote(self, edit: _Edit) -> _Edit:
        """Double an apostrophe before a brace, since it would quote the brace in an ICU message."""
        before, _ = self._around(edit.span.start, edit.span.end)
        return replace(edit, text=f"'{edit.text}") if before == "'" and edit.text[:1] in ("{", "}", "#") else edit

    def _is_shown(self, edit: _Edit) -> bool:
        return edit.placeholder is not None and self._protected.placeholders[edit.placeholder].stand_in != ""

    def _around(self, start: int, end: int) -> tuple[str, str]:
        before = self._translated[max(0, start - 1) : start] if start > 0 else self._before_it.target
        return before, self._translated[end : end + 1]

    def _words(self, moves: Edits, copies: list[tuple[Span, Span]]) -> list[AlignedWords]:
        homes = [self._home(i) for i in range(len(copies))]
        copied = sorted((place for _, place in copies), key=lambda place: place.pair)
        words = []
        for n, sentence in enumerate(self._sentences):
            inside = [i for i, home in enumerate(homes) if home == n]
            symbols = [i for i in inside if not self._protected.placeholders[i].stand_in]
            source = [self._source_word(word) for word in sentence.source] + [copies[i][0] for i in symbols]
            rows = []
            for word, row in zip(sentence.target, sentence.mass, strict=True):
                place = moves.after(word)
                first, last = overlapping(copied, place)
                if first == last and place.start < place.end:
                    rows.append((place, np.pad(row, (0, len(symbols)))))
            for i in inside:
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
        placeholder = self._protected.placeholders[i]
        if placeholder.stand_in:
            return self._sentence_of[i]
        position = placeholder.place.start
        n = bisect_right(self._sentences, position, key=lambda sentence: sentence.source[-1].end)
        return n if n < len(self._sentences) and self._sentences[n].source[0].start < position else None

    def _source_word(self, word: Span) -> Span:
        """Map a word of the protected text to the original; a word with a stand-in to the whole placeholder."""
        first, last = overlapping(self._protected.places, word)
        return self._protected.placeholders[first].span if first < last else self._protected.edits.before(word)


OPENING = "([{«“¿¡"
APOSTROPHES = tuple("'’")  # noqa: RUF001
VOWELS = tuple("aeiouyœæ")
_ELIDED = re.compile(r"(?:(?<=\b[cdjlmnst])|(?<=qu))['’](\s?)$", re.IGNORECASE)  # noqa: RUF001
"""The apostrophe of a French word that has lost its e."""
MAX_CONJUNCTION = 3
"""Maximum number of letters of a word for "&"."""
MAX_ENDING = 2
"""Letters after a slot that may be the ending of its word. More letters are another word."""
MIN_ATTENTION = 0.2
"""Attention below this does not show where a word belongs."""


def end_of_digits(text: str, position: int) -> int:
    """Return the end of the digits at a position: behind a slot they are noise."""
    return position + sum(1 for _ in takewhile(str.isdecimal, text[position : position + 40]))


def end_of_ending(text: str, position: int) -> int:
    """Return the end of the digits and of the ending behind a slot, which are not part of the translation."""
    end = end_of_digits(text, position)
    n_letters = _letters_at(text, end)
    return end + (n_letters if n_letters <= MAX_ENDING else 0)


def _letters_at(text: str, position: int) -> int:
    following = text[position : position + 40]
    return sum(1 for _ in takewhile(lambda character: character.isalpha() and is_letter(character), following))


def _trim_overlaps(edits: list[_Edit]) -> list[_Edit]:
    apart: list[_Edit] = []
    end = 0
    for edit in edits:
        start = max(edit.span.start, end)
        end = max(edit.span.end, start)
        apart.append(replace(edit, span=Span(start, end)))
    return apart
