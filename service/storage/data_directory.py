"""The folder for the glossaries and documents of clients."""

import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from service.base.errors import StartRefused
from service.base.settings import PREFIX, Settings

logger = logging.getLogger(__name__)

DEFAULT = Path("data")
"""A folder in the working directory; it is made when the first file is kept."""


@contextmanager
def with_data_directory(settings: Settings) -> Iterator[Settings]:
    """Yield settings whose data folder can be written. Processes started meanwhile read it from the environment. Raises
    StartRefused: the configured folder cannot be made or written."""
    if settings.database is not None:
        yield settings  # nothing is kept in a folder
    elif settings.data is not None:
        try:
            settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StartRefused(
                f"The data folder {settings.data} (ATTEND_DATA) cannot be made: {error.strerror}"
            ) from None
        if not _may_write(settings.data):
            raise StartRefused(f"The data folder {settings.data} (ATTEND_DATA) cannot be written")
        yield settings
    elif _may_write(DEFAULT if DEFAULT.exists() else Path()):
        yield settings
    else:
        with tempfile.TemporaryDirectory(prefix="attend-data-", dir=settings.run_directory) as folder:
            logger.warning(
                "%s cannot be written: glossaries and documents are kept in %s until the service ends; "
                "%sDATA names a better place",
                DEFAULT.absolute(),
                folder,
                PREFIX,
            )
            os.environ[f"{PREFIX}DATA"] = folder
            yield settings.model_copy(update={"data": Path(folder)})


def _may_write(folder: Path) -> bool:
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)
