"""Marks of languages in OpenDocument, one for each kind of letters: Western, East Asian and complex."""

from service.documents.contents import ReadOptions
from service.documents.office.languages import LANGUAGE, kind_of_letters
from service.documents.office.nodes import Element
from service.text.languages import canonical

FORMAT = "{urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0}"
STYLE = "{urn:oasis:names:tc:opendocument:xmlns:style:1.0}"
NO_COUNTRY = "none"
NO_LANGUAGE = "zxx"
NAMES = {
    "val": (f"{FORMAT}language", f"{FORMAT}country", f"{FORMAT}script", f"{STYLE}rfc-language-tag"),
    **{
        kind: tuple(f"{STYLE}{name}-{suffix}" for name in ("language", "country", "script", "rfc-language-tag"))
        for kind, suffix in (("eastAsia", "asian"), ("bidi", "complex"))
    },
}
"""The attributes of a mark, by Word's name for the kind of letters: language, country, script and tag."""


def foreign_mark(properties: Element, options: ReadOptions) -> str:
    """Return the language that properties of text name; "" if they name none, or the language of the source."""
    mark = "" if options.source is None else _mark(properties, kind_of_letters(options.source))
    return "" if canonical(mark) in (None, NO_LANGUAGE) or options.is_source(mark) else mark


def mark_languages(root: Element, options: ReadOptions) -> bool:
    """Name the target where a part names the language of the source. Return whether that changes anything."""
    if options.source is None or options.target is None:
        return False
    is_changed = False
    for properties in root.iter(f"{STYLE}text-properties"):
        marks = {kind: mark for kind in NAMES if options.is_source(mark := _mark(properties, kind))}
        if kind_of_letters(options.source) in marks:
            marks.setdefault(kind_of_letters(options.target), marks[kind_of_letters(options.source)])
        for kind, mark in marks.items():
            _set_mark(properties, kind, options.translated_mark(mark))
            is_changed = True
    for element in root.iter(LANGUAGE):
        if options.is_source(element.text or ""):
            element.text = options.translated_mark(element.text)
            is_changed = True
    return is_changed


def _mark(properties: Element, kind: str) -> str:
    """Return the mark for letters of a kind, such as en-US; "" if there is none."""
    language, country, *_ = (properties.get(name, "") for name in NAMES[kind])
    return f"{language}-{country}" if language and country not in ("", NO_COUNTRY) else language


def _set_mark(properties: Element, kind: str, mark: str) -> None:
    language, *more = mark.split("-")
    script = next((subtag for subtag in more if len(subtag) == len("Latn")), "")
    country = next((subtag for subtag in more if subtag != script), NO_COUNTRY)
    for name, value in zip(NAMES[kind], (language, country, script, ""), strict=True):
        if value:
            properties.set(name, value)
        else:
            properties.attrib.pop(name, None)
