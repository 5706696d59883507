"""Compare the numbers and names of a text with those of its translation."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from service.numbers.named_dates import NamedDate, named_dates
from service.numbers.number_forms import HALF_DAY, MAX_SYMBOL, SPACES, NumberForms, forms_of
from service.numbers.number_words import number_words
from service.numbers.numerals import Values
from service.numbers.verified_spans import EXPONENTS, VerifiedSpan, narrow, verified_spans, with_days, with_hyphens
from service.text.scripts import LETTER
from service.text.spans import overlapping

_WORDS = re.compile(r"[^\W\d_]+|[%°′″]")  # noqa: RUF001
_LATIN_WORDS = re.compile(r"[a-z]+(?:[²³]|[23](?!\w))?(?:/[a-z]+[²³]?)?|[%°′″]")  # noqa: RUF001
_BESIDE = re.compile(r"[^\w,;]{0,3}")
"""The text between two numbers of which one was made of the other."""
_GLUED = re.compile(rf"(?:(?!fach|mal){LETTER}){{4}}")
"""Letters that touch a number and make it part of a word: 1ommande."""
_LAST_WORD = re.compile(r"([^\W\d_]+)\.?[ \u00a0\u202f]$")
MIN_DIGITS = 3
"""A number with as many digits, without zeros at the ends, is hardly a word of the source."""
MAX_DISTANCE = 30
"""Maximum number of characters between the parts of a date or a time."""


@dataclass(frozen=True)
class Comparison:
    """What a translation lost and what it invented.

    Attributes:
        wanted: the verified spans of the source.
        lost: spans of `wanted` that the translation lacks.
        left: all other numbers of the translation.
        invented: numbers of `left` that the words of the source hardly explain.
        without_unit: spans of `wanted` whose unit the translation lacks.
        as_words: small numbers of `wanted` that the translation lacks, or has as words that are not known here.
    """

    wanted: list[VerifiedSpan]
    lost: list[VerifiedSpan]
    left: list[str]
    invented: list[str]
    without_unit: list[VerifiedSpan] = field(default_factory=list)
    as_words: list[VerifiedSpan] = field(default_factory=list)

    @property
    def is_right(self) -> bool:
        return not self.lost and not self.invented

    @property
    def n_wrong(self) -> int:
        return len(self.lost) + len(self.left)


NOTHING = Comparison([], [], [], [])


def compare(source: str, target: str, source_language: str, target_language: str) -> Comparison:
    """Compare a text with its translation."""
    source, forms = narrow(source), forms_of(source_language)
    spans = with_days(verified_spans(source, forms), source, forms)
    wanted = [span for span in spans if not span.is_word]
    if not wanted:
        return NOTHING
    return _Matching(wanted, source, narrow(target), forms, forms_of(target_language)).compare()


class _Matching:
    def __init__(
        self, wanted: list[VerifiedSpan], source: str, target: str, source_forms: NumberForms, target_forms: NumberForms
    ) -> None:
        self._wanted, self._source, self._target = wanted, source, target
        self._source_forms, self._forms = source_forms, target_forms
        self._spans = [span for span in verified_spans(target, target_forms) if not _GLUED.match(target, span.span.end)]
        self._parts = [(span, values) for span in self._spans for values in span.parts]
        self._free = [*range(len(self._parts))]
        self._chunks = {chunk for span in self._spans for chunk in span.chunks}
        self._words = frozenset(_WORDS.findall(target.casefold()))
        self._latin_words = frozenset(word.translate(EXPONENTS) for word in _LATIN_WORDS.findall(target.casefold()))
        self._has_day_period = source_forms.has_day_period(source) or target_forms.has_day_period(target)

    def compare(self) -> Comparison:
        ranked = sorted(self._wanted, key=lambda span: (span.may_be_word, -len(span.text)))
        missing = [span for span in ranked if not self._takes(span)]
        as_words = [span for span in missing if span.may_be_word]
        lost = [span for span in missing if not span.may_be_word]
        if self._new_words is not None:
            lost, as_words = lost + [span for span in as_words if not self._takes_word(span, span.text)], []
        left = [self._parts[i] for i in self._free if not self._is_explained(*self._parts[i])]
        invented = [part for part in left if lost or self._is_invented(*part)]
        doubled = [*self._doubled(), *self._invented_words()]
        left_shown, invented_shown = ([min(values) for _, values in parts] + doubled for parts in (left, invented))
        without_unit = [span for span in self._wanted if not self._has_unit(span)]
        return Comparison(self._wanted, lost, left_shown, invented_shown, without_unit, as_words)

    @cached_property
    def _new_words(self) -> Counter[int] | None:
        """The words for numbers that the translation has beyond those of the source, by their numbers; None if the
        words of its language are not known."""
        words = number_words(self._target, self._forms.language)
        return words - (self._source_words or Counter()) if words is not None else None

    @cached_property
    def _new_cardinals(self) -> Counter[int]:
        words = number_words(self._target, self._forms.language, only_cardinal=True) or Counter()
        return words - (self._source_words or Counter())

    @cached_property
    def _source_words(self) -> Counter[int] | None:
        return number_words(self._source, self._source_forms.language)

    def _takes_word(self, span: VerifiedSpan, number: str) -> bool:
        """Find the word for a small number. An added article is a word for 1. An ordinal number is a word for a number
        behind another word, as in World War 2, or with an ending, as in 2nd."""
        before, after = self._source[: span.span.start].strip(), self._source[span.span.end : span.span.end + 1]
        words = self._new_words if before or re.match(rf"{LETTER}|\.", after) else self._new_cardinals
        assert words is not None, "the words of the language are known"
        words[int(number)] -= 1
        return words[int(number)] >= 0

    def _invented_words(self) -> Iterator[str]:
        """Yield numbers that the translation has as words, and the source, which has numbers in digits alone, lacks."""
        words = number_words(self._target, self._forms.language, only_cardinal=True)
        if words and self._has_digits_alone and not self._forms.is_unspaced:
            known = {value for span in self._wanted for part in span.parts for value in part}
            yield from (str(number) for number in words if number > 1 and str(number) not in known)

    @cached_property
    def _has_digits_alone(self) -> bool:
        """Whether no word of the source may be a number, beside an article."""
        return self._source_words is not None and not self._source_words.keys() - {1}

    def _takes(self, span: VerifiedSpan) -> bool:
        """Find a verified span in the translation, and take its numbers from those that are free."""
        if span.kind in ("name", "letter"):
            return _count(span.text, self._target) >= _count(span.text, self._source)
        if span.kind == "roman":
            is_word = self._new_words is not None and self._takes_word(span, min(span.parts[0]))
            return is_word or self._takes_parts(span)
        if span.kind == "code" and with_hyphens(span.text) not in with_hyphens(self._target):
            return False
        if span.kind == "time" and self._is_time_of_another_language(span):
            return False
        if span.kind == "number" and not self._chunks.issuperset(span.padded):
            return False
        return self._takes_parts(span) and self._has_sign(span) and self._has_unit(span) and self._has_minus(span)

    def _is_time_of_another_language(self, span: VerifiedSpan) -> bool:
        written = (other.text for other in self._spans if other.kind == "time" and other.chunks == span.chunks)
        return not self._forms.has_hours_with_h and any("h" in text for text in written)

    def _takes_named(self, wanted: NamedDate, span: VerifiedSpan) -> bool:
        """Find a day with the name of its month: in a form of its language, in digits, or with its month shared by
        several days, as in 3 to 5 May."""
        for day in self._days.get((wanted.month, wanted.day), ()):
            places = [i for i in self._free if overlapping([day.span], self._parts[i][0].span) == (0, 1)]
            if places and wanted.year in (None, day.year):
                self._free = [i for i in self._free if i not in places]
                return True
        names_month = not self._forms.months[wanted.month - 1].isdisjoint(self._words)
        are_digits_enough = names_month or self._forms.locale is None
        places = self._places_of(replace(span, parts=span.parts[1:]) if are_digits_enough else span)
        others = [day.span for days in self._days.values() for day in days]
        in_other = any(overlapping([other], self._parts[i][0].span) == (0, 1) for other in others for i in places)
        if places and not in_other and not any(self._is_behind_month(self._parts[i][0].span.start) for i in places):
            self._free = [i for i in self._free if i not in places]
            return True
        return names_month and self._new_words is not None and self._new_words[wanted.day] > 0

    @cached_property
    def _days(self) -> dict[tuple[int, int], list[NamedDate]]:
        """The days of the translation that have the name of their month, by month and day."""
        days: dict[tuple[int, int], list[NamedDate]] = {}
        for day in named_dates(self._target, self._forms.language):
            days.setdefault((day.month, day.day), []).append(day)
        return days

    def _is_behind_month(self, position: int) -> bool:
        """Return whether the name of a month stands right before a place of the translation."""
        before = _LAST_WORD.search(self._target, max(0, position - 30), position)
        return before is not None and any(before[1].casefold() in names for names in self._forms.months)

    def _takes_parts(self, span: VerifiedSpan) -> bool:
        if span.named is not None:
            return self._takes_named(span.named, span)
        alike = [
            other for other in self._spans if len(other.chunks) == len(span.chunks) > 1 and other.kind != "numeral"
        ]
        if span.kind == "date" and any(other.kind == "number" and other.chunks == span.chunks for other in alike):
            return False  # 12,05,2024
        for other in alike:  # the same digits between other signs
            places = [i for i in self._free if self._parts[i][0] is other]
            if len(places) == len(other.parts) and self._are_same(span, other):
                self._free = [i for i in self._free if i not in places]
                return True
        places = self._places_of(span)
        self._free = [i for i in self._free if i not in places] if places else self._free
        return bool(places)

    def _places_of(self, span: VerifiedSpan) -> list[int]:
        """Return the free places of the parts of a span, which are near each other; none if a part is missing."""
        for first in self._places(span, 0, span.parts[0]):
            near, taken = self._parts[first][0].span.start, [first]
            for number, values in enumerate(span.parts[1:], 1):
                free = (i for i in self._places(span, number, values) if i not in taken)
                ordered = (
                    i for i in free if i > taken[-1] or span.kind != "number"
                )  # groups of digits keep their order
                place = next((i for i in ordered if abs(self._parts[i][0].span.start - near) <= MAX_DISTANCE), None)
                if place is not None:
                    taken.append(place)
                elif not self._may_lack(span, number, values):
                    break
            else:
                return taken
        if len(span.parts) > 1 and self._may_lack(span, 0, span.parts[0]):  # a date that begins with its month
            return self._places_of(replace(span, parts=span.parts[1:]))
        return []

    def _are_same(self, span: VerifiedSpan, other: VerifiedSpan) -> bool:
        (first, *rest), (other_first, *other_rest) = span.chunks, other.chunks
        is_other_half = self._has_day_period and other.kind == "time" and abs(int(first) - int(other_first)) == HALF_DAY
        return rest == other_rest and (int(first) == int(other_first) or is_other_half)

    def _places(self, span: VerifiedSpan, number: int, values: Values) -> Iterator[int]:
        hours = Values()
        if self._has_day_period and number == 0 and (span.kind == "time" or span.text.isdecimal()):
            hours = Values(str(int(hour) + by) for hour in values for by in (-HALF_DAY, HALF_DAY))
        for wanted in (values, hours):
            yield from (i for i in self._free if self._parts[i][1] & wanted)

    def _may_lack(self, span: VerifiedSpan, number: int, values: Values) -> bool:
        """Return whether a part is the minutes of a full hour, or a month that the translation names."""
        if span.kind == "time":
            return number == 1 == len(span.parts) - 1 and values == {"00"}
        month = int(min(values)) if span.kind == "date" and span.named is None else 0
        return 1 <= month <= len(self._forms.months) and not self._forms.months[month - 1].isdisjoint(self._words)

    def _has_sign(self, span: VerifiedSpan) -> bool:
        if not span.sign:
            return True
        has_all = self._target.count(span.sign) >= sum(other.sign == span.sign for other in self._wanted)
        is_behind = re.search(rf"\d[{SPACES}]?{re.escape(span.sign)}", self._target) is not None  # 5 and 6 €
        return has_all or is_behind or self._has_word(self._forms.names_of_currency(span.sign))

    def _has_minus(self, span: VerifiedSpan) -> bool:
        return not span.minus or any(other.minus and other.text[-1] == span.text[-1] for other in self._spans)

    def _has_unit(self, span: VerifiedSpan) -> bool:
        names = self._source_forms.units.get(span.unit, set())
        beginnings = {span.unit.casefold()}.union(*map(self._forms.names_of_unit, names))
        return not names or self._has_word(beginnings)

    def _has_word(self, beginnings: set[str]) -> bool:
        if not beginnings.isdisjoint(self._words | self._latin_words):
            return True
        long = tuple(beginning for beginning in beginnings if len(beginning) > MAX_SYMBOL)
        is_inside = self._forms.is_unspaced and any(
            start in self._target for start in beginnings if not start.isascii()
        )
        return is_inside or any(word.startswith(long) for word in self._words)

    def _is_explained(self, span: VerifiedSpan, values: Values) -> bool:
        """Return whether a number may be a word of the source, such as the name of a month, or is the minutes of a
        full hour."""
        if span.kind == "time" and values == {"00"}:
            return True
        month = int(min(values)) if span.kind == "date" and "月" in span.text else 0
        names = tuple(self._source_forms.months[month - 1]) if 1 <= month <= len(self._source_forms.months) else ()
        return span.is_word or any(word.startswith(names) for word in _WORDS.findall(self._source.casefold()))

    def _is_invented(self, span: VerifiedSpan, values: Values) -> bool:
        """Return whether no word of the source explains a number, because the source has none, the number is long, or
        it was made of another number: the same again, a part of it, beside it, or the rest of a taken number."""
        if self._has_digits_alone and "1" not in values:  # 1 may be an article: twice a day, 1日2回
            return True
        digits = min(values).replace(".", "")
        sources = ["".join(wanted.chunks) for wanted in self._wanted]
        is_part = any(digits in source for source in sources)
        is_same = any(values & part for wanted in self._wanted for part in wanted.parts)
        is_rest = len(span.parts) > sum(self._parts[i][0] is span for i in self._free)
        return is_rest or is_same or is_part or len(digits.strip("0")) >= MIN_DIGITS or self._touches_number(span)

    def _touches_number(self, span: VerifiedSpan) -> bool:
        return any(
            _BESIDE.fullmatch(self._target, left.span.end, right.span.start) is not None
            for other in self._spans
            for left, right in ((span, other), (other, span))
            if left.span.end <= right.span.start
        )

    def _doubled(self) -> Iterator[str]:
        for sign in {span.sign for span in self._wanted} - {""}:
            yield from sign * max(0, self._target.count(sign) - self._source.count(sign))
        for name in {span.text for span in self._wanted if span.kind == "name"}:
            yield from [name] * max(0, _count(name, self._target) - _count(name, self._source))
        for day in (day for days in self._days.values() for day in days):
            yield from [str(day.month)] * self._is_behind_month(day.span.start)


def _count(name: str, text: str) -> int:
    return len(re.findall(rf"(?<![A-Za-z0-9]){name}(?![A-Za-z0-9])", text))
