"""Files that may be compressed, each by itself, as Firefox's models are distributed."""

import gzip
import zlib
from pathlib import Path

from model.importing.imported import ModelImportError

COMPRESSED = ".gz"
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
            with gzip.open(file) as unpacked:
                return unpacked.read(size)
    except (OSError, EOFError, zlib.error) as error:
        raise ModelImportError(f"{path.name} is missing or damaged: {error}") from error
