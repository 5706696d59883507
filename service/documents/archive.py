"""A file that is a zip with XML in it, opened with care: it may be damaged, or made to fill the memory."""

import io
import zipfile
import zlib
from collections.abc import Mapping

from lxml import etree

from service.base.errors import InvalidDocument, TooLarge

BEGINS = b"PK\x03\x04"
METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
"""Ways to compress that documents may use."""
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, ValueError)

MAX_FILES = 10_000
MAX_TAGS = 1_000_000
"""The limit of tags in a file of XML: each takes some 100 bytes of memory."""

Archive = list[tuple[zipfile.ZipInfo, bytes]]


def is_zip(data: bytes) -> bool:
    return data.startswith(BEGINS)


def names(data: bytes) -> set[str]:
    """Return the names of the files in a zip.

    Raises:
        InvalidDocument: it is damaged.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as opened:
            return set(opened.namelist())
    except DAMAGED as error:
        raise InvalidDocument(f"The file is a damaged zip: {error}") from None


def unpacked(data: bytes, max_bytes: int) -> Archive:
    """Return every file in a zip, in order.

    Raises:
        InvalidDocument: it is damaged, encrypted, or packed in an unusual way.
        TooLarge: unpacked it is larger than `max_bytes`, or of too many files.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as opened:
            _check(opened.infolist(), max_bytes)
            return [(info, opened.read(info)) for info in opened.infolist()]
    except DAMAGED as error:
        raise InvalidDocument(f"The file is a damaged zip: {error}") from None


def packed(archive: Archive, replaced: Mapping[str, bytes]) -> bytes:
    """Pack the archive with other contents for some of its files; the rest has its names, times and bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as writing:
        for info, content in archive:
            writing.writestr(info, replaced.get(info.filename, content))
    return buffer.getvalue()


def parsed(xml: bytes, name: str) -> etree._Element:
    """Return the root of a file of XML; nothing that it names is loaded or put in.

    Raises:
        InvalidDocument: it is no XML in UTF-8 or UTF-16, or has a document type definition.
        TooLarge: it has too many tags.
    """
    if xml.startswith((b"\xff\xfe", b"\xfe\xff")):
        xml = xml.decode("utf-16", "replace").encode()
    if (n_tags := xml.count(b"<")) > MAX_TAGS:
        raise TooLarge(f"{name} has {n_tags} tags; the limit is {MAX_TAGS}")
    if b"<!DOCTYPE" in xml:
        raise InvalidDocument(f"{name} has a document type definition, which no document has")
    parser = etree.XMLParser(encoding="utf-8", resolve_entities=False, no_network=True, load_dtd=False)
    try:
        return etree.fromstring(xml, parser)
    except etree.XMLSyntaxError as error:
        raise InvalidDocument(f"{name} is damaged: {error.msg}") from None


def serialized(root: etree._Element) -> bytes:
    xml: bytes = etree.tostring(root.getroottree(), xml_declaration=True, encoding="UTF-8", standalone=True)
    return xml


def _check(infos: list[zipfile.ZipInfo], max_bytes: int) -> None:
    if len(infos) > MAX_FILES:
        raise TooLarge(f"The file contains {len(infos)} files; the limit is {MAX_FILES}")
    n_bytes = sum(info.file_size for info in infos)  # no file is read further than it says
    if n_bytes > max_bytes:
        raise TooLarge(f"The unpacked file has {n_bytes} bytes; the limit is {max_bytes}")
    if len({info.filename for info in infos}) < len(infos):
        raise InvalidDocument("The file is a damaged zip: two files in it have the same name")
    for info in infos:
        if info.flag_bits & 1:
            raise InvalidDocument("The file is encrypted: save it without a password")
        if info.compress_type not in METHODS:
            raise InvalidDocument(f"{info.filename} is compressed in a way that documents do not use")
