"""`python -m model list` says what each directory has, or what is wrong with it."""

import io
import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from model import __main__
from model.__main__ import app
from model.checkpoint import load_checkpoint
from model.config import Provenance, load_config, save_config
from model.inventory import inventory
from tests.export.tiny_checkpoints import Kind, write_checkpoint

ROOT = Path(__file__).parents[2]
ARTIFACT = ROOT / "artifacts" / "translate-en-fr"


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    return Path(shutil.copytree(ARTIFACT, tmp_path / "mine"))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("runs") / "tiny" / "checkpoint"
    directory.parent.mkdir()
    write_checkpoint(directory, "translation")
    return directory


@pytest.fixture
def checkpoint(tiny: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny.parent, tmp_path / "tiny")) / "checkpoint"


def test_shipped_artifacts_are_listed_with_what_they_do() -> None:
    found = {one.name: one for one in inventory([ROOT / "artifacts"])}
    translator, classifier = found["translate-en-ja"], found["sentiment-imdb"]
    assert (translator.does, translator.precision, translator.source) == ("en to ja", "int8", None)
    assert (classifier.does, classifier.task) == ("negative, positive", "classification")
    manifest = json.loads((ROOT / "artifacts/translate-en-ja/manifest.json").read_text())
    assert translator.parameters == manifest["parameters"]
    assert translator.bytes > sum(file["bytes"] for file in manifest["files"].values())
    assert all(one.problem is None for one in found.values())


@pytest.mark.parametrize("below", [0, 1, 2])
def test_a_model_is_found_by_its_directory_its_run_and_the_folder_of_runs(checkpoint: Path, below: int) -> None:
    (one,) = inventory([[checkpoint, *checkpoint.parents][below]])
    assert (one.name, one.directory, one.problem) == ("translation", str(checkpoint), None)


def test_a_checkpoint_tells_its_parameters_and_how_its_weights_are_stored(checkpoint: Path) -> None:
    (one,) = inventory([checkpoint])
    assert one.parameters == sum(p.numel() for p in load_checkpoint(checkpoint).model.parameters())
    assert (one.does, one.precision) == ("en to fr", "fp16")


@pytest.mark.parametrize(("kind", "does"), [("max_classifier", "5 labels"), ("embedder", "embedding")])
def test_every_task_is_told(tmp_path: Path, kind: Kind, does: str) -> None:
    write_checkpoint(tmp_path / "one", kind)
    (one,) = inventory([tmp_path])
    assert one.does == does


def test_an_artifact_of_another_format_is_told(artifact: Path) -> None:
    manifest = json.loads((artifact / "manifest.json").read_text()) | {"format_version": 99}
    (artifact / "manifest.json").write_text(json.dumps(manifest))
    (one,) = inventory([artifact])
    assert (
        one.problem
        == "manifest.json cannot be read: format_version is 99, this version of attend reads 9; export the model again"
    )


@pytest.mark.parametrize("width", [40, 80, 250])
def test_no_terminal_is_too_narrow_for_names_and_directories(
    artifact: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(__main__, "console", Console(file=shown, force_terminal=True, width=width))
    assert CliRunner().invoke(app, ["list", str(artifact)]).exit_code == 0
    words = shown.getvalue().replace("\n", "")
    assert "translate-en-fr" in words
    assert str(artifact) in words
    assert "…" not in words


def test_an_imported_model_tells_its_source_and_licence(checkpoint: Path) -> None:
    provenance = Provenance(source="owner/name", family="MarianMT", licence="apache-2.0")
    save_config(checkpoint, load_config(checkpoint).model_copy(update={"provenance": provenance}))
    (one,) = inventory([checkpoint])
    assert (one.source, one.licence) == ("owner/name", "apache-2.0")


@pytest.mark.parametrize(
    ("nearness", "told"),
    [
        ({}, None),
        ({"cpu": {"same": 0.9912, "cosine": None, "of": 400}}, "99.1 % same"),
        ({"cpu": {"same": None, "cosine": 0.99678, "of": 12}, "cuda": {"cosine": 0.5, "of": 12}}, "cosine 0.9968"),
        ({"cuda": {"same": 0.5, "of": 12}}, None),
    ],
)
def test_nearness_is_told_if_the_manifest_has_it(artifact: Path, nearness: object, told: str | None) -> None:
    manifest = json.loads((artifact / "manifest.json").read_text())
    (artifact / "manifest.json").write_text(json.dumps(manifest | {"nearness": nearness}))
    (one,) = inventory([artifact])
    assert (one.problem, one.nearness) == (None, told)


def test_an_artifact_of_an_earlier_version_has_its_parameters_counted(artifact: Path) -> None:
    manifest = json.loads((artifact / "manifest.json").read_text())
    parameters = manifest.pop("parameters")
    (artifact / "manifest.json").write_text(json.dumps(manifest))
    (one,) = inventory([artifact])
    assert one.parameters == parameters


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "cut weights": (lambda path: cut(path / "weights.safetensors"), "weights.safetensors has "),
    "no graph": (lambda path: (path / "cpu/encoder.onnx").unlink(), "cpu/encoder.onnx is missing"),
    "no JSON": (
        lambda path: cut(path / "manifest.json") or cut(path / "manifest.json"),
        "manifest.json cannot be read",
    ),
    "a list": (lambda path: (path / "manifest.json").write_text("[]"), "manifest.json cannot"),
    "other bytes": (lambda path: (path / "manifest.json").write_bytes(b"\xff\xfe"), "manifest.json cannot"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_broken_artifact_has_one_line_that_says_so(artifact: Path, damage: str) -> None:
    harm, said = DAMAGE[damage]
    harm(artifact)
    (one,) = inventory([artifact])
    assert one.problem is not None
    assert one.problem.startswith(said)
    printed = CliRunner().invoke(app, ["list", str(artifact)]).output.splitlines()
    assert [line for line in printed if str(artifact) in line] == [f"{artifact}: {one.problem}"]


CHECKPOINT_DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "cut weights": (lambda path: cut(path / "weights.safetensors"), "weights.safetensors has "),
    "no weights": (lambda path: (path / "weights.safetensors").write_bytes(b""), "weights.safetensors is damaged"),
    "no tokenizer": (lambda path: (path / "tokenizer.json").unlink(), "tokenizer.json is missing"),
    "no config": (lambda path: (path / "config.yaml").unlink(), "is no model"),
    "no YAML": (lambda path: (path / "config.yaml").write_text("model: ["), ""),
}


@pytest.mark.parametrize("damage", CHECKPOINT_DAMAGE)
def test_a_broken_checkpoint_is_told_and_others_are_listed(checkpoint: Path, damage: str) -> None:
    harm, said = CHECKPOINT_DAMAGE[damage]
    harm(checkpoint)
    broken, whole = inventory([checkpoint, ARTIFACT])
    assert broken.problem is not None
    assert broken.problem.startswith(said)
    assert whole.problem is None


def test_json_has_every_model() -> None:
    printed = CliRunner().invoke(app, ["list", str(ROOT / "artifacts"), "--json"]).stdout
    assert json.loads(printed) == [asdict(one) for one in inventory([ROOT / "artifacts"])]


def test_what_is_printed_elsewhere_than_on_a_terminal_has_a_line_for_each_model() -> None:
    header, *lines = CliRunner().invoke(app, ["list", str(ROOT / "artifacts")]).stdout.splitlines()
    cells = [dict(zip(header.split("\t"), line.split("\t"), strict=True)) for line in lines]
    assert [cell["model"] for cell in cells] == sorted(path.name for path in (ROOT / "artifacts").iterdir())
    assert {cell["source"] for cell in cells} == {"trained with attend"}
