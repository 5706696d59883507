"""Files that may be compressed, each by itself, as Firefox's models are distributed."""

import gzip
import zlib
from pathlib import Path
from typing import BinaryIO

from model.importing.imported import ModelImportError

PACKED = ("", ".gz", ".zst")
"""Suffixes that a file may have, the unpacked one first."""
MAX_RATIO, MAX_SMALL = 100, 10_000_000
"""A file may unpack to so many times its size, or to so many bytes. Weights and vocabularies unpack to a few times."""
CHUNK = 1024
"""Bytes of a file that are unpacked by Zstandard at once: to 32 MB at most."""
GZIP, ZSTANDARD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
"""First bytes of compressed files."""


def read_packed(path: Path, size: int = -1) -> bytes:
    """Return the content of a file, or its first bytes, unpacked if it is compressed by gzip or Zstandard. Raises
    ModelImportError: the file is missing or damaged."""
    try:
        with path.open("rb") as file:
            start = file.read(len(ZSTANDARD))
            file.seek(0)
            if not start.startswith((GZIP, ZSTANDARD)):
                return file.read(size)
            most = size if size >= 0 else _most_unpacked(path) + 1
            if start == ZSTANDARD:
                content = _unpacked_by_zstandard(file, most)
            else:
                with gzip.open(file) as unpacked:
                    content = unpacked.read(most)
            refuse_bomb(path, len(content))
            return content
    except (OSError, EOFError, zlib.error) as error:
        raise ModelImportError(f"{path.name} is missing or damaged: {error}") from error


def unpacked_name(name: str) -> str:
    """Return the name of a file without the suffix of its compression."""
    return next((name.removesuffix(suffix) for suffix in PACKED if suffix and name.endswith(suffix)), name)


def _unpacked_by_zstandard(file: BinaryIO, most: int) -> bytes:
    """Return the first `most` bytes. Raises OSError: the file is damaged. Raises EOFError: it is cut off."""
    import zstandard  # no other format needs it

    reader, content = zstandard.ZstdDecompressor().decompressobj(), bytearray()
    try:
        while len(content) < most and (chunk := file.read(CHUNK)):
            content += reader.decompress(chunk)
    except zstandard.ZstdError as error:
        raise OSError(str(error)) from error
    if len(content) < most and not reader.eof:
        raise EOFError("it ends too early")
    return bytes(content[:most])


def refuse_bomb(path: Path, unpacked: int) -> None:
    """Refuse a packed file that was made to fill memory or disk.

    Args:
        unpacked: number of bytes to which it unpacks.

    Raises:
        ModelImportError: they are too many for the size of the file.
    """
    if unpacked > (most := _most_unpacked(path)):
        raise ModelImportError(f"{path.name} unpacks to more than {most} bytes, {MAX_RATIO} times its size")


def _most_unpacked(path: Path) -> int:
    return max(MAX_RATIO * path.stat().st_size, MAX_SMALL)
