"""A service from its first moment to its last, as whoever operates it sees it: with one server, and with two."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from service.base.errors import ReloadRefused
from tests.running_service import ROOT, Service, running_service
from tests.service.access.key_tables import table
from tests.service.conftest import problem
from tests.service.fakes import PATIENCE_S
from tests.service.tiny_artifacts import TinyTranslator
from tests.service.worker_services import children
from tests.waiting import wait_until

pytestmark = pytest.mark.process


@pytest.fixture(params=[1, 2])
def n_servers(request: pytest.FixtureRequest) -> int:
    n: int = request.param
    return n


@contextmanager
def started(artifacts: Path, log: Path, **settings: object) -> Iterator[Service]:
    given = {"artifacts": artifacts, "provider": "cpu", "workers": 2, "probe_interval_s": 0.1} | settings
    with running_service(log, {f"ATTEND_{name.upper()}": str(value) for name, value in given.items()}) as service:
        yield service


def translation(service: httpx.Client) -> str:
    answer = service.post("/translate", json={"text": "the dog runs", "model": "tiny-en-fr"})
    text: str = answer.raise_for_status().json()["translations"][0]["text"]
    return text


def loops_of(service: Service) -> list[int]:
    return [loop for loader in children(service.process_id, "loader_process") for loop in children(loader)]


class Asking:
    """A client that never stops asking, and what it got."""

    def __init__(self, service: Service) -> None:
        self.texts: list[str] = []
        self._address = service.base_url
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> "Asking":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _ask(self) -> None:
        with httpx.Client(base_url=self._address, timeout=PATIENCE_S) as client:
            while not self._stopped.is_set():
                try:
                    self.texts.append(translation(client))
                except httpx.HTTPError as error:
                    self.texts.append(repr(error))


def test_a_model_computes_what_was_read_until_a_version_that_proves_itself_takes_over(
    artifacts: Path, tmp_path: Path, n_servers: int
) -> None:
    """Files are overwritten, a process dies, a bad version is refused and a good one comes: no request is lost."""
    root = Path(shutil.copytree(artifacts, tmp_path / "artifacts"))
    served, log = root / "tiny-en-fr", tmp_path / "log"
    with started(root, log, servers=n_servers) as service, Asking(service) as asking:
        former = translation(service)

        other = TinyTranslator(seed=11).save(tmp_path / "tiny-en-fr")
        (served / "weights.safetensors").write_bytes((other / "weights.safetensors").read_bytes())
        wait_until(lambda: 'attend_model_files_changed{model="tiny-en-fr"} 1.0' in service.get("/metrics").text)
        assert service.get("/health/ready").status_code == 200
        assert "the files of tiny-en-fr have changed since they were read: weights.safetensors" in log.read_text()

        before = loops_of(service)
        os.kill(before[0], signal.SIGKILL)
        wait_until(lambda: len(now := loops_of(service)) == len(before) and now != before)
        wait_until(lambda: 'attend_workers_ended_total{how="SIGKILL"} 1.0' in service.get("/metrics").text)
        wait_until(lambda: service.get("/health/ready").status_code == 200)
        assert {translation(service) for _ in range(8)} == {former}

        refused = problem(service.post("/models/reload"), ReloadRefused)["detail"]
        assert "weights.safetensors: sha256 is" in refused
        assert translation(service) == former

        shutil.rmtree(served)
        assert translation(service) == former
        shutil.copytree(other, served)
        n_before = len(asking.texts)
        assert [model["name"] for model in service.post("/models/reload").raise_for_status().json()["models"]] == [
            "tiny-en-fr", "tiny-sentiment",
        ]  # fmt: skip
        wait_until(lambda: service.get("/health/ready").status_code == 200)
        later = translation(service)
        assert later != former
        wait_until(lambda: len(asking.texts) > n_before and asking.texts[-1] == later)
        wait_until(lambda: len(loops_of(service)) == 2)
    texts = [text for text in asking.texts if "worker has ended" not in text and "503" not in text]
    assert set(texts) == {former, later}
    assert texts == sorted(texts, key=lambda text: text == later), "nobody is answered by models that were replaced"


def test_a_signal_takes_new_models_and_new_keys(artifacts: Path, tmp_path: Path, n_servers: int) -> None:
    root = Path(shutil.copytree(artifacts, tmp_path / "artifacts"))
    keys = tmp_path / "keys"
    keys.write_text("one\n")
    log = tmp_path / "log"
    with started(root, log, servers=n_servers, api_keys_file=keys) as service:
        assert status(service, "one") == 200
        shutil.rmtree(root / "tiny-sentiment")
        keys.write_text(table("site", "two"))
        os.kill(service.process_id, signal.SIGHUP)
        wait_until(lambda: {status(service, "two") for _ in range(8)} == {200})
        assert {status(service, "one") for _ in range(8)} == {403}
        wait_until(lambda: len(named(service, "two")) == 1)


def status(service: Service, key: str) -> int:
    return httpx.get(f"{service.base_url}/models", headers={"Authorization": f"Bearer {key}"}).status_code


def named(service: Service, key: str) -> list[str]:
    answer = httpx.get(f"{service.base_url}/models", headers={"Authorization": f"Bearer {key}"})
    return [model["name"] for model in answer.json()["models"]]


@contextmanager
def process(artifacts: Path, *under: str, **settings: object) -> "Iterator[subprocess.Popen[str]]":
    given = {"artifacts": artifacts, "provider": "cpu", "port": 0} | settings
    variables = {f"ATTEND_{name.upper()}": str(value) for name, value in given.items()}
    command = [*under, sys.executable, "-m", "service"]
    with subprocess.Popen(command, cwd=ROOT, env=os.environ | variables, stderr=subprocess.PIPE, text=True) as started:
        try:
            yield started
        finally:
            started.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_models_load_ends_the_service_soon_and_leaves_nothing(
    artifacts: Path, number: signal.Signals, n_servers: int
) -> None:
    with process(artifacts, servers=n_servers) as service:
        assert service.stderr is not None
        while " running on " not in service.stderr.readline():
            assert service.poll() is None
        wait_until(lambda: bool(children(service.pid)))
        begun = children(service.pid)
        service.send_signal(number)
        assert service.wait(PATIENCE_S) == 0
        said = service.stderr.read()
        assert f"stopped by {number.name}" in said
        assert "Traceback" not in said
        wait_until(lambda: not any(Path(f"/proc/{child}").exists() for child in begun))


def test_the_first_process_of_a_container_hears_a_signal_while_models_load(artifacts: Path) -> None:
    under = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
    if os.geteuid() != 0 or subprocess.run([*under, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this process may not make a namespace of processes")
    with process(artifacts, *under) as unshared:
        assert unshared.stderr is not None
        while " running on " not in unshared.stderr.readline():
            assert unshared.poll() is None
        (first,) = children(unshared.pid)
        os.kill(first, signal.SIGTERM)
        assert unshared.wait(PATIENCE_S) == 0


def test_a_port_that_is_taken_is_told_before_anything_loads(artifacts: Path, n_servers: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with process(artifacts, servers=n_servers, port=port) as service:
            _, said = service.communicate(timeout=60)
    assert service.returncode == 1
    last = said.splitlines()[-1]
    assert re.fullmatch(rf"attend cannot start: .* 127\.0\.0\.1:{port}: Address already in use", last), last


def test_models_that_cannot_be_loaded_end_the_service_with_a_sentence(
    artifacts: Path, tmp_path: Path, n_servers: int
) -> None:
    root = Path(shutil.copytree(artifacts, tmp_path / "artifacts"))
    with (root / "tiny-en-fr" / "cpu" / "encoder.onnx").open("ab") as file:
        file.write(b"x")
    with process(root, servers=n_servers) as service:
        _, said = service.communicate(timeout=60)
    assert service.returncode == 1
    assert said.splitlines()[-1].startswith("attend cannot start: ")
    assert "encoder.onnx: sha256 is" in said.splitlines()[-1]
    assert "Traceback" not in said
