"""Read and write documents that are zips of XML files: Office files and OpenDocument."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from service.documents.archive import Archive, pack, parse_xml, serialize_xml, unpack
from service.documents.contents import DEFAULT_OPTIONS, Contents, ReadOptions
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
        texts: its texts that have words, in order.
        serialize: returns the XML with the translations.
        finish: changes what must follow the translations, after all texts are written. It returns whether it changed
            the part.
    """

    name: str
    texts: Sequence[PartText]
    serialize: Callable[[], bytes]
    finish: Callable[[], bool] = lambda: False


ReadParts = Callable[[Archive, ReadOptions], Iterable[Part]]


def read_parts(data: bytes, options: ReadOptions, parts_of: ReadParts) -> Contents:
    """Read a document by its parts. Files of the zip in which nothing changes stay byte for byte.

    Raises:
        InvalidDocument: the file is damaged.
        TooLarge: the unpacked file is too large.
    """
    texts = [text.html for part in parts_of(unpack(data, options.max_bytes), options) for text in part.texts]

    def write(translations: Sequence[str]) -> bytes:
        archive, remaining = unpack(data, options.max_bytes), iter(translations)
        parts = [*parts_of(archive, options)]
        changed = set()
        for part in parts:
            for text in part.texts:
                if (translation := next(remaining)) != text.html:
                    text.write(translation)
                    changed.add(part.name)
        changed |= {part.name for part in parts if part.finish()}
        return pack(archive, {part.name: part.serialize() for part in parts if part.name in changed})

    return Contents(texts, "html", write, data)


def office_reader(parts_of: Callable[[Package, ReadOptions], Iterable[Part]]) -> Callable[..., Contents]:
    """Return the function that reads Office files of a kind.

    Args:
        parts_of: returns the parts with texts, without the properties of the file.
    """

    def all_parts(archive: Archive, options: ReadOptions) -> Iterator[Part]:
        package = Package.of(archive)
        yield from parts_of(package, options)
        yield from _core_properties(package, options)

    def read_file(data: bytes, options: ReadOptions = DEFAULT_OPTIONS) -> Contents:
        return read_parts(data, options, all_parts)

    return read_file


def office_part(name: str, root: Element, texts: Sequence[PartText], options: ReadOptions) -> Part:
    """Return a part of an Office file, in which the target is named where the source was."""
    return Part(name, texts, partial(serialize_xml, root), partial(mark_languages, root, options))


def _core_properties(package: Package, options: ReadOptions) -> Iterator[Part]:
    """Yield the part with the title and the subject of an Office file."""
    for one in package.relationships(ROOT):
        if one.kind == "core-properties" and one.target in package.files:
            root = parse_xml(package.files[one.target], one.target)
            texts = [text for text in map(PlainText, root.iter(*TITLES)) if text.has_words]
            yield office_part(one.target, root, texts, options)
