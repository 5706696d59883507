"""A Redis of the tests' own."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.waiting import wait_until

PROGRAM = shutil.which("redis-server") or shutil.which("valkey-server")


@dataclass
class Redis:
    """One that is reached by a socket in its folder."""

    directory: Path
    process: "subprocess.Popen[bytes]" = field(init=False)

    @property
    def address(self) -> str:
        return f"redis+unix://{self.directory}/redis.sock"

    def start(self) -> None:
        assert PROGRAM is not None
        path = self.directory / "redis.sock"
        options = ["--port", "0", "--unixsocket", str(path), "--save", "", "--dir", str(self.directory)]
        self.process = subprocess.Popen([PROGRAM, *options], stdout=subprocess.DEVNULL)
        wait_until(path.exists)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        (self.directory / "redis.sock").unlink(missing_ok=True)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let it hang."""
        os.kill(self.process.pid, signal.SIGSTOP)
        yield
        os.kill(self.process.pid, signal.SIGCONT)


@contextmanager
def running_redis() -> Iterator[Redis]:
    with TemporaryDirectory(prefix="attend-redis-") as name:
        own = Redis(Path(name))
        own.start()
        try:
            yield own
        finally:
            own.stop()
