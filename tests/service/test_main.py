"""Starting and stopping as a process does."""

import signal
from pathlib import Path

import pytest
import uvicorn

from service.app import create_app
from service.loading import load_models
from service.metrics import Metrics
from service.server import Server, main
from service.settings import Settings
from tests.service.tiny_artifacts import TinyTranslator


def start_error() -> str:
    """What the process says on standard error before it exits with status 1."""
    with pytest.raises(SystemExit) as exited:
        main()
    said = str(exited.value.code)
    assert "\n" not in said
    return said.removeprefix("attend cannot start: ")


def test_a_corrupted_artifact_is_refused_in_one_sentence(
    tmp_path: Path, tiny_translator: TinyTranslator, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tiny_translator.save(tmp_path / "tiny")
    with (directory / "encoder.onnx").open("ab") as file:
        file.write(b"x")
    monkeypatch.setenv("ATTEND_ARTIFACTS", str(tmp_path))
    monkeypatch.setenv("ATTEND_PROVIDER", "cpu")
    assert start_error().startswith(f"{directory / 'encoder.onnx'}: sha256 is ")


def test_a_setting_that_makes_no_sense_is_refused_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ATTEND_PORT", "70000")
    assert start_error() == "ATTEND_PORT: Input should be less than or equal to 65535"


def test_a_signal_drains_before_the_server_ends(artifacts: Path) -> None:
    settings, metrics = Settings(artifacts=artifacts, provider="cpu", threads=1, workers=0), Metrics()
    models = load_models(settings, metrics)
    server = Server(uvicorn.Config(create_app(settings, models, metrics)), models, drain_timeout_s=1)
    server.handle_exit(signal.SIGTERM, None)
    assert server.should_exit
    assert models.unready_reason() == "tiny-en-fr: draining; tiny-sentiment: draining"
