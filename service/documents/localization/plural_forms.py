"""Plural forms of gettext: the number of forms in a language, and the form of each number."""

import gettext
import re
from collections.abc import Sequence
from dataclasses import dataclass

from service.text.languages import canonical

HEADER = re.compile(r"\s*nplurals\s*=\s*(\d{1,2})\s*;\s*plural\s*=([^;]*+);?\s*+")
MILLIONS = re.compile(r"n != 0 && n % 1000000 == 0 \? (\d) : \d")
"""A form for whole millions alone. Unicode's tables have it, gettext's own tables and programs do not."""
SAMPLE = range(1001)
"""Numbers that tell a form apart: every form of every language occurs among them."""


@dataclass(frozen=True)
class PluralForms:
    """The plural forms of a language, as in the value of the header Plural-Forms."""

    header: str
    of_numbers: Sequence[int]
    """The form of each number of `SAMPLE`."""
    n_forms: int

    @classmethod
    def parse(cls, header: str) -> "PluralForms | None":
        """Return the forms of a header; None if gettext cannot read it, or it has a form that does not exist."""
        match = HEADER.fullmatch(header)
        if match is None:
            return None
        try:
            of_number = gettext.c2py(match[2].strip())
            of_numbers = [*map(of_number, SAMPLE)]
        except (ValueError, ArithmeticError, RecursionError):
            return None
        n_forms = int(match[1])
        return cls(header, of_numbers, n_forms) if 0 <= min(of_numbers) <= max(of_numbers) < n_forms else None

    @classmethod
    def of_language(cls, code: str) -> "PluralForms":
        """Return the forms of a language; English ones if they are not known."""
        from babel.core import UnknownLocaleError  # imported here: babel takes memory, and few documents need it
        from babel.messages.plurals import DEFAULT_PLURAL, get_plural

        try:
            n_forms, expression = get_plural((canonical(code) or code).replace("-", "_"))
        except (UnknownLocaleError, ValueError):
            n_forms, expression = DEFAULT_PLURAL
        expression, n_without = MILLIONS.subn(r"\1", expression)
        forms = cls.parse(f"nplurals={n_forms - n_without}; plural={expression};")
        assert forms is not None, "babel writes what gettext reads"
        return forms

    @property
    def singular(self) -> int | None:
        """The form for 1; None if it is for 2 as well."""
        for_1, for_2 = self.of_numbers[1:3]
        return for_1 if for_1 != for_2 else None

    @property
    def is_for_one_alone(self) -> bool:
        """Whether the form for 1 is for no other number, except 0. In Russian it is for 21 too."""
        return self.singular not in self.of_numbers[2:]
