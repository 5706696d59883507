"""A clock of the service's own, which can be set forward; that of the machine stays as it is."""

import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

SOURCE = Path(__file__).with_name("clock.c")
N_BYTES = 8


class Clock:
    """Says by how many seconds it is ahead of the machine's.

    Args:
        file: where processes read that.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seconds = 0
        self._write()

    def set_forward(self, seconds: int) -> None:
        self._seconds += seconds
        self._write()

    def _write(self) -> None:
        with self._file.open("r+b" if self._file.exists() else "wb") as file:  # in place: it is mapped
            file.write(self._seconds.to_bytes(N_BYTES, sys.byteorder))


@contextmanager
def own_clock(folder: Path) -> Iterator[tuple[Clock | None, Mapping[str, str]]]:
    """Yield a clock, and the variables of a process that has it. Without a compiler there is none."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        yield None, {}
        return
    library, file = folder / "clock.so", folder / "clock"
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", library, SOURCE, "-ldl"], check=True)
    yield Clock(file), {"LD_PRELOAD": str(library), "SOAK_CLOCK": str(file)}
