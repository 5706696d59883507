"""The shipped artifacts behind a real server process, as `make serve` starts it."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def server() -> Iterator[httpx.Client]:
    """A client of `python -m service` on a port that the system chose."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ATTEND_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "service"],
        cwd=ROOT,
        env=environment | {"ATTEND_PORT": "0", "ATTEND_PROVIDER": "cpu"},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        with httpx.Client(base_url=_announced_address(process), timeout=60) as client:
            _wait_until_ready(client)
            yield client
    finally:
        process.terminate()
        process.wait(timeout=60)


def _announced_address(process: "subprocess.Popen[str]") -> str:
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if "Uvicorn running on " in line:
            # Read on, so that the server never waits for its log to be read.
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return line.split("Uvicorn running on ")[1].split()[0]
    raise AssertionError("the server ended: " + "".join(said))


def _wait_until_ready(client: httpx.Client) -> None:
    deadline = time.monotonic() + 60
    while client.get("/health/ready").status_code != 200:
        assert time.monotonic() < deadline, client.get("/health/ready").text
        time.sleep(0.05)
