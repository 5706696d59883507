"""Plural forms of messages: the forms of a language (CLDR), and the form of another language that each is made from."""

import re
from collections.abc import Mapping, Sequence
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
    """A form of the source to translate, its category, and a number (`count`) of the target's form."""

    category: str
    text: str
    count: int | None

    @property
    def texts(self) -> list[str]:
        """The texts that a translation needs: the form, and the form with a number, which a model knows better."""
        placeholders = [*_COUNT.finditer(self.text)]
        if self.count is None or len(placeholders) != 1 or _DIGITS.search(_COUNT.sub("", self.text)):
            return [self.text]
        return [self.text, _COUNT.sub(str(self.count), self.text)]

    def translated(self, translations: Sequence[str]) -> str:
        """Return the form's translation: the translation with the number, if that has words, and the number once."""
        is_counted = len(translations) > 1 and _DIGITS.findall(translations[1]) == [str(self.count)]
        if not is_counted or not any(map(str.isalpha, translations[1])):
            return translations[0]
        placeholder = _COUNT.search(self.text)
        return _DIGITS.sub(lambda _: placeholder[0] if placeholder else "", translations[1])


def plural_texts(
    forms: Mapping[str, str], source: str | None, target: str | None, is_ordinal: bool = False
) -> dict[str, PluralText]:
    """Return the plural categories of the target, each with the text that is translated for it.

    A form that does not name its number ("One dog") is not used where the target has the same form for more numbers:
    the Russian `one` is also for 21. Forms that only the program knows, such as an English `zero`, stay.

    Args:
        forms: the texts of a plural, by category.
        source, target: the languages of the texts and of the translation; None: not known.
        is_ordinal: whether the forms are of ordinal numbers (1st, 2nd), not of cardinal numbers.
    """
    counts = _shared_counts(source, target, is_ordinal)
    if counts is None or not forms:
        return {category: PluralText(category, text, None) for category, text in forms.items()}
    of_source = {of for shared in counts.values() for of in shared}
    texts = {}
    for category in CATEGORIES:
        if category in forms and category not in {*of_source, "other"}:
            texts[category] = PluralText(category, forms[category], None)
        elif category in counts:
            shared_forms = [of for of in counts[category] if of in forms]
            usable = shared_forms or ["other" if "other" in forms else next(iter(forms))]
            of = max(usable, key=lambda form: len(_PLACEHOLDER.findall(forms[form])))
            # The Russian `other` is for fractions alone: it gets a number of `many`.
            numbers = [counts[name][of] for name in (category, *reversed(CATEGORIES)) if of in counts.get(name, {})]
            texts[category] = PluralText(of, forms[of], next(iter(numbers), None))
    return texts


@lru_cache(maxsize=1000)
def _shared_counts(source: str | None, target: str | None, is_ordinal: bool) -> dict[str, dict[str, int]] | None:
    """Return for each category of the target the source's categories with the same numbers, each with such a number."""
    given, wanted = _rule(source, is_ordinal), _rule(target, is_ordinal)
    if given is None or wanted is None:
        return None
    shared: dict[str, dict[str, int]] = {category: {} for category in (*wanted.tags, "other")}
    for n in (*_COUNTS, *_RARE_COUNTS):
        by_source = shared[wanted(n)]
        if n not in _RARE_COUNTS or not by_source:
            known = by_source.setdefault(given(n), n)
            if known <= LAST_WORD < n:
                by_source[given(n)] = n
    # The category of the same name is the first choice.
    return {name: dict(sorted(counts.items(), key=lambda item: item[0] != name)) for name, counts in shared.items()}


def _rule(language: str | None, is_ordinal: bool) -> "PluralRule | None":
    """Return the rule of a language, which gives each number its category; None if the language is not known."""
    from babel import Locale, UnknownLocaleError  # imported here: its tables take 9 MB

    tag = canonical(language) if language else None
    for known in (tag, tag.split("-")[0]) if tag else ():
        try:
            locale = Locale.parse(known, sep="-")
        except (UnknownLocaleError, ValueError):
            continue
        return locale.ordinal_form if is_ordinal else locale.plural_form
    return None
