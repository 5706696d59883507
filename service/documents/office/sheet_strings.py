"""The texts of an Excel file in their XML: strings of cells with runs, and headers with codes."""

import re
from collections.abc import Iterator, Sequence

from lxml import etree

from service.documents.contents import DEFAULT_OPTIONS
from service.documents.office.inline_paragraph import InlineXml
from service.documents.office.nodes import SPACE, Element, Node, NonText, RunChild, Text, attribute_name, local_name
from service.documents.office.runs import OfficeXml, copied_run

BREAK = re.compile(r"((?:\r?\n|\t|_x000[9AD]_)+| {3,})")
"""Line ends and tabs, also as Excel escapes them, and spaces between columns."""
PLAIN = ("t", "v")
"""Names of elements with a text: of a string or a run, or the value of a cell."""
CODE = re.compile(r'(&(?:"[^"]*"|K(?:[0-9A-Fa-f]{6}|\d\d[+-]\d{3})|\d+|.))', re.DOTALL)
"""A code in a header or footer: &P is the number of the page, && the character."""
SECTIONS = ("&L", "&C", "&R")
FIELDS = ("&P", "&N", "&D", "&T", "&F", "&A", "&Z", "&G")
"""Codes that show a word: numbers of pages, date, time, names of file and sheet, or a picture."""
RUNS = OfficeXml(DEFAULT_OPTIONS)


class StringXml(InlineXml):
    """A string of a cell or a comment: a plain text, or runs with properties."""

    def __init__(self) -> None:
        self._plain: tuple[Element, list[str]] | None = None
        """The last element, if it is a plain text, and the parts of that text."""

    def nodes(self, string: Element) -> list[Node]:
        parents = ((element, element.getparent()) for element in _texts(string))
        runs = ((element, parent if local_name(parent) == "r" else None) for element, parent in parents)
        return [node for element, run in runs for node in _nodes(element, run)]

    def style(self, run: Element | None) -> bytes:
        return b"" if run is None else RUNS.style(run)

    def exact_style(self, run: Element | None) -> bytes:
        return b"" if run is None else RUNS.exact_style(run)

    def raised(self, run: Element | None) -> str:
        return "" if run is None else RUNS.raised(run)

    def is_line_break(self, element: Element) -> bool:
        return bool(element.text.count("\n") == 1)

    def empty(self, string: Element) -> None:
        self._plain, string.text = None, None
        del string[:]  # also the readings of its Japanese words

    def put(self, children: Sequence[RunChild], into: Element) -> None:
        for child in children:
            self.put_text(child.element.text, child.run, into)

    def close(self, string: Element) -> None:
        self._end_plain()
        for element in _texts(string):
            if element.text != element.text.strip():
                element.set(SPACE, "preserve")

    def put_text(self, text: str, run: Element | None, into: Element) -> None:
        if not text:
            return
        if run is not None:
            self._end_plain()
            etree.SubElement(copied_run(run, into), attribute_name(into, "t")).text = text
            return
        if self._plain is None:
            is_value = local_name(into) in PLAIN
            self._plain = into if is_value else etree.SubElement(into, attribute_name(into, "t")), []
        self._plain[1].append(text)

    def _end_plain(self) -> None:
        """Write the plain text as a whole, because writing it with each part would take quadratic time."""
        if self._plain is not None:
            element, parts = self._plain
            element.text, self._plain = "".join(parts), None


class HeaderXml(InlineXml):
    """Headers and footers: a text with codes."""

    def nodes(self, header: Element) -> list[Node]:
        nodes: list[Node] = []
        for i, part in enumerate(CODE.split(header.text or "")):
            element = etree.Element(header.tag)
            element.text = part
            child = RunChild(None, element)
            if not part:
                continue
            if i % 2 == 0 or part == "&&":
                nodes.append(Text(part.replace("&&", "&"), child))
            else:
                nodes.append(NonText("br" if part in SECTIONS else "x" if part in FIELDS else "wbr", [child]))
        return nodes

    def empty(self, header: Element) -> None:
        header.text = ""

    def put(self, children: Sequence[RunChild], into: Element) -> None:
        for child in children:
            into.text += child.element.text

    def put_text(self, text: str, _: None, into: Element) -> None:
        is_number = into.text[-1:].isdigit() and text[:1].isdigit()  # behind the size of a font
        into.text += " " * is_number + text.replace("&", "&&")


def _nodes(element: Element, run: Element | None) -> Iterator[Text | NonText]:
    for i, part in enumerate(BREAK.split(element.text or "")):
        if i % 2:
            spaces = etree.Element(element.tag)
            spaces.text = part
            yield NonText("br", [RunChild(run, spaces)])
        elif part:
            yield Text(part, RunChild(run, element))


def string_text(string: Element) -> str:
    """Return the characters of a string, without readings."""
    return "".join(element.text or "" for element in _texts(string))


def _texts(string: Element) -> Iterator[Element]:
    if local_name(string) in PLAIN:
        yield string
    for run in string:
        if local_name(run) == "t":
            yield run
        elif local_name(run) == "r":
            yield from (element for element in run if local_name(element) == "t")
