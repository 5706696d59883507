"""Excel files (.xlsx): each cell with words is a text, and so are comments, text boxes, titles of charts, descriptions
of pictures, headers, footers and messages about input.

Numbers, names of sheets, formulas and their results stay. So does a cell with a text that a formula has in quotes, as
in IF(A1="Yes"). Attributes that repeat the text of a cell, such as the name of a table's column, follow the cell.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import partial
from html import unescape

from service.documents.archive import parse_xml, serialize_xml
from service.documents.contents import ReadOptions
from service.documents.office.drawing import PlainText, office_texts
from service.documents.office.formulas import compared_texts, folded
from service.documents.office.inline_paragraph import InlineParagraph
from service.documents.office.languages import mark_languages
from service.documents.office.nodes import Element, local_name
from service.documents.office.parts import Part, PartText, office_rewrite
from service.documents.office.repeated_texts import Names, RepeatedTexts
from service.documents.office.sheet_strings import HeaderXml, StringXml, string_text
from service.documents.packages import GRAPHICS, MAIN, Package

PACKAGE_TYPES = frozenset(
    f"application/vnd.{kind}.main+xml"
    for kind in (
        "openxmlformats-officedocument.spreadsheetml.sheet",
        "openxmlformats-officedocument.spreadsheetml.template",
        "ms-excel.sheet.macroenabled",
        "ms-excel.template.macroenabled",
    )
)
"""Content types of the main part of a workbook and a template, without macros and with them."""
SHEETS = ("worksheet", "chartsheet", "dialogsheet")
FOLLOWED = {
    MAIN: ("sharedStrings", *SHEETS, "pivotCacheDefinition"),
    **dict.fromkeys(SHEETS, ("drawing", "comments", "threadedComment", "table")),
    **dict.fromkeys(("drawing", *GRAPHICS), GRAPHICS),
}
"""The links that lead to texts, by the kind of the part."""
CELLS = ("si", "is", "v")
"""Names of elements with the text of a cell: of a string that several cells may share, or of one cell."""
NAMESPACES = (
    "http://schemas.openxmlformats.org/spreadsheetml/2006/main",
    "http://purl.oclc.org/ooxml/spreadsheetml/main",
)
STRINGS = [f"{{{namespace}}}{name}" for namespace in NAMESPACES for name in (*CELLS, "text")]
"""Elements with the text of a cell or a comment."""
THREADED = "{http://schemas.microsoft.com/office/spreadsheetml/2018/threadedcomments}text"
MESSAGES = {"promptTitle": 32, "prompt": 255, "errorTitle": 32, "error": 255}
"""Attributes with messages about input, and how long Excel lets each be."""
MAX_CELL, MAX_HEADER = 32_767, 255
"""Number of characters that Excel allows in a cell and in a header. A longer text stays."""
REPEATING = {"tableColumn": ("name", "totalsRowLabel"), "cacheField": ("name",), "s": ("v",), "filter": ("val",)}
"""Attributes that repeat the text of a cell: of columns of tables, fields of pivots and their items, and filters."""
FORMULA = re.compile(
    rb"<(?:[\w.-]+:)?(?:f|formula\d?|definedName|calculatedColumnFormula|totalsRowFormula)(?: [^<>]*)?>([^<]+)<"
)
IN_CELLS = re.compile(rb"""["']inlineStr["']|<(?:[\w.-]+:)?c\b(?=[^<>]*+>\s*+<(?:[\w.-]+:)?v\b)[^<>]*?["']str["']""")
"""A cell with a text, and not a number of a shared string or the result of a formula."""
NO_ELEMENT = re.compile(rb"<!|<\?(?!xml\s)")
"""The start of a comment or the like, which may have a part like a tag."""
SHEET_DATA = re.compile(rb"<((?:[\w.-]+:)?sheetData)>")


def _parts(package: Package, options: ReadOptions) -> Iterator[Part]:
    names = package.reached(FOLLOWED)
    formulas = (formula for name in names for formula in FORMULA.findall(package.files[name]))
    compared = compared_texts(unescape(formula.decode("utf-8", "replace")) for formula in formulas)
    parts = [_SheetPart.of(name, package.files[name]) for name in names]
    repeated = RepeatedTexts([group for part in parts for group in part.repeating])
    for part in parts:
        texts = [text for text in part.texts(options, repeated, compared) if text.has_words]
        yield Part(part.name, texts, part.serialize, partial(part.finish, options, repeated))


rewrite = office_rewrite(_parts)


@dataclass(frozen=True)
class _SheetPart:
    """A part of a workbook. The rows of a sheet are `cut` out of its XML if all its texts are in another part."""

    name: str
    root: Element
    cut: bytes = b""

    @classmethod
    def of(cls, name: str, xml: bytes) -> "_SheetPart":
        is_whole = NO_ELEMENT.search(xml) or IN_CELLS.search(xml)
        begin = None if is_whole else SHEET_DATA.search(xml)
        end = xml.rfind(b"</%s>" % begin[1]) if begin else -1
        if begin is None or end < begin.end():
            return cls(name, parse_xml(xml, name))
        root = parse_xml(xml[: begin.end()] + xml[end:], name)
        return cls(name, root, xml[begin.end() : end])

    @property
    def repeating(self) -> list[Names]:
        """Attributes that repeat texts of cells. The texts of a group differ from each other."""
        groups = defaultdict(list)
        if self.root.get("headerRowCount") != "0":
            for element in self.root.iter(*(f"{{*}}{name}" for name in REPEATING)):
                for attribute in REPEATING[local_name(element)]:
                    if attribute in element.attrib:
                        groups[element.getparent(), attribute].append((element, attribute))
        return [*groups.values()]

    def texts(self, options: ReadOptions, repeated: RepeatedTexts, compared: Collection[str]) -> Iterator[PartText]:
        """Yield the texts of the part, in order, also texts without words."""
        for string in self.root.iter(*STRINGS):
            if local_name(string) == "v" and not _is_text(string.getparent()):
                continue
            text = string_text(string)
            if local_name(string) in CELLS:
                repeated.add(string, text)
            is_kept = local_name(string) in CELLS and folded(text) in compared
            if not is_kept and len(text) <= MAX_CELL:
                yield InlineParagraph(string, StringXml(), options)
        for header in self.root.iterfind("{*}headerFooter/*"):
            if len(header.text or "") <= MAX_HEADER:
                yield ShortText(InlineParagraph(header, HeaderXml(), options), header, None, MAX_HEADER)
        for validation in self.root.iter("{*}dataValidation"):
            for name, most in MESSAGES.items():
                yield ShortText(PlainText(validation, name), validation, name, most)
        yield from map(PlainText, self.root.iter(THREADED))
        yield from office_texts(self.root, options)

    def finish(self, options: ReadOptions, repeated: RepeatedTexts) -> bool:
        """Let names and languages follow the translations. Return whether anything was changed."""
        changed = [repeated.rename(names) for names in self.repeating]
        return mark_languages(self.root, options) or any(changed)

    def serialize(self) -> bytes:
        xml = serialize_xml(self.root)
        if not self.cut:
            return xml
        element = next(self.root.iter("{*}sheetData"))
        name = f"{element.prefix}:sheetData" if element.prefix else "sheetData"
        before, empty, after = xml.partition(f"<{name}/>".encode())
        return b"".join((before, empty[:-2], b">", self.cut, f"</{name}>".encode(), after))


def _is_text(cell: Element | None) -> bool:
    return cell is not None and cell.get("t") == "str" and cell.find("{*}f") is None


class ShortText:
    """A text of limited length. It stays if its translation is longer, because Excel would call the file damaged."""

    def __init__(self, text: PartText, element: Element, attribute: str | None, max_length: int) -> None:
        self._text, self._element, self._attribute, self._max_length = text, element, attribute, max_length
        self.has_words, self.html = text.has_words, text.html

    def write(self, translation: str) -> None:
        """Replace the text by a translation, if that is short enough."""
        self._text.write(translation)
        text = self._element.text if self._attribute is None else self._element.get(self._attribute)
        if len(text) > self._max_length:
            self._text.write(self.html)
