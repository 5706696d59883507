"""The files of documents: originals and translations. Only the user that runs the service can read them."""

import os
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from service.base.errors import UnknownDocument

MIN_ORPHAN_AGE_S = 15.0
"""A file without a job is deleted at this age. A younger file may be about to get its job."""


class JobFiles:
    """The files of all jobs. Reading a deleted file raises UnknownDocument.

    Args:
        directory: the folder of the files. It is made with the first file.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def write_source(self, job_id: str, data: bytes) -> None:
        self._write(f"{job_id}.source", data)

    def write_result(self, job_id: str, data: bytes) -> None:
        self._write(f"{job_id}.result", data)

    def source(self, job_id: str) -> bytes:
        return self._read(f"{job_id}.source")

    def result(self, job_id: str) -> bytes:
        return self._read(f"{job_id}.result")

    def delete_source(self, job_id: str) -> None:
        (self._directory / f"{job_id}.source").unlink(missing_ok=True)

    def delete(self, job_id: str) -> None:
        self.delete_source(job_id)
        (self._directory / f"{job_id}.result").unlink(missing_ok=True)

    def delete_others(self, known: Collection[str]) -> None:
        """Delete files that belong to no known job."""
        for file in self._directory.iterdir() if self._directory.is_dir() else ():
            with suppress(FileNotFoundError):
                if file.stem not in known and file.stat().st_mtime < time.time() - MIN_ORPHAN_AGE_S:
                    file.unlink()

    def _write(self, name: str, data: bytes) -> None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._directory / name
        try:
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as writing:
                writing.write(data)
        except OSError:
            path.unlink(missing_ok=True)  # a partial file is useless, and the disk may be full
            raise

    def _read(self, name: str) -> bytes:
        try:
            return (self._directory / name).read_bytes()
        except FileNotFoundError:
            raise UnknownDocument("The document was deleted") from None
