"""Models that are fetched before the service starts. What fetches them needs torch, so it is a process of its own."""

import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from service.base.errors import StartRefused

COMMAND = "attend"
"""Module of the command."""


def fetch_models(arguments: Sequence[str], artifacts: Path) -> None:
    """Run `attend fetch` for a folder of artifacts. Exits with its status if it fails; it has said why. Raises
    StartRefused: the command is not there."""
    if find_spec(COMMAND) is None:
        raise StartRefused(
            "--languages needs the command attend, which images do not have; run attend fetch on another machine, and "
            f"bring its artifacts to {artifacts}"
        )
    command = [sys.executable, "-m", COMMAND, "fetch", *arguments, f"--artifacts={artifacts}"]
    with subprocess.Popen(command) as process:  # noqa: S603  this Python, and a program of our own
        try:
            status = process.wait()
        except BaseException:
            process.terminate()  # it deletes what it has begun
            raise
    if status != 0:
        sys.exit(status)
