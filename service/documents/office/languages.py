"""Marks of languages in Office files. Word has a mark for each kind of letters: Western, East Asian and complex."""

from functools import lru_cache

from service.documents.contents import ReadOptions
from service.documents.office.nodes import Element, attribute, attribute_name, local_name
from service.text.languages import canonical, script

EAST_ASIAN = {"Jpan", "Hans", "Hant", "Kore", "Bopo"}
COMPLEX = {"Arab", "Hebr", "Syrc", "Thaa"} | {
    *("Beng", "Deva", "Gujr", "Guru", "Knda", "Mlym", "Orya", "Taml", "Telu", "Thai")
}
WORD = ("lang", "themeFontLang")
"""Names of elements with up to three marks in Word."""
DRAWING = ("rPr", "defRPr", "endParaRPr")
"""Names of elements with an attribute `lang` in DrawingML."""
LANGUAGE = "{http://purl.org/dc/elements/1.1/}language"
"""Name of the element that tells the language of a file among its properties."""


def foreign_mark(properties: Element, options: ReadOptions) -> str:
    """Return the language that the properties of a run name; "" if they name none, or the language of the source."""
    if options.source is None:
        return ""
    element = next((element for element in properties if local_name(element) == "lang"), None)
    mark = properties.get("lang", "") if element is None else attribute(element, kind_of_letters(options.source))
    return "" if canonical(mark) is None or options.is_source(mark) else mark


def mark_languages(root: Element, options: ReadOptions) -> bool:
    """Name the target where a file names the language of the source. Return whether that changes anything."""
    if options.source is None or options.target is None:
        return False
    is_changed = False
    for element in root.iter(*(f"{{*}}{name}" for name in (*WORD, *DRAWING))):
        marks = dict(element.attrib)
        if local_name(element) in DRAWING:
            changed = {"lang": options.translated_mark(marks["lang"])} if "lang" in marks else {}
        else:
            changed = _marks_of_word(element, options)
        if any(marks.get(name) != mark for name, mark in changed.items()):
            element.attrib.update(changed)
            is_changed = True
    for element in root.iter(LANGUAGE):
        mark = element.text or ""
        element.text = options.translated_mark(mark)
        is_changed = is_changed or element.text != mark
    return is_changed


def _marks_of_word(element: Element, options: ReadOptions) -> dict[str, str]:
    assert options.source is not None
    assert options.target is not None
    if "val" in element.attrib:  # a chart has one mark for all letters, without a namespace
        return {"val": options.translated_mark(element.get("val"))}
    of_source = attribute(element, kind_of_letters(options.source)) or attribute(element, "val")
    if not options.is_source(of_source):
        return {}
    marks = {name: options.translated_mark(mark) for name, mark in element.items()}
    target_name = attribute_name(element, kind_of_letters(options.target))
    return marks | {target_name: options.translated_mark(of_source)}


@lru_cache(maxsize=100)
def kind_of_letters(language: str) -> str:
    """Return the name of Word's attribute for the letters of a language."""
    letters = script(language)
    return "eastAsia" if letters in EAST_ASIAN else "bidi" if letters in COMPLEX else "val"
