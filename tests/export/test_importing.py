"""`attend import`: an import and an export by one command."""

from pathlib import Path
from typing import Any

import pytest

import attend
from export import importing


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """What import and export are called with."""
    found: dict[str, dict[str, Any]] = {}
    monkeypatch.setattr(importing.importing, "callback", lambda **options: found.update(importing=options))
    monkeypatch.setattr(importing.exporting, "callback", lambda **options: found.update(exporting=options))
    return found


def run(*arguments: str) -> None:
    with pytest.raises(SystemExit) as exited:
        importing.run(arguments)
    assert exited.value.code == 0


def test_every_option_reaches_the_import_or_the_export(called: dict[str, dict[str, Any]]) -> None:
    run("some/model", "--source", "en", "--target", "fr", "--target", "de", "--precision", "fp32", "--overwrite")
    assert called["importing"]["source"] == "some/model"
    assert [*called["importing"]["language"]] == ["en"]
    assert [*called["importing"]["target"]] == ["fr", "de"]
    assert called["exporting"]["precision"] == "fp32"
    for options in called.values():
        assert Path(options["checkpoint"]) == Path("runs/model/checkpoint")
        assert options["overwrite"] is True
    assert Path(called["exporting"]["out"]) == Path("artifacts/model")


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("Helsinki-NLP/opus-mt-en-de", "opus-mt-en-de"),
        ("/models/translate-en_fr-1_9.argosmodel", "translate-en_fr-1_9"),
        ("opus-2020.tar.gz", "opus-2020"),
        ("firefox-enfr/", "firefox-enfr"),
        ("all-MiniLM-L6-v2.1", "all-MiniLM-L6-v2.1"),
        ("here/my model/", "my model"),
        ("opus 1.2.tar.bz2", "opus 1.2"),
        ("..", ".."),
    ],
)
def test_a_model_is_called_as_its_source(called: dict[str, dict[str, Any]], source: str, name: str) -> None:
    run(source)
    assert called["importing"]["name"] == name
    run(source, "--name", "mine")
    assert (called["importing"]["name"], Path(called["exporting"]["out"]).name) == ("mine", "mine")


def test_without_a_model_good_ones_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        importing.run([], "attend import")
    assert exited.value.code == 2
    assert "  attend import Helsinki-NLP/" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["import", "export"])
def test_a_command_has_a_help(capsys: pytest.CaptureFixture[str], name: str) -> None:
    with pytest.raises(SystemExit) as exited:
        attend.main([name, "--help"])
    assert exited.value.code == 0
    shown = capsys.readouterr().out
    assert f"attend {name}" in shown
    assert "--precision" in shown


def test_an_error_of_the_import_is_one_sentence(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as exited:
        importing.run([str(tmp_path / "nothing here")])
    assert exited.value.code == 1
    assert "cannot import" in capsys.readouterr().err
