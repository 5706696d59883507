"""Books (.epub) of EPUB 2 and 3: pages, tables of contents, title and description. All else stays byte for byte.

The package document names the pages, and their order.
"""

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from urllib.parse import unquote

from lxml import etree

from service.base.errors import InvalidDocument
from service.documents.archive import Archive, pack, parse_xml, unpack
from service.documents.contents import Contents, ReadOptions, Rewriting
from service.documents.web.epub_metadata import read_metadata
from service.documents.web.html import read_page
from service.documents.web.pieces import FileInPieces

PACKAGE_TYPES = frozenset({"application/epub+zip"})
CONTAINER, ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"
FONT_OBFUSCATION = {"http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC"}
"""The algorithms of encryption that hide fonts only."""
PAGES = ("application/xhtml+xml", "text/html")
NCX = "application/x-dtbncx+xml"
DOCTYPE = re.compile(rb"<!DOCTYPE[^<>\[]*>")
"""A document type without declarations of its own."""
ReadPart = Callable[[bytes, ReadOptions], FileInPieces]


def rewrite(data: bytes, options: ReadOptions) -> Rewriting:
    """Rewrite a book. Raises InvalidDocument: it is damaged, or its pages are encrypted. TooLarge: it is too large."""
    archive = unpack(data, options.max_bytes)
    parts = _read_parts(archive, options)
    texts = [text for part in parts.values() for text in part.texts]
    translations = yield Contents(texts, "html")
    if translations == texts:
        return data
    remaining = iter(translations)
    return pack(archive, {name: part.write([*islice(remaining, len(part.texts))]) for name, part in parts.items()})


def _read_parts(archive: Archive, options: ReadOptions) -> dict[str, FileInPieces]:
    files = {info.filename: content for info, content in archive}
    if CONTAINER not in files:
        raise InvalidDocument(f"The file is a damaged book: it has no {CONTAINER}")
    _refuse_encrypted(files)
    readers: dict[str, ReadPart] = {}
    for name in _packages(files):
        readers.setdefault(name, read_metadata)
        for part, read in _parts_of_package(parse_xml(DOCTYPE.sub(b"", files[name], 1), name), posixpath.dirname(name)):
            readers.setdefault(part, read)
    return {name: read(files[name], options) for name, read in readers.items() if name in files}


def _refuse_encrypted(files: Mapping[str, bytes]) -> None:
    if ENCRYPTION in files:
        for method in parse_xml(files[ENCRYPTION], ENCRYPTION).iter("{*}EncryptionMethod"):
            if method.get("Algorithm") not in FONT_OBFUSCATION:
                raise InvalidDocument("The book is encrypted: only a book without copy protection can be translated")


def _packages(files: Mapping[str, bytes]) -> list[str]:
    names = [rootfile.get("full-path", "") for rootfile in parse_xml(files[CONTAINER], CONTAINER).iter("{*}rootfile")]
    names = [*dict.fromkeys(name if name in files else unquote(name) for name in names)]
    if not files.keys() & {*names}:
        raise InvalidDocument(f"The file is a damaged book: {CONTAINER} names no file in it")
    return [name for name in names if name in files]


def _parts_of_package(package: etree._Element, folder: str) -> Iterator[tuple[str, ReadPart]]:
    items = {item.get("id"): item for item in package.iter("{*}item")}
    spine = [items[idref] for link in package.iter("{*}itemref") if (idref := link.get("idref")) in items]
    in_order = sorted([*spine, *items.values()], key=lambda item: item.get("media-type") == NCX)
    for item in in_order:
        kind, path = item.get("media-type", ""), unquote(item.get("href", "").partition("#")[0])
        name = posixpath.normpath(posixpath.join(folder, path))
        if kind in PAGES:
            yield name, read_page
        elif kind == NCX:
            yield name, read_metadata
