"""Read and write documents that are zips of XML files: Office files and OpenDocument."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from service.documents.archive import Archive, pack, parse_xml, serialize_xml, unpack
from service.documents.contents import Contents, ReadOptions, Rewrite, Rewriting
from service.documents.office.drawing import PlainText
from service.documents.office.languages import mark_languages
from service.documents.office.nodes import Element
from service.documents.packages import ROOT, Package

TITLES = ("{http://purl.org/dc/elements/1.1/}title", "{http://purl.org/dc/elements/1.1/}subject")


class PartText(Protocol):
    """A text of a part."""

    html: str
    has_words: bool

    def write(self, translation: str) -> None:
        """Replace the text by a translation."""


@dataclass(frozen=True)
class Part:
    """An XML file of a document.

    Args:
        name: the name of the file in the zip.
        texts: its texts with words, in order.
        serialize: returns the XML with the translations.
        finish: lets other content follow the translations, after all texts are written. It returns whether it changed
            the part.
    """

    name: str
    texts: Sequence[PartText]
    serialize: Callable[[], bytes]
    finish: Callable[[], bool] = lambda: False


ReadParts = Callable[[Archive, ReadOptions], Iterable[Part]]


def rewrite_parts(data: bytes, options: ReadOptions, parts_of: ReadParts) -> Rewriting:
    """Rewrite a document by its parts. Files of the zip in which nothing changes stay byte for byte. Raises
    InvalidDocument: the file is damaged. TooLarge: the unpacked file is too large."""
    archive = unpack(data, options.max_bytes)
    parts = [*parts_of(archive, options)]
    texts = [(part, text) for part in parts for text in part.texts]
    translations = yield Contents([text.html for _, text in texts], "html")
    changed = set()
    for (part, text), translation in [*zip(texts, translations, strict=True)][::-1]:  # what is inside of others first
        if translation != text.html:
            text.write(translation)
            changed.add(part.name)
    if not changed:
        return data
    changed |= {part.name for part in parts if part.finish()}
    return pack(archive, {part.name: part.serialize() for part in parts if part.name in changed})


def office_rewrite(parts_of: Callable[[Package, ReadOptions], Iterable[Part]]) -> Rewrite:
    """Return the function that rewrites Office files of a kind. `parts_of` returns parts, except properties."""

    def all_parts(archive: Archive, options: ReadOptions) -> Iterator[Part]:
        package = Package.of(archive)
        yield from parts_of(package, options)
        yield from _core_properties(package, options)

    return partial(rewrite_parts, parts_of=all_parts)


def office_part(name: str, root: Element, texts: Sequence[PartText], options: ReadOptions) -> Part:
    """Return a part of an Office file, which names the target language in place of the source."""
    return Part(name, texts, partial(serialize_xml, root), partial(mark_languages, root, options))


def _core_properties(package: Package, options: ReadOptions) -> Iterator[Part]:
    for link in package.relationships(ROOT):
        if link.kind == "core-properties" and link.target in package.files:
            root = parse_xml(package.files[link.target], link.target)
            texts = [text for text in map(PlainText, root.iter(*TITLES)) if text.has_words]
            yield office_part(link.target, root, texts, options)
