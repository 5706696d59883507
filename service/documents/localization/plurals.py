"""Plural forms of messages: which forms a language has (CLDR), and which form of another language each is made from."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from service.text.languages import canonical

if TYPE_CHECKING:
    from babel.plural import PluralRule

CATEGORIES = ("zero", "one", "two", "few", "many", "other")
"""CLDR's plural categories; `other` is in every language."""
_COUNTS = range(1, 201)
"""Numbers that have nearly every category of integers."""
_RARE_COUNTS = (0, 1_000_000)
"""Numbers for categories that no other number has: the Arabic `zero`, the French `many`."""
LAST_WORD = 20
"""Smaller numbers may be translated as words: "two"."""
_PLACEHOLDER = re.compile(r"%+|\{+|#")
_COUNT = re.compile(
    r"%(?:\d\$)?[hlqz]{0,2}[diu](?![A-Za-z])|%arg(?![A-Za-z])|[%$#]?\{{1,2}-?\s*(?:count|n|num|number)\s*\}{1,2}"
)
"""The placeholder of a plural's number: %d, %1$lld, {{count}}, %{count}."""
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True)
class PluralText:
    """The text of a plural form to translate.

    Args:
        category: the category of the source's form.
        text: this form.
        count: a number of the target's form.
    """

    category: str
    text: str
    count: int | None

    @property
    def texts(self) -> list[str]:
        """The texts that a translation needs: the form, and the form with a number, which a model knows better."""
        found = [*_COUNT.finditer(self.text)]
        if self.count is None or len(found) != 1 or _DIGITS.search(_COUNT.sub("", self.text)):
            return [self.text]
        return [self.text, _COUNT.sub(str(self.count), self.text)]

    def translated(self, translations: Sequence[str]) -> str:
        """Return the form's translation, for a translation of each text.

        The one with the number is taken if it has words, and the number once.
        """
        is_counted = len(translations) > 1 and _DIGITS.findall(translations[1]) == [str(self.count)]
        if not is_counted or not any(map(str.isalpha, translations[1])):
            return translations[0]
        placeholder = _COUNT.search(self.text)
        return _DIGITS.sub(lambda _: placeholder[0] if placeholder else "", translations[1])


def plural_texts(
    forms: Mapping[str, str], source: str | None, target: str | None, is_ordinal: bool = False
) -> dict[str, PluralText]:
    """Return the plural categories of the target, and the text that each is translated from.

    A form that does not name its number ("One dog") is not used where the target has the same form for more numbers:
    the Russian `one` is also for 21. Forms that only the program knows, such as an English `zero`, stay.

    Args:
        forms: the texts of a plural, by category.
        source: the language of the texts; None: not known.
        target: the language of the translation; None: not known.
        is_ordinal: whether the forms are of ordinal numbers (1st, 2nd), not of cardinal ones.
    """
    counts = _shared_counts(source, target, is_ordinal)
    if counts is None or not forms:
        return {category: PluralText(category, text, None) for category, text in forms.items()}
    own = {of for shared in counts.values() for of in shared}
    texts = {}
    for category in CATEGORIES:
        if category in forms and category not in {*own, "other"}:
            texts[category] = PluralText(category, forms[category], None)
        elif category in counts:
            found = [of for of in counts[category] if of in forms] or [of for of in ("other", *forms) if of in forms][
                :1
            ]
            of = max(found, key=lambda form: len(_PLACEHOLDER.findall(forms[form])))
            # The Russian `other` is for fractions alone: it gets a number of `many`.
            numbers = [counts[name][of] for name in (category, *reversed(CATEGORIES)) if of in counts.get(name, {})]
            texts[category] = PluralText(of, forms[of], next(iter(numbers), None))
    return texts


@lru_cache(maxsize=1000)
def _shared_counts(source: str | None, target: str | None, is_ordinal: bool) -> dict[str, dict[str, int]] | None:
    """Return for each category of the target those of the source with the same numbers, and one of these numbers."""
    own, wanted = _rule(source, is_ordinal), _rule(target, is_ordinal)
    if own is None or wanted is None:
        return None
    shared: dict[str, dict[str, int]] = {category: {} for category in (*wanted.tags, "other")}
    for n in (*_COUNTS, *_RARE_COUNTS):
        by_source = shared[wanted(n)]
        if n not in _RARE_COUNTS or not by_source:
            known = by_source.setdefault(own(n), n)
            if known <= LAST_WORD < n:
                by_source[own(n)] = n
    # A category's own name is the first choice.
    return {one: dict(sorted(counts.items(), key=lambda item: item[0] != one)) for one, counts in shared.items()}


def _rule(language: str | None, is_ordinal: bool) -> "PluralRule | None":
    """Return the rule of a language, which gives each number its category; None if the language is not known."""
    from babel import Locale, UnknownLocaleError  # imported here: its tables take 9 MB

    for tag in _tags(language):
        try:
            locale = Locale.parse(tag, sep="-")
        except (UnknownLocaleError, ValueError):
            continue
        return locale.ordinal_form if is_ordinal else locale.plural_form
    return None


def _tags(language: str | None) -> Iterator[str]:
    tag = canonical(language) if language else None
    if tag:
        yield from (tag, tag.split("-")[0])
