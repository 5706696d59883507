"""Word documents (.docx): each paragraph with words is a text, wherever a reader finds it.

The parts of a document are found by their relationships. Parts in which nothing is changed stay byte for byte.
"""

from collections.abc import Iterator

from service.documents.archive import parse_xml
from service.documents.contents import ReadOptions
from service.documents.office.drawing import PlainText, office_texts
from service.documents.office.nodes import Element, attribute
from service.documents.office.parts import Part, PartText, office_part, office_rewrite
from service.documents.packages import GRAPHICS, MAIN, Package

PACKAGE_TYPES = frozenset(
    {
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.template.main+xml",
        "application/vnd.ms-word.document.macroenabled.main+xml",
        "application/vnd.ms-word.template.macroenabledtemplate.main+xml",
    }
)
"""Content types of the main part of a document and of a template, without and with macros."""
PARAGRAPHS = (
    "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}p",
    "{http://purl.oclc.org/ooxml/wordprocessingml/main}p",
)
WITH_LANGUAGES = ("styles", "stylesWithEffects", "settings")
"""Kinds of links to parts that name languages, and have no text."""
KINDS = ("header", "footer", "footnotes", "endnotes", "comments", "numbering", *GRAPHICS, *WITH_LANGUAGES)
FOLLOWED = dict.fromkeys((MAIN, *KINDS), KINDS)


def _parts(package: Package, options: ReadOptions) -> Iterator[Part]:
    for name, kind in package.reached(FOLLOWED).items():
        root = parse_xml(package.files[name], name)
        texts: list[PartText] = []
        if kind == "numbering":
            texts += _numbering_texts(root)
        elif kind not in WITH_LANGUAGES:
            texts += office_texts(root, options, PARAGRAPHS)
        yield office_part(name, root, texts, options)


def _numbering_texts(root: Element) -> Iterator[PlainText]:
    """Yield what Word writes before numbered paragraphs, such as "Chapter %1.", but no bullets, which may be signs."""
    for level in root.iter("{*}lvl"):
        if not any(attribute(number, "val") == "bullet" for number in level.iterfind("{*}numFmt")):
            for text in level.iterfind("{*}lvlText"):
                yield from (PlainText(text, key) for key, value in text.items() if any(map(str.isalpha, value)))


rewrite = office_rewrite(_parts)
