"""The files of documents: originals and translations. Only the user that runs the service can read them."""

import os
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Literal, get_args

from service.base.errors import UnknownDocument

Part = Literal["source", "result"]

MIN_ORPHAN_AGE_S = 15.0
"""A file without a job is deleted at this age. A younger file may be about to get its job."""


class JobFiles:
    """The files of all jobs. Reading a deleted file raises UnknownDocument.

    Args:
        directory: the folder of the files. It is made with the first file.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def delete(self, job_id: str, *parts: Part) -> None:
        """Delete the original, the translation, or both if none is named."""
        for part in parts or get_args(Part):
            self._path(job_id, part).unlink(missing_ok=True)

    def delete_others(self, known: Collection[str]) -> None:
        """Delete files that belong to no known job."""
        for file in self._directory.iterdir() if self._directory.is_dir() else ():
            with suppress(FileNotFoundError):
                if file.stem not in known and file.stat().st_mtime < time.time() - MIN_ORPHAN_AGE_S:
                    file.unlink()

    def write(self, job_id: str, part: Part, data: bytes) -> None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._path(job_id, part)
        try:
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as writing:
                writing.write(data)
        except OSError:
            path.unlink(missing_ok=True)  # a partial file is useless, and the disk may be full
            raise

    def read(self, job_id: str, part: Part) -> bytes:
        try:
            return self._path(job_id, part).read_bytes()
        except FileNotFoundError:
            raise UnknownDocument("The document was deleted") from None

    def _path(self, job_id: str, part: Part) -> Path:
        return self._directory / f"{job_id}.{part}"
