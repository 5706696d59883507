"""DrawingML: the texts of shapes, slides, charts and diagrams in Office files, and descriptions of pictures."""

from collections.abc import Iterator, Sequence
from itertools import islice

from lxml import etree

from service.documents.archive import INVALID_XML
from service.documents.contents import ReadOptions
from service.documents.inline_tags import escaped
from service.documents.office.inline_paragraph import InlineParagraph
from service.documents.office.nodes import (
    DRAWING,
    SPACE,
    Element,
    attribute_name,
    local_name,
    name_of_choice,
    shown_choice,
)
from service.documents.office.runs import OfficeXml
from service.documents.wrapping import visible_text

PARAGRAPHS = [f"{{{namespace}}}p" for namespace in DRAWING]
CHARTS = (
    "http://schemas.openxmlformats.org/drawingml/2006/chart",
    "http://purl.oclc.org/ooxml/drawingml/chart",
    "http://schemas.microsoft.com/office/drawing/2014/chartex",
)
CHART_VALUES = [f"{{{namespace}}}{name}" for namespace in CHARTS for name in ("v", "pt")]
AROUND_STRINGS = {"tx", "txData", "strCache", "strLit", "strDim", "multiLvlStrCache"}
"""Names of elements in charts whose values are strings; other values are numbers."""
MAX_LEVELS = 3
"""The most levels between a value and such an element."""
DESCRIBED = {
    "docPr": ("title", "descr"),
    "cNvPr": ("title", "descr"),
    "shape": ("alt",),
    "textpath": ("string",),
    "tblCaption": ("val",),
    "tblDescription": ("val",),
    **dict.fromkeys(("hyperlink", "hlinkClick", "hlinkHover", "hlinkMouseOver"), ("tooltip",)),
}
"""Attributes that are texts: read aloud for pictures and tables, or shown for links, letters of old WordArt."""
CHOICE = "listItem"
"""The name of an item in the list of a content control."""


class PlainText:
    """A text of an element or an attribute, without markup."""

    def __init__(self, element: Element, attribute: str | None = None) -> None:
        self._element, self._attribute = element, attribute
        text = (element.text if attribute is None else element.get(attribute)) or ""
        self.has_words = any(map(str.isalnum, text))
        self.html = escaped(text)

    def write(self, translation: str) -> None:
        """Replace the text by a translation."""
        text = INVALID_XML.sub("", visible_text(translation))
        if self._attribute is None:
            self._element.text = text
        else:
            self._element.set(self._attribute, text)


class Choice:
    """An item in the list of a content control. The control shows the translation if it has shown the item."""

    def __init__(self, item: Element) -> None:
        self._item, name = item, name_of_choice(item)
        self.has_words = any(map(str.isalnum, name))
        self.html = escaped(name)
        control = next(item.iterancestors("{*}sdt"), None)
        self._shown: list[Element] = []
        if control is not None and shown_choice(control) == name:
            self._shown = control.findall("{*}sdtContent//{*}t")

    def write(self, translation: str) -> None:
        """Replace the text by a translation. The value, which programs read, stays."""
        text = INVALID_XML.sub("", visible_text(translation))
        self._item.set(attribute_name(self._item, "displayText"), text)
        for i, element in enumerate(self._shown):
            element.text = "" if i else text
            element.set(SPACE, "preserve")


OfficeText = InlineParagraph | PlainText | Choice


def office_texts(root: Element, options: ReadOptions, paragraphs: Sequence[str] = ()) -> Iterator[OfficeText]:
    """Yield the texts with words in a part of an Office file, in order. Elements in `paragraphs` are paragraphs too."""
    described = [f"{{*}}{name}" for name in DESCRIBED]
    for element in root.iter(*paragraphs, *PARAGRAPHS, *CHART_VALUES, f"{{*}}{CHOICE}", *described):
        yield from (text for text in _texts_of(element, options) if text.has_words)


def _texts_of(element: Element, options: ReadOptions) -> Iterator[OfficeText]:
    name = local_name(element)
    if name == CHOICE:
        yield Choice(element)
    elif name == "p" and any(shown_choice(control) is not None for control in element.iterancestors("{*}sdt")):
        return
    elif name == "p":
        yield InlineParagraph(element, OfficeXml(options), options)
    elif name in DESCRIBED:
        yield from (PlainText(element, key) for key in element.attrib if etree.QName(key).localname in DESCRIBED[name])
    elif len(element) == 0:
        around = {local_name(ancestor) for ancestor in islice(element.iterancestors(), MAX_LEVELS)}
        if around & AROUND_STRINGS:
            yield PlainText(element)
