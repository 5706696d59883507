"""The folder for temporary files."""

import logging
import os
import tempfile
from pathlib import Path

from service.base.errors import StartRefused

logger = logging.getLogger(__name__)

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 (files in it get random names and are for this user alone)
"""A container can write here even if its root is read-only. Docker and Kubernetes allow 64 MB."""


def require_temporary_folder() -> None:
    """Use shared memory if no folder for temporary files can be written. Processes started later do so too. Raises
    StartRefused: shared memory cannot be written either."""
    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        if not os.access(SHARED_MEMORY, os.W_OK | os.X_OK):
            raise StartRefused(
                "No folder for temporary files can be written: mount one at /tmp, such as `docker run --tmpfs /tmp` "
                "or an `emptyDir` of Kubernetes, or name one in TMPDIR"
            ) from None
        logger.warning("temporary files are in %s and take memory: no other folder can be written", SHARED_MEMORY)
        os.environ["TMPDIR"] = tempfile.tempdir = str(SHARED_MEMORY)
