"""Sums of files, by which a changed file is known."""

import hashlib
from io import BufferedReader
from pathlib import Path

from pydantic import BaseModel, ConfigDict


class FileSum(BaseModel):
    """Checksum and size of a file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sha256: str
    bytes: int


def sum_of_file(path: Path) -> FileSum:
    """Raises OSError: the file cannot be read."""
    with path.open("rb") as file:
        return sum_of_opened(file)


def sum_of_opened(file: BufferedReader) -> FileSum:
    """Return the sum of a file that is at its start."""
    digest = hashlib.file_digest(file, "sha256").hexdigest()
    return FileSum(sha256=digest, bytes=file.tell())


def sum_of_content(content: bytes) -> FileSum:
    """Return the sum of a file's content."""
    return FileSum(sha256=hashlib.sha256(content).hexdigest(), bytes=len(content))
