"""`python -m service` as a process of its own."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.waiting import wait_until

ROOT = Path(__file__).parents[1]
PATIENCE_S = 180

ANNOUNCED = re.compile(r" running on (http://\S+?:\d+)")


class Service(httpx.Client):
    """A client of it."""

    process_id: int
    log: Path


@contextmanager
def running_service(log: Path, environment: Mapping[str, str], under: Sequence[str] = ()) -> Iterator[Service]:
    """A client of it, once it is ready, on a port that the system chose.

    Args:
        log: The file that gets what the service says.
        under: A command that runs the service, such as strace.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("ATTEND_")}
    with log.open("wb") as file:
        process = subprocess.Popen(
            [*under, sys.executable, "-m", "service"],
            cwd=ROOT,
            env=inherited | {"ATTEND_PORT": "0"} | environment,
            stderr=file,
        )
    try:
        with Service(base_url=_announced_address(process, log), timeout=PATIENCE_S) as client:
            client.process_id, client.log = process.pid, log
            wait_until(lambda: _is_ready(client), PATIENCE_S)
            yield client
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def _announced_address(process: "subprocess.Popen[bytes]", log: Path) -> str:
    """Where the server says that it listens."""

    def has_announced() -> bool:
        said = log.read_text(encoding="utf-8")
        assert process.poll() is None, f"the server ended: {said}"
        return ANNOUNCED.search(said) is not None

    wait_until(has_announced, PATIENCE_S)
    return ANNOUNCED.findall(log.read_text(encoding="utf-8"))[0]


def _is_ready(client: httpx.Client) -> bool:
    return client.get("/health/ready").status_code == 200
