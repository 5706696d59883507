"""Texts of cells that other parts of a workbook repeat: names of columns in tables and pivots, values of filters.

Excel calls a file damaged if the name of a column is not the text of its header cell, or if two columns share a name.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

from service.documents.office.formulas import folded
from service.documents.office.nodes import Element
from service.documents.office.sheet_strings import string_text

MAX_LENGTH = 255
"""Maximum length of the name of a column."""
MAX_ROUNDS = 10
"""After this many rounds of putting texts back, all repeated texts are put back."""
Names = Sequence[tuple[Element, str]]
"""Elements and their attributes that repeat texts of cells; the texts differ from each other."""


@dataclass
class RepeatedTexts:
    """Follows the translations of repeated texts."""

    groups: Sequence[Names]
    _strings: dict[str, list[tuple[Element, Element]]] = field(default_factory=lambda: defaultdict(list))
    """Repeated strings of cells, each with a copy of it before its translation, by their texts."""
    _settled: bool = False

    def __post_init__(self) -> None:
        self._names = {_decoded(element, name) for group in self.groups for element, name in group}

    def add(self, string: Element, text: str) -> None:
        """Add a string of cells, and its text."""
        if text in self._names:
            self._strings[text].append((string, deepcopy(string)))

    def settle(self) -> None:
        """Put back translations that cannot be names: two of one text, the same of two texts, and too long ones."""
        if self._settled:
            return
        self._settled = True
        for _ in range(MAX_ROUNDS):
            unusable = {name for group in self.groups for name in self._unusable(group)}
            if not unusable:
                return
            self._put_back(unusable)
        self._put_back(self._strings.keys())

    def rename(self, names: Names) -> bool:
        """Give elements the names of their cells. Return whether that changes any."""
        self.settle()
        is_changed = False
        for element, attribute in names:
            old = _decoded(element, attribute)
            if old in self._strings and (new := string_text(self._strings[old][0][0])) != old:
                element.set(attribute, new.replace("\n", "_x000a_"))
                is_changed = True
        return is_changed

    def _unusable(self, names: Names) -> list[str]:
        texts = {old: self._all(old) for old in {_decoded(element, attribute) for element, attribute in names}}
        used = Counter(folded(new) for old, all_new in texts.items() for new in (all_new or [old])[:1])
        changed = {old: all_new for old, all_new in texts.items() if any(new != old for new in all_new)}
        several = (old for old, all_new in changed.items() if len({*all_new}) > 1 or used[folded(all_new[0])] > 1)
        return [*several, *(old for old, (new, *_) in changed.items() if not 0 < len(new) <= MAX_LENGTH)]

    def _all(self, text: str) -> list[str]:
        return [string_text(string) for string, _ in self._strings.get(text, ())]

    def _put_back(self, texts: Collection[str]) -> None:
        for text in texts:
            for string, copy in self._strings[text]:
                string[:], string.text = deepcopy(copy)[:], copy.text


def _decoded(element: Element, attribute: str) -> str:
    """Return a name with its line ends, which Excel escapes in attributes."""
    name: str = element.get(attribute, "")
    return name.replace("_x000a_", "\n").replace("_x000d_", "\r")
