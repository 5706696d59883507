"""Word documents (.docx): each paragraph with words is a text, wherever a reader finds it.

The parts of a document are found by their relationships. Parts in which nothing is changed stay byte for byte.
"""

from collections.abc import Iterator, Sequence

from service.base.errors import InvalidDocument
from service.documents.archive import pack, parse_xml, serialize_xml, unpack
from service.documents.contents import DEFAULT_OPTIONS, Contents, ReadOptions
from service.documents.drawing import OfficeText, PlainText, office_texts
from service.documents.office_languages import mark_languages
from service.documents.office_nodes import Element
from service.documents.packages import ROOT, Package

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
WITH_TEXTS = {
    *("header", "footer", "footnotes", "endnotes", "comments"),
    *("chart", "chartEx", "chartUserShapes", "diagramData", "diagramDrawing"),
}
"""Kinds of relationships to parts with texts."""
WITH_LANGUAGES = {"styles", "stylesWithEffects", "settings", "numbering"}
"""Kinds of relationships to parts that name languages, and have no text."""
PROPERTIES = "core-properties"
TITLES = ("{http://purl.org/dc/elements/1.1/}title", "{http://purl.org/dc/elements/1.1/}subject")


def read_file(data: bytes, options: ReadOptions = DEFAULT_OPTIONS) -> Contents:
    """Read a Word document.

    Raises:
        InvalidDocument: the file is damaged.
        TooLarge: the unpacked file is too large.
    """
    package = Package.of(unpack(data, options.max_bytes))
    texts = [text.html for _, _, inside in _parts(package, options) for text in inside]

    def write(translations: Sequence[str]) -> bytes:
        if [*translations] == texts:
            return data
        archive, remaining = unpack(data, options.max_bytes), iter(translations)
        replaced = {}
        for name, root, inside in _parts(Package.of(archive), options):
            changed = [(one, text) for one in inside if (text := next(remaining)) != one.html]
            for one, translation in changed:
                one.write(translation)
            if mark_languages(root, options) or changed:
                replaced[name] = serialize_xml(root)
        return pack(archive, replaced)

    return Contents(texts, "html", write)


def _parts(package: Package, options: ReadOptions) -> Iterator[tuple[str, Element, list[OfficeText]]]:
    """Yield the name, the root and the texts of each part that has texts or marks of languages."""
    for name, kind in _kinds_of_parts(package).items():
        root = parse_xml(package.files[name], name)
        if kind == PROPERTIES:
            yield name, root, [text for text in map(PlainText, root.iter(*TITLES)) if text.has_words]
        else:
            yield name, root, [] if kind in WITH_LANGUAGES else [*office_texts(root, options, PARAGRAPHS)]


def _kinds_of_parts(package: Package) -> dict[str, str]:
    """Map the name of each such part to the kind of its relationship, the main part first.

    Raises:
        InvalidDocument: there is no main part.
    """
    main = package.main
    if main is None or main not in package.files:
        raise InvalidDocument("The file is damaged: its main part is missing")
    kinds = {main: ""}
    waiting = [main]
    while waiting:
        for one in package.relationships(waiting.pop(0)):
            if one.kind in WITH_TEXTS | WITH_LANGUAGES and one.target in package.files and one.target not in kinds:
                kinds[one.target] = one.kind
                waiting.append(one.target)
    properties = (one.target for one in package.relationships(ROOT) if one.kind == PROPERTIES)
    return kinds | {name: PROPERTIES for name in properties if name in package.files and name not in kinds}
