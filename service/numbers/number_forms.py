"""How languages write numbers: separators, signs of money, names of months, currencies and units, from CLDR."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from babel import Locale

from service.text.sentences import UNSPACED

SPACES = " \u00a0\u202f"
"""Spaces between thousands."""
APOSTROPHES = "'\u2019"
SIGNS = "$€£¥₩₽₹₴₺₫₪฿₱₦₿"
"""Signs of money."""
_DAY_PERIOD = re.compile(rf"\d[{SPACES}]?(?:[AP]M\b|[ap]\.[{SPACES}]?m\.)")
_ENGLISH_DAY_PERIOD = re.compile(rf"\d[{SPACES}]?[APap]\.?[{SPACES}]?[Mm]\b")
MAX_SYMBOL = 3
"""Number of letters of an abbreviation or a sign of a unit."""
HALF_DAY = 12
"""Hours."""
MAX_DECIMALS = 9
"""Enough decimals for any amount that is written in millions or billions."""
_METRIC = re.compile(
    r"(?:-|kilo|hecto|deci|centi|milli|micro|mega|giga|tera)(?:meter|gram|liter|tonne|watt|hertz|byte|bit|volt|ampere|joule)"
    r"(?:-per-\w+)?$|percent$|celsius$"
)
_COUNTS = ("zero", "one", "two", "few", "many", "other")
_PLACE = re.compile(r"\{0\}|#")
_KATAKANA_OR_LAST = re.compile(r"[\u30a1-\u30ff]+$|.$")


@dataclass(frozen=True)
class NumberForms:
    """How a language writes numbers. `group` stands between thousands, `decimal` before decimals."""

    language: str
    group: str = ","
    decimal: str = "."
    locale: "Locale | None" = field(default=None, compare=False, repr=False)

    @property
    def is_unspaced(self) -> bool:
        return self.language in UNSPACED

    @cached_property
    def multipliers(self) -> dict[str, Decimal]:
        """The factors of words behind numbers, such as million. Capitals count in short words, such as M."""
        if self.locale is None:
            return {}
        factors = {}
        for width in ("long", "short"):
            for patterns in self.locale.compact_decimal_formats.get(width, {}).values():
                for number, pattern in patterns.items():
                    zeros, word = pattern.pattern.count("0"), pattern.pattern.replace("'", "").strip("0.\u00a0\u200f ")
                    if zeros and word:
                        factors[_key(word)] = Decimal(int(number)) / 10 ** (zeros - 1)
        return factors

    @cached_property
    def months(self) -> list[set[str]]:
        """The names of each month, in small letters."""
        if self.locale is None:
            return [set() for _ in range(12)]
        uses = (self.locale.months[use] for use in ("format", "stand-alone"))
        tables = [use[width] for use in uses for width in ("wide", "abbreviated")]
        return [{table[month].casefold().rstrip(".") for table in tables} for month in range(1, 13)]

    def times(self, word: str) -> Decimal | None:
        """Return the factor of a word behind a number."""
        return self.multipliers.get(_key(word))

    def has_day_period(self, text: str) -> bool:
        """Return whether a text tells the half of a day, as 3 p.m. and 午後 do. In German "am" is another word."""
        behind = _ENGLISH_DAY_PERIOD if self.language == "en" else _DAY_PERIOD
        return behind.search(text) is not None or any(word in text for word in self._day_periods)

    @cached_property
    def has_hours_with_h(self) -> bool:
        """Whether a time may be written as 15 h 30: where h is the short sign of an hour."""
        return bool(self._unit_patterns.get("duration-hour", {}).get("short", {}).get("other", "h").endswith("h"))

    @cached_property
    def has_24_hours(self) -> bool:
        """Whether the language counts the hours of the whole day."""
        return self.locale is not None and "H" in self.locale.time_formats["short"].pattern

    @cached_property
    def _day_periods(self) -> set[str]:
        tables = self.locale.day_periods["format"].values() if self.locale else ()
        words = {table[half] for table in tables for half in ("am", "pm") if half in table}
        return {word for word in words if not word.isascii()}

    @cached_property
    def units(self) -> dict[str, set[str]]:
        """Metric units of CLDR by their short signs in this language. Signs of other units look like words: in, st."""
        units: dict[str, set[str]] = {}
        for name, patterns in self._unit_patterns.items():
            if _METRIC.search(name):
                for word in _words_of(patterns, ("short",)):
                    units.setdefault(word, set()).add(name)
        return units

    def names_of_unit(self, name: str) -> set[str]:
        """Return how words for a unit of CLDR begin, in small letters."""
        return {self._stem(word) for word in _words_of(self._unit_patterns.get(name, {}), ("long", "short", "narrow"))}

    def names_of_currency(self, sign: str) -> set[str]:
        """Return how words for the currency with a sign begin, in small letters."""
        code = currency_of(sign)
        if self.locale is None or code is None or code not in self.locale.currencies:
            return set()
        names = [self.locale.currencies[code], *(self.locale._data["currency_names_plural"].get(code) or {}).values()]
        words = [word for name in names for word in re.split(r"[\s-]", name) if len(word) > 3 or len(name.split()) < 3]
        return {code.casefold(), *map(self._stem, words)}

    def write_number(self, written: str, source: "NumberForms") -> str:
        """Return a number of another language as this one writes it. Digits that are no number there stay."""
        parts = source.parts_of(written)
        if parts is None or self.locale is None:
            return written
        groups, decimals = parts
        return self.group.join(groups) + (self.decimal + decimals if decimals else "")

    def parts_of(self, written: str) -> tuple[list[str], str] | None:
        """Return the groups of thousands and the decimals of a number; None if this language does not write it so."""
        group = f"[{SPACES}{APOSTROPHES}]" if self.group in SPACES else f"[{re.escape(self.group)}{APOSTROPHES}]"
        match = re.fullmatch(rf"(\d{{1,3}}(?:{group}\d{{3}})+|\d+)(?:{re.escape(self.decimal)}(\d+))?", written)
        return (re.split(group, match[1]), match[2] or "") if match else None

    def write_amount(self, number: str, sign: str) -> str:
        """Return a number with a sign of money where the language puts it."""
        return self._place("¤", self.locale.currency_formats["standard"].pattern if self.locale else "¤#", number, sign)

    def write_compact_amount(self, number: Decimal, sign: str) -> str | None:
        """Return millions and the like of a currency in the short form; None if CLDR does not know them."""
        from babel.numbers import format_compact_currency, get_currency_symbol

        code = currency_of(sign)
        if self.locale is None or code is None:
            return None
        written = format_compact_currency(number, code, locale=self.locale, fraction_digits=MAX_DECIMALS)
        return str(written.replace(get_currency_symbol(code, self.locale), sign))

    def write_with_unit(self, number: str, name: str) -> str | None:
        """Return a number with the short sign of a unit of CLDR; None if the language has none."""
        pattern = self._unit_patterns.get(name, {}).get("short", {}).get("other")
        return pattern.format(number) if pattern else None

    def write_hours(self, number: int) -> str:
        from babel.units import format_unit

        return str(format_unit(number, "duration-hour", "long", locale=self.locale))

    def write_percentage(self, number: str) -> str:
        return self._place("%", self.locale.percent_formats[None].pattern if self.locale else "#%", number, "%")

    @staticmethod
    def _place(mark: str, pattern: str, number: str, sign: str) -> str:
        pattern = pattern.split(";")[0]
        space = "\u00a0" if "\u00a0" in pattern or "\u202f" in pattern else ""
        return f"{sign}{space}{number}" if pattern.lstrip("\u200f\u200e").startswith(mark) else f"{number}{space}{sign}"

    @property
    def _unit_patterns(self) -> dict[str, dict[str, dict[str, str]]]:
        patterns: dict[str, dict[str, dict[str, str]]] = self.locale._data["unit_patterns"] if self.locale else {}
        return patterns

    def _stem(self, word: str) -> str:
        """Return the beginning of a word, which endings leave, or its last part if the language writes no spaces."""
        if self.is_unspaced and not word.isascii():
            return str(_KATAKANA_OR_LAST.findall(word)[-1])[:2]
        return word.casefold()[:4]


def _key(word: str) -> str:
    return word if len(word) <= MAX_SYMBOL else word.casefold()


def _words_of(patterns: Mapping[str, Mapping[str, str]], widths: Iterable[str]) -> set[str]:
    forms = (form for width in widths for count, form in patterns.get(width, {}).items() if count in _COUNTS)
    return {_PLACE.sub("", form).strip(SPACES) for form in forms} - {""}


@lru_cache(maxsize=1)
def currencies() -> frozenset[str]:
    """Return the codes of all currencies (ISO 4217)."""
    from babel.numbers import list_currencies

    return frozenset(list_currencies())


@lru_cache(maxsize=1_000)
def currency_of(sign: str) -> str | None:
    """Return the code of the currency that English writes with a sign alone."""
    from babel.numbers import get_currency_symbol

    return next((code for code in sorted(currencies()) if get_currency_symbol(code, "en") == sign), None)


@lru_cache(maxsize=1_000)
def forms_of(language: str) -> NumberForms:
    """Return the forms of a language, by its code. A language that CLDR does not know gets forms without names."""
    from babel import Locale, UnknownLocaleError  # imported here: it takes 9 MB
    from babel.numbers import get_decimal_symbol, get_group_symbol

    try:
        locale = Locale.parse(language, sep="-")
    except (UnknownLocaleError, ValueError):
        return NumberForms(language)
    signs = {"numbering_system": "latn"}
    return NumberForms(language, get_group_symbol(locale, **signs), get_decimal_symbol(locale, **signs), locale)
