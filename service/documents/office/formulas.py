"""Texts that formulas of a spreadsheet look for. A cell with such a text must stay, or a formula does not find it."""

import re
from collections.abc import Iterable

QUOTED = re.compile(r'"((?:[^"]|"")*)"')
COLUMN = re.compile(r"\[((?:[^\[\]']|'.)+)\]")
"""The name of a column in a formula: Prices[Big dogs], Prices[[#This Row],[Big dogs]]."""
ESCAPE = re.compile("'(.)")


def compared_texts(formulas: Iterable[str]) -> set[str]:
    """Return texts in quotes, items of lists such as "yes,no" and names of columns in formulas, all `folded`."""
    texts: set[str] = set()
    for formula in formulas:
        for quoted in QUOTED.findall(formula):
            text = quoted.replace('""', '"')
            texts.update(map(folded, (text, *text.split(","))))
        texts.update(folded(ESCAPE.sub(r"\1", name)) for name in COLUMN.findall(formula))
    return texts


def folded(text: str) -> str:
    """Return a form of a text that is the same for texts that are equal to formulas."""
    return text.strip().casefold()
