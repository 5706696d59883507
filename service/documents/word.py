"""Word documents (.docx): each paragraph that has words is a text, wherever it stands: in the body, in tables, headers,
footers, notes and text boxes. Files in the zip that have none of them stay byte for byte.
"""

import re
from collections.abc import Iterator, Sequence

from service.documents.archive import Archive, packed, parsed, serialized, unpacked
from service.documents.contents import Contents
from service.documents.word_nodes import Element
from service.documents.word_paragraph import Paragraph

NAMESPACES = (
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "http://purl.oclc.org/ooxml/wordprocessingml/main",
)
MAIN = re.compile(r"word/document\d*\.xml")
PART = re.compile(rf"{MAIN.pattern}|word/(?:header|footer|footnotes|endnotes)\d*\.xml")
"""Files in the zip that have paragraphs to translate. Comments are not: they are about the text."""


def read(data: bytes, max_bytes: int) -> Contents:
    """Read a Word document.

    Args:
        max_bytes: how large the file may be, unpacked.

    Raises:
        UnprocessableRequest: it is damaged.
        TooLarge: it is, unpacked.
    """
    texts = [paragraph.html for _, _, paragraphs in _parts(unpacked(data, max_bytes)) for paragraph in paragraphs]

    def written(translations: Sequence[str]) -> bytes:
        if [*translations] == texts:
            return data
        archive, remaining = unpacked(data, max_bytes), iter(translations)
        replaced = {}
        for name, root, paragraphs in _parts(archive):
            changed = [(one, text) for one in paragraphs if (text := next(remaining)) != one.html]
            for paragraph, translation in changed:
                paragraph.write(translation)
            if changed:
                replaced[name] = serialized(root)
        return packed(archive, replaced)

    return Contents(texts, "html", written)


def _parts(archive: Archive) -> Iterator[tuple[str, Element, list[Paragraph]]]:
    for info, content in archive:
        if PART.fullmatch(info.filename):
            root = parsed(content, info.filename)
            paragraphs = map(Paragraph, root.iter(*(f"{{{namespace}}}p" for namespace in NAMESPACES)))
            yield info.filename, root, [paragraph for paragraph in paragraphs if paragraph.has_words]
