"""Read and write zip files that contain XML. A file may be damaged, or made to fill the memory."""

import io
import re
import zipfile
import zlib
from collections.abc import Collection, Mapping

from lxml import etree

from service.base.errors import InvalidDocument, TooLarge

SIGNATURE = b"PK\x03\x04"
METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
"""Compression methods that documents may use."""
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, ValueError)
MAX_FILES = 10_000
MAX_NAME_BYTES = 2**16 - 1
"""The longest name that a zip can have. A name in an old encoding may become longer when it is written."""
MAX_TAGS = 1_000_000
"""The limit of tags in an XML file: each takes some 100 bytes of memory."""
INVALID_XML = re.compile(r"[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
Archive = list[tuple[zipfile.ZipInfo, bytes]]


def is_zip(data: bytes) -> bool:
    return data.startswith(SIGNATURE)


def unpack(data: bytes, max_bytes: int, names: Collection[str] | None = None) -> Archive:
    """Return the files in a zip archive (those in `names`, or all), in order.

    Raises InvalidDocument: the zip is damaged, encrypted, or compressed by an unusual method. TooLarge: the unpacked
    files are larger than `max_bytes`, or too many.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as opened:
            infos = [info for info in opened.infolist() if names is None or info.filename in names]
            _check(infos, max_bytes)
            return [(info, opened.read(info)) for info in infos]
    except DAMAGED as error:
        raise InvalidDocument(f"The file is a damaged zip: {error}") from None


def pack(archive: Archive, replaced: Mapping[str, bytes]) -> bytes:
    """Pack an archive, with new contents for some of its files. All other files keep their names, times and bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as writing:
        for info, content in archive:
            writing.writestr(info, replaced.get(info.filename, content))
    return buffer.getvalue()


def parse_xml(xml: bytes, name: str) -> etree._Element:
    """Parse an XML file, and return its root. External entities are never loaded. Raises InvalidDocument: the file is
    not XML in UTF-8 or UTF-16, or has a document type definition. TooLarge: it has too many tags."""
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


def serialize_xml(root: etree._Element) -> bytes:
    xml: bytes = etree.tostring(root.getroottree(), xml_declaration=True, encoding="UTF-8", standalone=True)
    return xml


def _check(infos: list[zipfile.ZipInfo], max_bytes: int) -> None:
    if len(infos) > MAX_FILES:
        raise TooLarge(f"The file contains {len(infos)} files; the limit is {MAX_FILES}")
    n_bytes = sum(info.file_size for info in infos)  # zipfile reads no more of a file than its header says
    if n_bytes > max_bytes:
        raise TooLarge(f"The unpacked file has {n_bytes} bytes; the limit is {max_bytes}")
    if len({info.filename for info in infos}) < len(infos):
        raise InvalidDocument("The file is a damaged zip: two files in it have the same name")
    for info in infos:
        if len(info.filename.encode()) > MAX_NAME_BYTES:
            raise InvalidDocument("The file is a damaged zip: the name of a file in it is too long")
        if info.flag_bits & 1:
            raise InvalidDocument("The file is encrypted: save it without a password")
        if info.compress_type not in METHODS:
            raise InvalidDocument(f"{info.filename} is compressed in a way that documents do not use")
