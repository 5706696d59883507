"""Texts that formulas of a spreadsheet look for: a cell with such a text must stay, or they do not find it any more."""

import re
from collections.abc import Iterable

QUOTED = re.compile(r'"((?:[^"]|"")*)"')
COLUMN = re.compile(r"\[((?:[^\[\]']|'.)+)\]")
"""The name of a column in a formula: Prices[Big dogs], Prices[[#This Row],[Big dogs]]."""
ESCAPE = re.compile("'(.)")


def compared_texts(formulas: Iterable[str]) -> set[str]:
    """Return the texts in quotes in formulas, the items of lists such as "yes,no" and the names of columns, in the form
    of `folded`."""
    found: set[str] = set()
    for formula in formulas:
        for quoted in QUOTED.findall(formula):
            text = quoted.replace('""', '"')
            found.update(map(folded, (text, *text.split(","))))
        found.update(folded(ESCAPE.sub(r"\1", name)) for name in COLUMN.findall(formula))
    return found


def folded(text: str) -> str:
    """Return a text in a form in which texts are equal that formulas take for equal."""
    return text.strip().casefold()
