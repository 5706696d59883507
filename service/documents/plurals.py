"""Plural forms of messages: which forms a language has (CLDR), and which form of another language each is made from."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from service.text.languages import canonical

CATEGORIES = ("zero", "one", "two", "few", "many", "other")
"""CLDR's plural categories; `other` is in every language."""
_COUNTS = range(1, 201)
"""Numbers that have every category of integers, but for those of `_RARE_COUNTS`."""
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
        """Return the form's translation, for a translation of each text: the one with the number if it has it once."""
        if len(translations) == 1 or _DIGITS.findall(translations[1]) != [str(self.count)]:
            return translations[0]
        placeholder = _COUNT.search(self.text)
        return _DIGITS.sub(lambda _: placeholder[0] if placeholder else "", translations[1])


def plural_texts(
    forms: Mapping[str, str], source: str | None, target: str | None, is_ordinal: bool = False
) -> dict[str, PluralText]:
    """Return the plural categories of the target, and the text that each is translated from.

    Args:
        forms: as in `plural_sources`, as are the others.
    """
    sources = plural_sources(forms, source, target, is_ordinal)
    own, wanted = _categories(source, is_ordinal) or {}, _categories(target, is_ordinal) or {}
    texts = {}
    for category, of in sources.items():
        counts = [n for n in wanted if wanted[n] == category and own.get(n) == of]
        count = min(counts, key=lambda n: (n <= LAST_WORD, n), default=None)
        texts[category] = PluralText(of, forms[of], count)
    return texts


def plural_sources(
    forms: Mapping[str, str], source: str | None, target: str | None, is_ordinal: bool = False
) -> dict[str, str]:
    """Return the plural categories of the target, and for each the category of the form that it is translated from.

    A form that does not name its number ("One dog") is not used where the target has the same form for more numbers:
    the Russian `one` is also for 21. Forms that only the program knows, such as an English `zero`, stay.

    Args:
        forms: the texts of a plural, by category.
        source: the language of the texts; None: not known.
        target: the language of the translation; None: not known.
        is_ordinal: whether the forms are of ordinal numbers (1st, 2nd), not of cardinal ones.
    """
    own, wanted = _categories(source, is_ordinal), _categories(target, is_ordinal)
    if own is None or wanted is None:
        return {category: category for category in forms}
    # `other` is last in a language, and also its category for fractions alone.
    extra = [category for category in forms if category not in own.values()]
    chosen = {}
    for category in CATEGORIES:
        is_special = category in extra and category != "other"
        if is_special or category == "other" or category in wanted.values():
            chosen[category] = category if is_special else _best(category, forms, own, wanted)
    return chosen


def _best(category: str, forms: Mapping[str, str], own: dict[int, str], wanted: dict[int, str]) -> str:
    """Return the category of the form that says the same of the same numbers."""
    counts = [n for n in _COUNTS if wanted[n] == category] or [n for n in _RARE_COUNTS if wanted[n] == category]
    used = sorted(dict.fromkeys(own[n] for n in counts), key=lambda one: one != category)
    found = [one for one in used if one in forms] or [one for one in (category, "other", *forms) if one in forms][:1]
    return max(found, key=lambda one: len(_PLACEHOLDER.findall(forms[one])))


@lru_cache(maxsize=100)
def _categories(language: str | None, is_ordinal: bool) -> dict[int, str] | None:
    """Return the category of each number; None if the language is not known."""
    from babel import Locale, UnknownLocaleError  # imported here: its tables take 9 MB

    for tag in _tags(language):
        try:
            locale = Locale.parse(tag, sep="-")
        except (UnknownLocaleError, ValueError):
            continue
        rule = locale.ordinal_form if is_ordinal else locale.plural_form
        return {n: rule(n) for n in (*_COUNTS, *_RARE_COUNTS)}
    return None


def _tags(language: str | None) -> Iterator[str]:
    """Yield a language's tag, and its tag without script and region."""
    tag = canonical(language) if language else None
    if tag:
        yield from (tag, tag.split("-")[0])
