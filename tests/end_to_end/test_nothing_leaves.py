"""Serving sends nothing anywhere: no process of the service looks up a name or talks to another machine."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.running_service import ROOT, running_service
from tests.waiting import wait_until

pytestmark = pytest.mark.process

WATCHED_S = 12
"""ONNX Runtime's telemetry looks up its host about 9 s after the first session was made."""
LOCAL = re.compile(r'sin_port=htons\((?!53\)).*"127\.|sin6_port=htons\((?!53\)).*"::1"|AF_UNIX(?!.*nscd)|AF_NETLINK')
"""Sockets of this machine that answer no question about names."""


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_no_process_of_the_service_looks_up_a_name_or_connects_to_another_machine(tmp_path: Path) -> None:
    for folder in ("artifacts", "home"):
        (tmp_path / folder).mkdir()
    for name in ("translate-en-fr", "sentiment-imdb"):
        (tmp_path / "artifacts" / name).symlink_to(ROOT / "artifacts" / name)
    environment = {
        "ATTEND_ARTIFACTS": str(tmp_path / "artifacts"),
        "ATTEND_PROVIDER": "cpu",
        "HOME": str(tmp_path / "home"),
    }
    calls = tmp_path / "calls"
    # -u: the service itself must turn telemetry off, as the tests did for their own processes.
    # -D: the service is our own child, and strace its child, so that the service gets our signals.
    strace = [
        "env",
        "-u",
        "ORT_DISABLE_TELEMETRY",
        "strace",
        "-D",
        "-f",
        "-qq",
        "-e",
        "trace=connect,sendto,sendmsg,sendmmsg",
        "-o",
        str(calls),
    ]
    with running_service(tmp_path / "log", environment, under=strace) as client:
        client.post("/translate", json={"text": "Two dogs play.", "target": "fr"}).raise_for_status()
        watched_until = time.monotonic() + WATCHED_S
        wait_until(lambda: time.monotonic() >= watched_until, 2 * WATCHED_S)
        client.post("/classify", json={"text": "A fine film."}).raise_for_status()
    made = calls.read_text(encoding="utf-8").splitlines()
    assert [line for line in made if "sa_family=" in line and not LOCAL.search(line)] == []
    assert made, "strace saw no call at all"
    assert list((tmp_path / "home").iterdir()) == []


@pytest.mark.parametrize("package", ["service", "export", "benchmarks", "tests"])
def test_every_package_turns_telemetry_off_and_keeps_what_the_environment_says(package: str) -> None:
    command = [sys.executable, "-c", f"import os, {package}; print(os.environ.get('ORT_DISABLE_TELEMETRY'))"]
    inherited = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    for given, kept in (({}, "1"), ({"ORT_DISABLE_TELEMETRY": "0"}, "0")):
        process = subprocess.run(command, cwd=ROOT, env=inherited | given, capture_output=True, text=True, check=True)
        assert process.stdout.strip() == kept
