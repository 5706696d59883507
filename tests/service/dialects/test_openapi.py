"""Schemathesis calls every route of /openapi.json, of all dialects too, and finds no answer that differs from it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.service.dialects.conftest import Listen

pytestmark = pytest.mark.process

CONFIG = Path(__file__).with_name("schemathesis.toml")
RUN = "--max-examples 10 --phases examples,coverage,fuzzing --continue-on-failure --generation-deterministic --no-color"


@pytest.mark.slow
def test_every_route_answers_as_it_is_described(listen: Listen, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONFIG), "run", *RUN.split()]
    done = subprocess.run([*command, f"{listen()}/openapi.json"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
