"""Files that may be compressed, each by itself, as Firefox's models are distributed."""

import gzip
import zlib
from pathlib import Path

from model.importing.imported import ModelImportError

COMPRESSED = ".gz"
MAX_RATIO, MAX_SMALL = 100, 10_000_000
"""A file may unpack to so many times its size, or to so many bytes. Weights and vocabularies unpack to a few times."""
GZIP, ZSTANDARD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
"""First bytes of compressed files."""


def read_packed(path: Path, size: int = -1) -> bytes:
    """Return the content of a file, or its first bytes, unpacked if it is compressed by gzip. Raises ModelImportError:
    the file is missing, damaged, or compressed in another way."""
    try:
        with path.open("rb") as file:
            start = file.read(len(ZSTANDARD))
            if start == ZSTANDARD:
                raise ModelImportError(f"{path.name} is compressed by Zstandard; unpack it first: zstd -d {path.name}")
            file.seek(0)
            if not start.startswith(GZIP):
                return file.read(size)
            with gzip.open(file) as unpacked:
                content = unpacked.read(size if size >= 0 else _most_unpacked(path) + 1)
            refuse_bomb(path, len(content))
            return content
    except (OSError, EOFError, zlib.error) as error:
        raise ModelImportError(f"{path.name} is missing or damaged: {error}") from error


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
