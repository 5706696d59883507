"""OpenDocument files: texts, spreadsheets and presentations (.odt, .ods, .odp).

Each paragraph or heading with words is a text: in the body, tables, headers, footers, notes, comments, text boxes,
speakers' notes and titles of charts. So is the description of a picture. Parts without words stay byte for byte.
"""

import re
from collections.abc import Collection, Iterator
from functools import partial

from lxml import etree

from service.base.errors import InvalidDocument
from service.documents.archive import Archive, parse_xml, serialize_xml
from service.documents.contents import ReadOptions, Rewriting
from service.documents.office.drawing import PlainText
from service.documents.office.formulas import compared_texts, folded
from service.documents.office.inline_paragraph import InlineParagraph
from service.documents.office.nodes import Element, attribute, local_name
from service.documents.office.open_document_languages import mark_languages
from service.documents.office.open_document_spans import TEXT, SpanXml
from service.documents.office.parts import TITLES, Part, PartText, rewrite_parts

OFFICE, STYLE, TABLE, FORM, PRESENTATION, SVG = (
    f"{{urn:oasis:names:tc:opendocument:xmlns:{name}:1.0}}"
    for name in ("office", "style", "table", "form", "presentation", "svg-compatible")
)
MEDIA_TYPES = {
    ending: f"application/vnd.oasis.opendocument.{name}"
    for ending, name in ((".odt", "text"), (".ods", "spreadsheet"), (".odp", "presentation"))
}
"""The media type of each kind of file, by its ending. Templates have `-template` at the end of theirs."""
MANIFEST = "META-INF/manifest.xml"
DOCTYPE = re.compile(rb"<!DOCTYPE[^<>\[]*>")
"""The type of a manifest by OpenOffice 2, which defines nothing."""
TEXTS = frozenset(
    (
        *(f"{{{TEXT}}}{name}" for name in ("p", "h", "index-title-template")),
        *(f"{PRESENTATION}{name}-decl" for name in ("header", "footer", "date-time")),
        *(f"{namespace}{name}" for namespace in (SVG, TABLE) for name in ("title", "desc")),
        *TITLES,
    )
)
"""Elements that contain a text: paragraphs, headers and footers of slides, descriptions of pictures."""
CELLS = (f"{TABLE}table-cell", f"{TABLE}covered-table-cell")
STRING_VALUE = f"{OFFICE}string-value"
"""The value of a cell with text, beside the text that it shows."""
SHOWN_ATTRIBUTES = (f"{FORM}label", f"{FORM}title", f"{OFFICE}title")
"""Labels of forms, and texts that are shown beside the pointer."""
DELETED = (f"{{{TEXT}}}tracked-changes", f"{TABLE}tracked-changes")
SHOWN = ("header", "footer", "date-time", "page-number")
"""Frames of a master page that its slides show. Its other frames have prompts, which only authors see."""
FORMULAS = (f"{TABLE}formula", f"{TABLE}condition", f"{STYLE}condition")
NAMED = {
    f"{TABLE}filter-condition": f"{TABLE}value",
    f"{TABLE}filter-set-item": f"{TABLE}value",
    f"{TABLE}data-pilot-field": f"{TABLE}source-field-name",
    f"{TABLE}data-pilot-member": f"{TABLE}name",
}
"""Attributes that name the text of a cell, by element."""


def rewrite(data: bytes, options: ReadOptions) -> Rewriting:
    """Rewrite an OpenDocument file. Raises InvalidDocument: it is damaged or encrypted. TooLarge: it is too large."""
    return rewrite_parts(data, options, _parts)


def _parts(archive: Archive, options: ReadOptions) -> Iterator[Part]:
    files = {info.filename: content for info, content in archive}
    folders = _folders(files.get(MANIFEST))
    for name in (*(f"{folder}{part}" for folder in folders for part in ("content.xml", "styles.xml")), "meta.xml"):
        if name in files:
            root = parse_xml(files[name], name)
            xml = SpanXml(root, options)
            texts: Iterator[PartText] = (
                PlainText(element, name) if name else InlineParagraph(element, xml, options)
                for element, name in _texts(root, _compared_texts(root))
            )
            finish = partial(mark_languages, root, options)
            yield Part(name, [text for text in texts if text.has_words], partial(serialize_xml, root), finish)


def _folders(manifest: bytes | None) -> dict[str, None]:
    """Return the folders of the document itself and of documents in it, such as charts. Raises InvalidDocument."""
    xml = DOCTYPE.sub(b"", manifest or b"<manifest/>", 1)
    entries = [*parse_xml(xml, MANIFEST).iter("{*}file-entry")]
    if any(local_name(child) == "encryption-data" for entry in entries for child in entry):
        raise InvalidDocument("The file is encrypted: save it without a password")
    documents = (entry for entry in entries if attribute(entry, "media-type").startswith("application/vnd.oasis."))
    folders = (attribute(entry, "full-path").strip("/") for entry in documents)
    return dict.fromkeys(["", *(f"{folder}/" for folder in folders if folder)])


def _texts(element: Element, compared: Collection[str]) -> Iterator[tuple[Element, str | None]]:
    """Yield the elements with a text, in order, each with the name of the attribute that has it, or None. Formulas
    compare cells with the texts in `compared`."""
    stays = element.tag in CELLS and _stays(element, compared)
    if not stays and element.tag in CELLS and element.get(STRING_VALUE):
        yield element, STRING_VALUE
    for child in element.iterchildren(etree.Element):
        if child.tag in DELETED or _is_unseen(child) or (stays and child.tag in TEXTS):
            continue
        if child.tag in TEXTS:
            yield child, None
        for name in SHOWN_ATTRIBUTES:
            if child.get(name):
                yield child, name
        yield from _texts(child, compared)


def _stays(cell: Element, compared: Collection[str]) -> bool:
    """Return whether a cell is a number, a date or a result, or has a text that a formula compares it with."""
    if cell.get(f"{TABLE}formula") is not None or cell.get(f"{OFFICE}value-type", "string") != "string":
        return True
    texts = ("".join(text.itertext()) for text in cell.iterchildren(*TEXTS))
    return bool(compared) and folded("\n".join(texts)) in compared


def _is_unseen(element: Element) -> bool:
    """Return whether an element is a prompt of a slide or a master page, or names the cells of a chart."""
    if element.tag == f"{SVG}desc":
        return next(element.iterancestors(f"{OFFICE}chart"), None) is not None
    kind = element.get(f"{PRESENTATION}class", SHOWN[0])
    is_prompt = kind not in SHOWN and next(element.iterancestors(f"{OFFICE}master-styles"), None) is not None
    return is_prompt or element.get(f"{PRESENTATION}placeholder") == "true"


def _compared_texts(root: Element) -> set[str]:
    formulas: list[str] = []
    names: set[str] = set()
    if root.find("{*}body/{*}spreadsheet") is None:
        return names
    for element in root.iter(etree.Element):
        formulas += [formula for name in FORMULAS if (formula := element.get(name))]
        if element.tag in NAMED:
            names.add(folded(element.get(NAMED[element.tag], "")))
    return names | compared_texts(formulas)
