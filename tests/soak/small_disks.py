"""Small disks for the folders of a storm, in a mount namespace of its own: they can be full without harm."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

INSIDE = "SOAK_IN_NAMESPACE"
WAYS = (["unshare", "--mount"], ["unshare", "--user", "--map-root-user", "--mount"])
SIZES = {"data": "24m", "logs": "64m"}


def enter(arguments: Sequence[str]) -> None:
    """Run this command again where it may mount disks, if there is a way; return where it may, or cannot."""
    if INSIDE in os.environ:
        return
    for way in WAYS:
        try:
            found = subprocess.run([*way, "mount", "-t", "tmpfs", "soak", "/mnt"], capture_output=True, check=False)
        except FileNotFoundError:
            return
        if found.returncode == 0:
            command = [*way, sys.executable, "-m", "tests.soak", *arguments]
            os.execvpe(command[0], command, {**os.environ, INSIDE: "1"})


@contextmanager
def mounted(root: Path) -> Iterator[bool]:
    """Mount a small disk at each folder that may be full. Yield whether that was possible."""
    if INSIDE not in os.environ:
        yield False
        return
    for name, size in SIZES.items():
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "soak", root / name], check=True)
    try:
        yield True
    finally:
        for name in SIZES:
            subprocess.run(["umount", "--lazy", root / name], check=True)
