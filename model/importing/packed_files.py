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
    """Return the content of a file, or its first bytes, unpacked if it is compressed by gzip.

    Raises:
        ModelImportError: the file is missing, damaged, or compressed in another way.
    """
    try:
        with path.open("rb") as file:
            start = file.read(len(ZSTANDARD))
            if start == ZSTANDARD:
                raise ModelImportError(f"{path.name} is compressed by Zstandard; unpack it first: zstd -d {path.name}")
            file.seek(0)
            if not start.startswith(GZIP):
                return file.read(size)
            most = max(MAX_RATIO * path.stat().st_size, MAX_SMALL)
            with gzip.open(file) as unpacked:
                content = unpacked.read(size if size >= 0 else most + 1)
            if len(content) > most:
                raise ModelImportError(f"{path.name} unpacks to more than {most} bytes, {MAX_RATIO} times its size")
            return content
    except (OSError, EOFError, zlib.error) as error:
        raise ModelImportError(f"{path.name} is missing or damaged: {error}") from error
