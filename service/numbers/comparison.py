"""Compare the numbers and names of a text with those of its translation."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from service.numbers.number_forms import MAX_SYMBOL, NumberForms, forms_of
from service.numbers.number_words import number_words
from service.numbers.numerals import Values
from service.numbers.verified_spans import DASHES, VerifiedSpan, narrow, verified_spans
from service.text.scripts import LETTER

_WORDS = re.compile(r"[^\W\d_]+|[%°′″]")  # noqa: RUF001
_LATIN_WORDS = re.compile(r"[a-z]+[²³]?(?:/[a-z]+[²³]?)?|[%°′″]")  # noqa: RUF001
_DASH = re.compile(f"[{DASHES}]")
_BESIDE = re.compile(r"[^\w,;]{0,3}")
"""The text between two numbers of which one was made of the other."""
_GLUED = re.compile(rf"(?:(?!fach|mal){LETTER}){{4}}")
"""The letters of a word that a number touches, which is none then: 1ommande."""
MIN_DIGITS = 3
"""Number of digits, without zeros at the ends, from which a number is hardly a word of the source."""
HALF_DAY = 12
MAX_DISTANCE = 30
"""Maximum number of characters between the parts of a date or a time."""


@dataclass(frozen=True)
class Comparison:
    """What a translation lost and what it invented.

    Attributes:
        wanted: the verified spans of the source.
        lost: those that the translation lacks.
        left: all other numbers of the translation.
        invented: those of them that the words of the source hardly explain.
        without_unit: those of `wanted` whose unit the translation lacks.
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
    wanted = [one for one in verified_spans(source, forms) if not one.is_word]
    if not wanted:
        return NOTHING
    return _Matching(wanted, source, narrow(target), forms, forms_of(target_language)).compare()


class _Matching:
    """The search of each verified span in a translation."""

    def __init__(
        self, wanted: list[VerifiedSpan], source: str, target: str, source_forms: NumberForms, target_forms: NumberForms
    ) -> None:
        self._wanted, self._source, self._target = wanted, source, target
        self._source_forms, self._forms = source_forms, target_forms
        self._found = [one for one in verified_spans(target, target_forms) if not _GLUED.match(target, one.span.end)]
        self._parts = [(one, values) for one in self._found for values in one.parts]
        self._free = [*range(len(self._parts))]
        self._chunks = {chunk for one in self._found for chunk in one.chunks}
        self._words = frozenset(_WORDS.findall(target.casefold()))
        self._latin_words = frozenset(_LATIN_WORDS.findall(target.casefold()))
        self._has_day_period = source_forms.has_day_period(source) or target_forms.has_day_period(target)

    def compare(self) -> Comparison:
        ranked = sorted(self._wanted, key=lambda one: (one.may_be_word, -len(one.text)))
        missing = [one for one in ranked if not self._takes(one)]
        as_words = [one for one in missing if one.may_be_word]
        lost = [one for one in missing if not one.may_be_word]
        if self._new_words is not None:
            lost, as_words = lost + [one for one in as_words if not self._takes_word(one, one.text)], []
        left = [self._parts[i] for i in self._free if not self._is_explained(*self._parts[i])]
        invented = [part for part in left if lost or self._is_invented(*part)]
        doubled = [*self._doubled(), *self._invented_words()]
        left_shown, invented_shown = ([min(values) for _, values in parts] + doubled for parts in (left, invented))
        without_unit = [one for one in self._wanted if not self._has_unit(one)]
        return Comparison(self._wanted, lost, left_shown, invented_shown, without_unit, as_words)

    @cached_property
    def _new_words(self) -> Counter[int] | None:
        """The words for numbers that the translation has beyond those of the source, by their numbers; None if the
        words of its language are not known."""
        found = number_words(self._target, self._forms.language)
        return found - (self._source_words or Counter()) if found is not None else None

    @cached_property
    def _new_cardinals(self) -> Counter[int]:
        found = number_words(self._target, self._forms.language, only_cardinal=True) or Counter()
        return found - (self._source_words or Counter())

    @cached_property
    def _source_words(self) -> Counter[int] | None:
        return number_words(self._source, self._source_forms.language)

    def _takes_word(self, one: VerifiedSpan, number: str) -> bool:
        """Find the word for a small number. An article that the translation adds is one for 1; an ordinal number is one
        behind another word, as in World War 2, or with an ending, as in 2nd."""
        before, after = self._source[: one.span.start].strip(), self._source[one.span.end : one.span.end + 1]
        words = self._new_words if before or re.match(rf"{LETTER}|\.", after) else self._new_cardinals
        assert words is not None, "the words of the language are known"
        words[int(number)] -= 1
        return words[int(number)] >= 0

    def _invented_words(self) -> Iterator[str]:
        """Yield the words for numbers of the translation, if the source has numbers in digits alone, and not these."""
        words = number_words(self._target, self._forms.language, only_cardinal=True)
        if words and self._has_digits_alone and not self._forms.is_unspaced:
            known = {value for one in self._wanted for part in one.parts for value in part}
            yield from (str(number) for number in words if number > 1 and str(number) not in known)

    @cached_property
    def _has_digits_alone(self) -> bool:
        """Whether no word of the source may be a number, beside an article."""
        return self._source_words is not None and not self._source_words.keys() - {1}

    def _takes(self, one: VerifiedSpan) -> bool:
        """Find a verified span in the translation, and take its numbers from those that are free."""
        if one.kind in ("name", "letter"):
            return _count(one.text, self._target) >= _count(one.text, self._source)
        if one.kind == "roman":
            is_word = self._new_words is not None and self._takes_word(one, min(one.parts[0]))
            return is_word or self._takes_parts(one)
        if one.kind == "code" and _DASH.sub("-", one.text) not in _DASH.sub("-", self._target):
            return False
        if one.kind == "number" and not self._chunks.issuperset(one.padded):
            return False
        return self._takes_parts(one) and self._has_sign(one) and self._has_unit(one) and self._has_minus(one)

    def _takes_parts(self, one: VerifiedSpan) -> bool:
        alike = [other for other in self._found if len(other.chunks) == len(one.chunks) > 1 and other.kind != "numeral"]
        for other in alike:  # the same digits between other signs
            own = [i for i in self._free if self._parts[i][0] is other]
            if len(own) == len(other.parts) and self._are_same(one, other):
                self._free = [i for i in self._free if i not in own]
                return True
        places = self._places_of(one)
        self._free = [i for i in self._free if i not in places] if places else self._free
        return bool(places)

    def _places_of(self, one: VerifiedSpan) -> list[int]:
        """Return the free places of the parts of a span, which are near each other; none if a part is missing."""
        for first in self._places(one, 0, one.parts[0]):
            near, taken = self._parts[first][0].span.start, [first]
            for number, values in enumerate(one.parts[1:], 1):
                found = (i for i in self._places(one, number, values) if i not in taken)
                places = (
                    i for i in found if i > taken[-1] or one.kind != "number"
                )  # groups of digits keep their order
                place = next((i for i in places if abs(self._parts[i][0].span.start - near) <= MAX_DISTANCE), None)
                if place is not None:
                    taken.append(place)
                elif not self._may_lack(one, number, values):
                    break
            else:
                return taken
        if len(one.parts) > 1 and self._may_lack(one, 0, one.parts[0]):  # a date that begins with its month
            return self._places_of(replace(one, parts=one.parts[1:]))
        return []

    def _are_same(self, one: VerifiedSpan, other: VerifiedSpan) -> bool:
        (first, *rest), (other_first, *other_rest) = one.chunks, other.chunks
        is_other_half = self._has_day_period and other.kind == "time" and abs(int(first) - int(other_first)) == HALF_DAY
        return rest == other_rest and (int(first) == int(other_first) or is_other_half)

    def _places(self, one: VerifiedSpan, number: int, values: Values) -> Iterator[int]:
        """Yield the free places of a number, the most exact first."""
        hours = Values()
        if self._has_day_period and number == 0 and (one.kind == "time" or one.text.isdecimal()):
            hours = Values(str(int(hour) + by) for hour in values for by in (-HALF_DAY, HALF_DAY))
        for wanted in (values, hours):
            yield from (i for i in self._free if self._parts[i][1] & wanted)

    def _may_lack(self, one: VerifiedSpan, number: int, values: Values) -> bool:
        """Return whether a translation may lack a part: the minutes of a full hour, and the number of a month."""
        if one.kind == "time":
            return number == 1 == len(one.parts) - 1 and values == {"00"}
        month = int(min(values)) if one.kind == "date" else 0
        return 1 <= month <= len(self._forms.months) and not self._forms.months[month - 1].isdisjoint(self._words)

    def _has_sign(self, one: VerifiedSpan) -> bool:
        return not one.sign or one.sign in self._target or self._has_word(self._forms.names_of_currency(one.sign))

    def _has_minus(self, one: VerifiedSpan) -> bool:
        return not one.minus or any(other.minus and other.text[-1] == one.text[-1] for other in self._found)

    def _has_unit(self, one: VerifiedSpan) -> bool:
        names = self._source_forms.units.get(one.unit, set())
        beginnings = {one.unit.casefold()}.union(*map(self._forms.names_of_unit, names))
        return not names or self._has_word(beginnings)

    def _has_word(self, beginnings: set[str]) -> bool:
        """Return whether a word of the translation begins in one of these ways. Short ones are whole words."""
        if not beginnings.isdisjoint(self._words | self._latin_words):
            return True
        long = tuple(beginning for beginning in beginnings if len(beginning) > MAX_SYMBOL)
        is_inside = self._forms.is_unspaced and any(one in self._target for one in beginnings if not one.isascii())
        return is_inside or any(word.startswith(long) for word in self._words)

    def _is_explained(self, one: VerifiedSpan, values: Values) -> bool:
        """Return whether a number may be a word in the source: that of a month, and kanji."""
        month = int(min(values)) if one.kind == "date" and "月" in one.text else 0
        names = tuple(self._source_forms.months[month - 1]) if 1 <= month <= len(self._source_forms.months) else ()
        return one.is_word or any(word.startswith(names) for word in _WORDS.findall(self._source.casefold()))

    def _is_invented(self, one: VerifiedSpan, values: Values) -> bool:
        """Return whether no word of the source explains a number, or it is long, or made of another one: equal to one
        of the source, a part of one, beside another number, or a part of one that is taken."""
        if self._has_digits_alone and "1" not in values:  # 1 may be an article: twice a day, 1日2回
            return True
        digits = min(values).replace(".", "")
        sources = ["".join(wanted.chunks) for wanted in self._wanted]
        is_part = any(digits in own for own in sources)
        is_same = any(values & own for wanted in self._wanted for own in wanted.parts)
        is_rest = len(one.parts) > sum(self._parts[i][0] is one for i in self._free)
        return is_rest or is_same or is_part or len(digits.strip("0")) >= MIN_DIGITS or self._touches_number(one)

    def _touches_number(self, one: VerifiedSpan) -> bool:
        return any(
            _BESIDE.fullmatch(self._target, left.span.end, right.span.start) is not None
            for other in self._found
            for left, right in ((one, other), (other, one))
            if left.span.end <= right.span.start
        )

    def _doubled(self) -> Iterator[str]:
        """Yield signs of money and names that the translation has more often than the source."""
        for sign in {one.sign for one in self._wanted} - {""}:
            yield from sign * max(0, self._target.count(sign) - self._source.count(sign))
        for name in {one.text for one in self._wanted if one.kind == "name"}:
            yield from [name] * max(0, _count(name, self._target) - _count(name, self._source))


def _count(name: str, text: str) -> int:
    return len(re.findall(rf"(?<![A-Za-z0-9]){name}(?![A-Za-z0-9])", text))
