"""Styles of the runs in a paragraph of an Office file: their visible properties."""

import re

from lxml import etree

from service.documents.contents import ReadOptions
from service.documents.office.languages import foreign_mark
from service.documents.office.nodes import Element, attribute, local_name

UNSEEN = {"lang", "noProof", "webHidden", "spacing", "w", "kern", "position", "snapToGrid"} | {
    *("rPrChange", "ins", "del", "moveFrom", "moveTo")
}
"""Properties of a run that no reader sees: its language, changes of it, and the exact places of its letters. Programs
that recognize printed pages change these places from word to word."""
UNSEEN_ATTRIBUTES = {"lang", "altLang", "noProof", "dirty", "err", "smtClean", "smtId", "bmk", "kern", "spc"}
"""The same in DrawingML."""
RAISED = {"sup": re.compile(r"superscript|0*[1-9]\d*%?"), "sub": re.compile(r"subscript|-0*[1-9]\d*%?")}
"""Values of Word and DrawingML for a text above or below the line."""


def style_of(run: Element, options: ReadOptions) -> bytes:
    """Return the visible properties of a run: elements in Word, attributes too in DrawingML."""
    properties = properties_of(run)
    if properties is None:
        return b""
    attributes = sorted(f"{name}={value} " for name, value in properties.items() if name not in UNSEEN_ATTRIBUTES)
    elements = (_shown(element) for element in properties if local_name(element) not in UNSEEN)
    return "".join([*attributes, foreign_mark(properties, options)]).encode() + b"".join(elements)


def _shown(element: Element) -> bytes:
    if local_name(element) != "rFonts":
        xml: bytes = etree.tostring(element, with_tail=False)
        return xml
    # A hint tells which of the fonts has the letters that Western and Japanese texts share.
    fonts = sorted(item for item in element.items() if not item[0].endswith("}hint"))
    return repr(fonts).strip("[]").encode()


def properties_of(run: Element) -> Element | None:
    return next((child for child in run if local_name(child) == "rPr"), None)


def vertical_tag(run: Element) -> str:
    """Return the element of HTML for raised or lowered text: sup, sub, or ""."""
    properties = properties_of(run)
    if properties is None:
        return ""
    height = next((attribute(element, "val") for element in properties if local_name(element) == "vertAlign"), "")
    height = height or properties.get("baseline", "")
    return next((tag for tag, pattern in RAISED.items() if pattern.fullmatch(height)), "")


def exact_style(run: Element) -> bytes:
    """Return all properties of a run, also invisible ones."""
    properties = properties_of(run)
    return b"" if properties is None else etree.tostring(properties, with_tail=False)
