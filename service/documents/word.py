"""Word documents (.docx): each paragraph with words is a text: in the body, tables, headers, footers, notes and text
boxes. Files of the zip without such a paragraph stay byte for byte.
"""

import re
from collections.abc import Iterator, Sequence

from service.documents.archive import Archive, pack, parse_xml, serialize_xml, unpack
from service.documents.contents import DEFAULT_OPTIONS, Contents, ReadOptions
from service.documents.word_nodes import Element
from service.documents.word_paragraph import WordParagraph

PACKAGE_TYPES = frozenset(
    {
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.template.main+xml",
        "application/vnd.ms-word.document.macroenabled.main+xml",
    }
)
"""Content types of the main part of a document, a template and a document with macros."""
NAMESPACES = (
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "http://purl.oclc.org/ooxml/wordprocessingml/main",
)
MAIN = re.compile(r"word/document\d*\.xml")
PART = re.compile(rf"{MAIN.pattern}|word/(?:header|footer|footnotes|endnotes)\d*\.xml")
"""Files of the zip that have paragraphs to translate. Comments are left out: they are about the text."""


def read_file(data: bytes, options: ReadOptions = DEFAULT_OPTIONS) -> Contents:
    """Read a Word document.

    Raises:
        InvalidDocument: the file is damaged.
        TooLarge: the unpacked file is too large.
    """
    texts = [paragraph.html for _, _, paragraphs in _parts(unpack(data, options.max_bytes)) for paragraph in paragraphs]

    def write(translations: Sequence[str]) -> bytes:
        if [*translations] == texts:
            return data
        archive, remaining = unpack(data, options.max_bytes), iter(translations)
        replaced = {}
        for name, root, paragraphs in _parts(archive):
            changed = [(one, text) for one in paragraphs if (text := next(remaining)) != one.html]
            for paragraph, translation in changed:
                paragraph.write(translation)
            if changed:
                replaced[name] = serialize_xml(root)
        return pack(archive, replaced)

    return Contents(texts, "html", write)


def _parts(archive: Archive) -> Iterator[tuple[str, Element, list[WordParagraph]]]:
    for info, content in archive:
        if PART.fullmatch(info.filename):
            root = parse_xml(content, info.filename)
            paragraphs = map(WordParagraph, root.iter(*(f"{{{namespace}}}p" for namespace in NAMESPACES)))
            yield info.filename, root, [paragraph for paragraph in paragraphs if paragraph.has_words]
