"""`attend fetch`: models of languages come from a hub once, and what is missing is named."""

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import huggingface_hub
import pytest

from export import bringing, languages
from export.languages import bring_languages, directions_between, language_codes
from manifest.file import read_manifest, write_manifest
from manifest.precedence import better_first
from manifest.schema import ModelOrigin
from tests.model.importing.local_hub import Hub, running_hub
from tests.model.importing.marian_checkpoints import write_marian
from tests.running_service import ROOT

TO_FRENCH = "Helsinki-NLP/opus-mt-tc-big-en-fr"
SHIPPED = ROOT / "artifacts"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub without models, until a test puts some there."""
    (tmp_path / "hub").mkdir()
    with running_hub(tmp_path / "hub", tmp_path / "cache", monkeypatch) as server:
        yield server


@pytest.fixture
def artifacts(tmp_path: Path) -> Path:
    """A folder with the shipped models between English and French."""
    folder = tmp_path / "artifacts"
    folder.mkdir()
    for name in ("translate-en-fr", "translate-fr-en"):
        (folder / name).symlink_to(SHIPPED / name)
    return folder


def imported(artifacts: Path, shipped: str, source: str) -> Path:
    """Copy a shipped artifact as if it was imported from a hub."""
    manifest = read_manifest(SHIPPED / shipped)
    folder = artifacts / source.rpartition("/")[2]
    for name in manifest.files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(SHIPPED / shipped / name)
    write_manifest(manifest.model_copy(update={"name": folder.name, "origin": ModelOrigin(source=source)}), folder)
    return folder


@pytest.mark.slow
def test_a_model_comes_once_and_outranks_the_shipped_one(
    hub: Hub, artifacts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_marian(hub.directory / TO_FRENCH, encoder_layers=1, decoder_layers=1)
    served = bring_languages(["en", "fr"], "medium", artifacts)
    assert [folder.name for folder in served] == ["opus-mt-tc-big-en-fr", "translate-fr-en"]
    told = capsys.readouterr()
    assert f"en-fr: fetching {TO_FRENCH}, 230 M parameters, licence CC BY 4.0 (https://" in told.out
    assert f"fetching {TO_FRENCH}: " in told.err
    assert " MB, licence cc-by-4.0\n" in told.err
    assert "fr-en: the hub has no Helsinki-NLP/opus-mt-tc-big-fr-en\nfr-en: translate-fr-en\n" in told.out
    brought, shipped = (read_manifest(artifacts / name) for name in ("opus-mt-tc-big-en-fr", "translate-en-fr"))
    assert brought.evaluation == {"FLORES": {"bleu": 52.2}}
    assert better_first(brought) < better_first(shipped)
    assert {path.name for path in artifacts.iterdir()} == {brought.name, "translate-en-fr", "translate-fr-en"}
    hub.fetched.clear()
    assert bring_languages(["en", "fr"], "medium", artifacts) == served
    assert hub.fetched == []


@pytest.mark.process
def test_what_is_there_needs_neither_torch_nor_a_hub(artifacts: Path) -> None:
    for shipped, source in (("translate-en-fr", TO_FRENCH), ("translate-fr-en", TO_FRENCH.replace("en-fr", "fr-en"))):
        imported(artifacts, shipped, source)
    program = "import sys, attend; sys.modules.update(torch=None, huggingface_hub=None); attend.main(sys.argv[1:])"
    command = [sys.executable, "-c", program, "fetch", f"--artifacts={artifacts}"]
    told = subprocess.run([*command, "--languages=en,fr"], cwd=ROOT, capture_output=True, text=True)
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout == "en-fr: opus-mt-tc-big-en-fr\nfr-en: opus-mt-tc-big-fr-en\n"
    told = subprocess.run([*command, "--languages=en,de"], cwd=ROOT, capture_output=True, text=True)
    assert told.returncode == 1
    assert told.stderr.startswith("attend fetch needs torch, which is not installed: in a clone of attend, run pip ins")


def test_a_damaged_artifact_is_brought_again(artifacts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = imported(artifacts, "translate-en-fr", TO_FRENCH)
    (folder / "tokenizer.json").unlink()
    brought = list[str]()
    monkeypatch.setattr(bringing, "bring", lambda source, _: brought.append(source))
    bring_languages(["en", "fr"], "medium", artifacts)
    assert brought[0] == TO_FRENCH


def test_a_direction_without_a_model_is_named(hub: Hub, artifacts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    served = bring_languages(["fr", "ko"], "medium", artifacts)
    assert [folder.name for folder in served] == ["translate-fr-en", "translate-en-fr"]
    told = capsys.readouterr().out.splitlines()
    for direction, line in zip(("en-ko", "ko-en"), told[-2:], strict=True):
        assert line == (
            f"{direction}: no model translates it here, and the hub has no Helsinki-NLP/opus-mt-{direction}; "
            "docs/bring-your-model.md lists models; attend import FROM brings one"
        )


def test_a_model_of_many_languages_serves_what_no_model_is_listed_for(artifacts: Path, hub: Hub) -> None:
    folder = imported(artifacts, "translate-en-fr", "somebody/many")
    manifest = read_manifest(folder)
    korean = manifest.sources[0].model_copy(update={"code": "kor"})
    sides = {"sources": (*manifest.sources, korean), "targets": (*manifest.targets, *manifest.sources, korean)}
    write_manifest(manifest.model_copy(update=sides), folder)
    assert bring_languages(["en", "ko"], "medium", artifacts) == [folder]
    assert hub.asked == 0


def test_a_hub_that_cannot_be_reached_is_told_with_what_was_tried(
    artifacts: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It ends the command only where no other model has the direction."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError("no route to host")

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", refuse)
    folders = [artifacts / "translate-en-fr", artifacts / "translate-fr-en"]
    assert bring_languages(["en", "fr"], "medium", artifacts) == folders
    told = capsys.readouterr().out
    assert re.search(f"en-fr: cannot bring {TO_FRENCH}: https?://.* cannot be reached: no route", told)
    assert "`HF_ENDPOINT` names another hub" in told
    folders[0].unlink()
    with pytest.raises(SystemExit):
        bring_languages(["en", "fr"], "medium", artifacts)
    assert sorted(artifacts.iterdir()) == folders[1:]


def test_directions_that_no_model_is_listed_for_go_through_english(monkeypatch: pytest.MonkeyPatch) -> None:
    legs = [("fr", "en"), ("en", "uk"), ("uk", "en"), ("en", "fr")]
    assert directions_between(["fr", "uk"]) == legs
    assert {*directions_between(["en", "fr", "uk"])} == {*legs}
    monkeypatch.setattr(languages, "listed_directions", lambda: {"fr-uk"})
    assert directions_between(["fr", "uk"]) == [("fr", "uk"), ("uk", "en"), ("en", "fr")]


@pytest.mark.parametrize(("text", "codes"), [("en,fr", ["en", "fr"]), ("EN, fra,fr ,pt-BR", ["en", "fr", "pt"])])
def test_languages_are_read_in_any_usual_form(text: str, codes: list[str]) -> None:
    assert language_codes(text) == codes


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("en", "name two languages or more"), ("en,eng", "name two"), ("en,zz", "'zz' is no code"), ("en,", "'' is no")],
)
def test_what_names_no_languages_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=sentence):
        language_codes(text)
