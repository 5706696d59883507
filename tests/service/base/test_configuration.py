"""What is said about a configuration: what is misspelt, what cannot be used, what Kubernetes sets by itself."""

import logging
import os
import subprocess
import sys

import pytest

from service import __version__
from service.base.configuration import announce, read_settings, take_arguments
from service.base.errors import StartRefused
from service.base.settings import Settings
from tests.running_service import ROOT

OF_KUBERNETES = {
    "ATTEND_SERVICE_HOST": "10.0.0.1",
    "ATTEND_SERVICE_PORT": "8000",
    "ATTEND_SERVICE_PORT_HTTP": "8000",
    "ATTEND_PORT_8000_TCP": "tcp://10.0.0.1:8000",
    "ATTEND_PORT_8000_TCP_PROTO": "tcp",
    "ATTEND_PORT_8000_TCP_PORT": "8000",
    "ATTEND_PORT_8000_TCP_ADDR": "10.0.0.1",
    "ATTEND_WEB_SERVICE_HOST": "10.0.0.1",
    "ATTEND_WEB_SERVICE_PORT": "80",
    "ATTEND_WEB_PORT": "tcp://10.0.0.1:80",
    "ATTEND_WEB_PORT_80_TCP_ADDR": "10.0.0.1",
}


def warnings(caplog: pytest.LogCaptureFixture, **environment: str) -> list[str]:
    announce(Settings(), environment)
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("ATTEND_API_KEY", "ATTEND_API_KEYS"),
        ("ATTEND_THREDS", "ATTEND_THREADS"),
        ("ATTEND_MAX_TEXT", "ATTEND_MAX_TEXTS"),
        ("ATTEND_HTTP_PORT", "ATTEND_PORT"),
        ("attend_hosts", "ATTEND_HOST"),
    ],
)
def test_a_variable_that_is_no_setting_is_named_with_the_nearest_one_and_without_its_value(
    caplog: pytest.LogCaptureFixture, name: str, meant: str
) -> None:
    assert warnings(caplog, **{name: "s3cret"}) == [f"{name} is no setting; did you mean {meant}?"]


def test_a_variable_that_is_like_no_setting_is_named_alone(caplog: pytest.LogCaptureFixture) -> None:
    assert warnings(caplog, ATTEND_QQQ="1") == ["ATTEND_QQQ is no setting"]


def test_of_very_many_variables_some_are_named(caplog: pytest.LogCaptureFixture) -> None:
    said = warnings(caplog, **{f"ATTEND_{i}": "1" for i in range(600)})
    assert len(said) == 501
    assert said[-1] == "only 500 of the 600 variables ATTEND_... were looked at"


def test_settings_and_the_variables_of_others_are_no_reason_for_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    assert warnings(caplog, ATTEND_PORT="9000", attend_host="::", PATH="/bin", ATTENDED="1") == []


def test_a_variable_that_kubernetes_sets_for_a_service_brings_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    assert warnings(caplog, **OF_KUBERNETES) == []


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("ATTEND_CACHE", "lots", "ATTEND_CACHE is 'lots': must be a number of bytes, or a size such as 16MB"),
        (
            "ATTEND_MODEL_MEMORY",
            "1XB",
            "ATTEND_MODEL_MEMORY is '1XB': must be a number of bytes, or a size such as 16MB",
        ),
        ("ATTEND_DEVICES", "0,first", "ATTEND_DEVICES is 0,first: must be all, or numbers and UUIDs"),
    ],
)
def test_a_wrong_value_is_told_as_it_was_given_with_what_is_right(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, sentence: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(StartRefused) as refused:
        read_settings()
    assert str(refused.value).startswith(sentence)


def test_the_address_of_a_service_called_attend_is_no_port(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ATTEND_PORT", "tcp://10.0.0.1:9000")
    assert read_settings().port == 8000
    [warning] = warnings(caplog, ATTEND_PORT="tcp://10.0.0.1:9000")
    assert warning == "ATTEND_PORT is an address, as Kubernetes sets it for a Service; the port is 8000"


@pytest.mark.parametrize(("settings", "n_lines"), [({}, 1), ({"api_keys": "k"}, 0), ({"api_keys_file": "k"}, 0)])
def test_a_service_without_keys_says_that_everybody_may_ask(
    caplog: pytest.LogCaptureFixture, settings: dict[str, str], n_lines: int
) -> None:
    caplog.set_level(logging.INFO)
    announce(Settings(**settings), {})  # type: ignore[arg-type]
    assert caplog.text.count("anybody who reaches the service may use it") == n_lines


def test_values_that_cannot_be_used_are_told_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTEND_PORT", "abc")
    monkeypatch.setenv("ATTEND_RATE_LIMIT", "1/second;2/minute")
    with pytest.raises(StartRefused) as refused:
        read_settings()
    assert str(refused.value) == (
        "ATTEND_PORT is 'abc': must be a valid integer, unable to parse string as an integer; "
        "ATTEND_RATE_LIMIT is '1/second;2/minute': must be one rate, such as 60/minute"
    )


def test_wrong_keys_are_told_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTEND_API_KEYS", " ,, ")
    with pytest.raises(StartRefused, match=r"^ATTEND_API_KEYS must [^,]*$"):
        read_settings()


@pytest.mark.parametrize(
    ("argument", "sentence"),
    [
        ("--api-key=s3cret", "attend takes no argument --api-key; set ATTEND_API_KEYS in the environment\n"),
        ("--verbose", "attend takes no argument --verbose; --help lists the settings\n"),
        ("--ports=9000", "attend takes no argument --ports; did you mean --port?\n"),
        ("--api-keys", "attend takes no argument --api-keys; set ATTEND_API_KEYS in the environment\n"),
    ],
)
def test_an_unknown_argument_is_refused_with_what_does_this(
    capsys: pytest.CaptureFixture[str], argument: str, sentence: str
) -> None:
    with pytest.raises(SystemExit) as exited:
        take_arguments([argument])
    assert exited.value.code == 2
    assert capsys.readouterr().err == sentence


def test_without_arguments_the_environment_stays() -> None:
    before = dict(os.environ)
    take_arguments([])
    assert dict(os.environ) == before


def test_an_argument_sets_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {"ATTEND_PORT": "1"})
    take_arguments(["models", "--port", "9000", "--max-texts=3"])
    assert os.environ == {"ATTEND_PORT": "9000", "ATTEND_ARTIFACTS": "models", "ATTEND_MAX_TEXTS": "3"}


def test_models_to_fetch_are_arguments_of_another_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {})
    assert take_arguments(["models", "--languages", "en,fr", "--size=small"]) == ["--languages=en,fr", "--size=small"]
    assert os.environ == {"ATTEND_ARTIFACTS": "models"}
    assert take_arguments(["models"]) == []


def test_the_folder_has_an_option_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {})
    take_arguments(["--artifacts", "models"])
    assert os.environ == {"ATTEND_ARTIFACTS": "models"}


@pytest.mark.process
def test_help_names_every_setting_and_loads_no_server() -> None:
    shown = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "service", "--help"], cwd=ROOT, capture_output=True, text=True
    )
    assert shown.returncode == 0
    for name in Settings.model_fields:
        assert f"\n  ATTEND_{name.upper()}" in shown.stdout
    loaded = {line.rpartition("|")[2].strip() for line in shown.stderr.splitlines()}
    assert "service.base.settings" in loaded
    assert not loaded & {"fastapi", "uvicorn", "onnxruntime", "numpy"}


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        take_arguments(["--version"])
    assert capsys.readouterr().out == f"attend {__version__}\n"
