"""The text of an OpenDocument paragraph: text and spans become nodes, and translated text is written in spans again.

Spans may be nested: a run is the chain of spans around a text. Texts of one run that follow each other share its
copies, because otherwise a small file with many spans around many texts would become huge.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from lxml import etree

from service.documents.contents import ReadOptions
from service.documents.office.inline_paragraph import InlineXml
from service.documents.office.nodes import (
    LINK,
    Element,
    Group,
    Node,
    NonText,
    RunChild,
    Text,
    attribute,
    local_name,
    with_ranges,
)
from service.documents.office.open_document_languages import foreign_mark

TEXT = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"
DRAWING = "urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"
SPACES = re.compile(r"[ \t\r\n]+")
"""White space, which is one space in OpenDocument."""
WIDE_SPACES = re.compile(r"( {2,})")
FEW_SPACES = ("", "1", "2")
"""Numbers of spaces between words. More stand between columns, as a tab does."""
GROUPS = {"a", "meta", "meta-field"}
IGNORED = {"", "soft-page-break"}
"""Names of elements that are left out: comments ("") and notes on the old text."""
BREAKS = {"tab", "line-break"}
MARK = re.compile(r"note|change|.*-mark|bookmark|.*-(?:start|end)")
"""Names of elements of text that are not words. All others are fields, such as a page number."""
INVISIBLE = re.compile(
    r"(?:language|country|script|rfc-language-tag)(?:-\w+)?|(?:paragraph-)?rsid|letter-(?:spacing|kerning)"
    r"|text-scale|hyphenate"
)
"""Properties of text that no reader sees, or that change from word to word without a meaning."""


@dataclass(frozen=True, eq=False)
class Run:
    """The chain of spans around a text, the outermost first."""

    spans: tuple[Element, ...] = ()

    @cached_property
    def names(self) -> list[str]:
        return [attribute(span, "style-name") for span in self.spans]


NO_RUN = Run()


class SpanXml(InlineXml):
    """Spans of a part, whose automatic styles they name. Text that is marked as another language is kept apart."""

    def __init__(self, root: Element, options: ReadOptions) -> None:
        self._looks: dict[str, bytes] = {}
        self._raised: dict[str, str] = {}
        self._last: tuple[Run, Element, Element, Element] | None = None
        """The last copied run, the element that it was copied into, and the outermost and the innermost copy."""
        for style in root.iterfind("{*}automatic-styles/{*}style"):
            if attribute(style, "family") != "text":
                continue
            properties = [pair for part in style.iterfind("{*}text-properties") for pair in sorted(part.items())]
            seen = [(name, value) for name, value in properties if not INVISIBLE.fullmatch(etree.QName(name).localname)]
            foreign = [mark for part in style.iterfind("{*}text-properties") if (mark := foreign_mark(part, options))]
            parent = attribute(style, "parent-style-name")
            name = attribute(style, "name")
            looks = parent, seen, foreign
            self._looks[name] = repr(looks).encode() if any(looks) else b""
            position = next((value for key, value in seen if key.endswith("}text-position")), "")
            if position and not position.startswith("0"):
                self._raised[name] = "sub" if position.startswith(("sub", "-")) else "sup"

    def nodes(self, paragraph: Element) -> list[Node]:
        return with_ranges([*_nodes(paragraph, NO_RUN)])

    def style(self, run: Run | None) -> bytes:
        return b"".join(self._looks.get(name, name.encode()) for name in (run or NO_RUN).names)

    def exact_style(self, run: Run) -> bytes:
        return "|".join(run.names).encode()

    def raised(self, run: Run) -> str:
        return next((self._raised[name] for name in run.names if name in self._raised), "")

    def is_line_break(self, element: Element) -> bool:
        return local_name(element) == "line-break"

    def empty(self, element: Element) -> None:
        element.text = None
        for child in [*element]:
            element.remove(child)

    def put(self, children: Sequence[RunChild], into: Element) -> None:
        for child in children:
            child.element.tail = None
            self._spans(child.run, into).append(child.element)

    def put_text(self, text: str, run: Run | None, into: Element) -> None:
        if text:
            span = self._spans(run, into)
            for i, part in enumerate(WIDE_SPACES.split(text)):
                _append(span, part if i % 2 == 0 else " ")
                if i % 2:
                    etree.SubElement(span, f"{{{TEXT}}}s", {f"{{{TEXT}}}c": str(len(part) - 1)})

    def _spans(self, run: Run | None, into: Element) -> Element:
        """Return the innermost copy of the spans of a run, which are nested at the end of an element."""
        if run is None or not run.spans:
            return into
        if self._last is not None:
            last, where, outermost, innermost = self._last
            is_at_end = outermost.tail is None and outermost.getnext() is None
            if last is run and where is into and is_at_end and outermost.getparent() is into:
                return innermost
        innermost = into
        for span in run.spans:
            innermost = etree.SubElement(innermost, span.tag, dict(span.items()))
        outermost = next(into.iterchildren(reversed=True))
        self._last = run, into, outermost, innermost
        return innermost


def _nodes(parent: Element, run: Run) -> Iterator[Node]:
    yield from _text_nodes(parent.text, run, parent)
    for child in parent:
        yield from _nodes_of_child(child, run)
        yield from _text_nodes(child.tail, run, parent)


def _text_nodes(text: str | None, run: Run, element: Element) -> Iterator[Text]:
    if text:
        yield Text(SPACES.sub(" ", text), RunChild(run, element))


def _nodes_of_child(child: Element, run: Run) -> Iterator[Node]:
    name, as_child = local_name(child), [RunChild(run, child)]
    if name == "span":
        yield from _nodes(child, Run((*run.spans, child)))
    elif name == "s" and (count := attribute(child, "c")) in FEW_SPACES:
        yield Text(" " * int(count or 1), as_child[0])
    elif name in BREAKS or name == "s":
        yield NonText("br", as_child)
    elif name in GROUPS:
        yield Group(LINK if name == "a" else "ins", [*_nodes(child, NO_RUN)], child, run=run)
    elif name == "ruby":  # the reading above the base is left out
        yield from (node for base in child.iterfind("{*}ruby-base") for node in _nodes(base, run))
    elif name and etree.QName(child).namespace == DRAWING:
        yield NonText("img" if attribute(child, "anchor-type") == "as-char" else "wbr", as_child)
    elif name not in IGNORED:
        is_field = child.text and not MARK.fullmatch(name)
        yield NonText("x" if is_field else "wbr", as_child)


def _append(element: Element, text: str) -> None:
    last = next(element.iterchildren(reversed=True), None)  # lxml counts all children for len(element)
    if last is not None:
        last.tail = (last.tail or "") + text
    else:
        element.text = (element.text or "") + text
