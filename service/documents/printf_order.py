"""Conversions of printf in another order: `%s has %d dogs` becomes `%2$d dogs has %1$s`."""

import re
from collections import Counter

CONVERSION = re.compile(r"%%|%(?P<rest>[-+ #0']*\d*(?:\.\d*)?(?:(?:hh|ll|[hlqjzt])?[diouxXeEfgGaAcsp@]|<PRI\w+>))")
FIXED = re.compile(r"%\d+\$|%[^%\w]*\*")
"""A conversion that has a number, or takes its width from an argument of its own."""


def in_order(text: str, translation: str) -> str:
    """Return a translation with the numbers of its conversions, if they have another order than those of the text.

    Nothing changes if one is lost, has a number already (`%1$s`), or takes its width from another argument (`%*d`).
    """
    before, after = _conversions(text), _conversions(translation)
    if before == after or Counter(before) != Counter(after) or FIXED.search(text):
        return translation
    free = [*before]

    def numbered(found: re.Match[str]) -> str:
        if found["rest"] is None:
            return found.group()
        number = free.index(found["rest"])
        free[number] = ""
        return f"%{number + 1}${found['rest']}"

    return CONVERSION.sub(numbered, translation)


def _conversions(text: str) -> list[str]:
    return [found["rest"] for found in CONVERSION.finditer(text) if found["rest"]]
