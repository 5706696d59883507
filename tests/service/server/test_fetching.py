"""Models are fetched by a process of its own before the service starts."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from service.base.errors import StartRefused
from service.server import fetching
from service.server.fetching import fetch_models
from tests.running_service import ROOT
from tests.waiting import wait_until


@pytest.mark.process
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--languages=en,zz"], "'zz' is no code of a language"),
        (["--size=small"], "the following arguments are required: --languages"),
        (["--languages=en,fr", "--size=huge"], "invalid choice: 'huge'"),
    ],
)
def test_the_service_ends_as_the_command_did_which_says_why(arguments: list[str], said: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "service", str(tmp_path), *arguments]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1].startswith("attend fetch: error: ")
    assert said in ended.stderr


@pytest.mark.process
def test_a_signal_that_stops_the_service_stops_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command of this test waits for a signal, and says that it came."""
    (tmp_path / "waiting_command.py").write_text(
        "import signal, sys, pathlib\n"
        "here = pathlib.Path(__file__).parent\n"
        "def stop(*_): (here / 'stopped').touch(); sys.exit()\n"
        "signal.signal(signal.SIGTERM, stop)\n"
        "(here / 'started').touch()\n"
        "while True: signal.pause()\n"
    )
    program = (
        "import sys; from pathlib import Path; from service.server import fetching, start\n"
        "fetching.COMMAND = 'waiting_command'; start.main(['--languages=en,fr'])"
    )
    path = {"PYTHONPATH": f"{tmp_path}:{ROOT}"}
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=tmp_path, env=path, stderr=subprocess.DEVNULL
    ) as process:
        wait_until((tmp_path / "started").exists, 60)
        process.send_signal(signal.SIGTERM)
    assert process.returncode == 0
    assert (tmp_path / "stopped").exists()


def test_without_the_command_the_start_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "COMMAND", "not_there")
    with pytest.raises(
        StartRefused, match="--languages needs the command attend, which images do not have; run attend"
    ):
        fetch_models(["--languages=en,fr"], Path("artifacts"))
