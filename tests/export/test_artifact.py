"""The artifact directory: its manifest, all or nothing, and the same bytes every time."""

import hashlib
import json
import os
import shutil
import stat
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import onnx_ir as ir
import pytest
import torch
from torch import Tensor
from typer.testing import CliRunner

import export.artifact
from export.__main__ import app
from export.artifact import export as export_artifact
from export.description import describe
from export.proof import ProofError
from export.quantization import quantize_model
from export.reading import Reading
from export.tracing import ExportError
from manifest.file import read_manifest
from manifest.layout import WEIGHTS
from manifest.schema import MAX_BEAM_SIZE, ModelOrigin, Precision
from model.checkpoint import CheckpointError, load_checkpoint
from model.config import Provenance, load_config, save_config
from model.networks.transformer import Transformer, TransformerClassifier
from tests.export.tiny_checkpoints import MAX_SOURCE_TOKENS, Kind, MakeArtifact, MakeCheckpoint, write_model
from tests.model.tiny_configs import LANGUAGE_MODEL, RECURRENT, Section

pytestmark = pytest.mark.slow

D, FF, V = 24, 40, 300
EMBEDDING, NORM, ATTENTION, FEED_FORWARD = V * D, 2 * D, 4 * (D * D + D), 2 * D * FF + FF + D
ENCODER_LAYER = ATTENTION + FEED_FORWARD + 2 * NORM
DECODER_LAYER = 2 * ATTENTION + FEED_FORWARD + 3 * NORM
"""Numbers of parameters of the tiny translator."""
EVALUATION = {"some-test": {"bleu": 41.25, "chrf": 60.5}}


def test_the_manifest_of_a_translator(artifact: MakeArtifact) -> None:
    directory = artifact("translation", "int8")
    manifest = json.loads((directory / "manifest.json").read_text())
    files, graphs, nearness = manifest.pop("files"), manifest.pop("graphs"), manifest.pop("nearness")
    assert {provider: each["precision"] for provider, each in nearness.items()} == {"cpu": "int8", "cuda": "fp16"}
    assert manifest == {
        "format_version": 9,
        "name": "translation",
        "task": "translation",
        "precision": "int8",
        "parameters": EMBEDDING + 3 * ENCODER_LAYER + 2 * DECODER_LAYER + 2 * NORM,
        "origin": None,
        "licence": None,
        "opset": 24,
        "dimensions": {
            "d_model": 24,
            "d_encoder": None,
            "n_heads": 3,
            "head_dim": 8,
            "d_ff": 40,
            "n_encoder_layers": 3,
            "n_decoder_layers": 2,
            "vocab_size": 300,
            "target_vocab_size": 300,
        },
        "special_tokens": {"pad": 0, "unk": 1, "bos": 2, "eos": 3},
        "sources": [{"code": "en", "source_prefix": [], "target_prefix": []}],
        "targets": [{"code": "fr", "source_prefix": [], "target_prefix": []}],
        "labels": [],
        "label_activation": None,
        "limits": {"max_source_tokens": MAX_SOURCE_TOKENS, "max_target_tokens": 70},
        "pooling": None,
        "embedding": None,
        "decoding": {"beam_size": 4, "length_penalty": 1.0, "beam_threshold": 2.0, "stop": "empty"},
        "alignment": {"layer": 1, "heads": [0, 1, 2], "next_row": False},
        "slots": [],
        "evaluation": {},
    }
    names = ("encoder.onnx", "decoder_step.onnx", "attention.onnx")
    assert graphs.keys() == {f"{provider}/{name}" for provider in ("cpu", "cuda") for name in names}
    assert files.keys() == graphs.keys() | {"weights.safetensors", "tokenizer.json"}
    assert contents(directory).keys() == files.keys() | {"manifest.json", "config.yaml", "README.md"}
    for name, file in files.items():
        content = (directory / name).read_bytes()
        assert file == {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}


def graphs_of(directory: Path) -> dict[str, ir.Model]:
    return {name: ir.load(directory / name) for name in read_manifest(directory).graphs}


def test_the_manifest_of_an_imported_model_tells_its_origin_and_licence(
    artifact: MakeArtifact, checkpoint: MakeCheckpoint
) -> None:
    loaded = load_checkpoint(checkpoint("mean_classifier"))
    provenance = Provenance(source="owner/name", family="BERT", revision="0123abc", licence="mit")
    imported = replace(loaded, config=loaded.config.model_copy(update={"provenance": provenance}))
    directory = artifact("mean_classifier", "fp32")
    manifest = describe(imported, "fp32", directory, graphs_of(directory))
    assert (manifest.origin, manifest.licence) == (ModelOrigin(source="owner/name", revision="0123abc"), "mit")


def test_the_manifest_of_a_classifier(artifact: MakeArtifact) -> None:
    manifest = json.loads((artifact("max_classifier", "fp32") / "manifest.json").read_text())
    assert manifest["task"] == "classification"
    assert manifest["dimensions"]["n_decoder_layers"] == 0
    assert manifest["labels"] == ["bad", "good", "odd", "dull", "long"]
    assert manifest["limits"] == {"max_source_tokens": MAX_SOURCE_TOKENS, "max_target_tokens": 0}
    assert (manifest["pooling"], manifest["decoding"], manifest["sources"]) == ("max", None, [])
    assert manifest["alignment"] is None
    graphs = {f"{provider}/{name}.onnx" for provider in ("cpu", "cuda") for name in ("classifier", "attention")}
    assert manifest["files"].keys() == graphs | {"weights.safetensors", "tokenizer.json"}


def test_the_tokenizer_is_the_checkpoints(artifact: MakeArtifact, checkpoint: MakeCheckpoint) -> None:
    exported = (artifact("translation", "int8") / "tokenizer.json").read_bytes()
    assert exported == (checkpoint("translation") / "tokenizer.json").read_bytes()


def test_scores_come_from_the_checkpoint(artifact: MakeArtifact, checkpoint: MakeCheckpoint, tmp_path: Path) -> None:
    scored = shutil.copytree(checkpoint("mean_classifier"), tmp_path / "checkpoint")
    (scored / "evaluation.json").write_text(json.dumps(EVALUATION))
    directory = artifact("mean_classifier", "int8")
    manifest = describe(load_checkpoint(scored), "int8", directory, graphs_of(directory))
    assert manifest.model_dump(mode="json")["evaluation"] == EVALUATION


def test_the_heads_that_align_come_from_the_checkpoint(
    artifact: MakeArtifact, checkpoint: MakeCheckpoint, tmp_path: Path
) -> None:
    chosen = shutil.copytree(checkpoint("translation"), tmp_path / "checkpoint")
    choice = {"layer": 0, "heads": [2, 0], "next_row": True}
    (chosen / "alignment.json").write_text(json.dumps({"choice": choice, "measured": {}}))
    directory = artifact("translation", "int8")
    manifest = describe(load_checkpoint(chosen), "int8", directory, graphs_of(directory))
    assert manifest.model_dump(mode="json")["alignment"] == choice


def test_a_failed_proof_leaves_no_artifact(
    checkpoint: MakeCheckpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export.artifact, "quantize_model", spoil)
    with pytest.raises(ProofError, match=r"weights: tensors farther .*: 1 .*feed_forward\.hidden\.weight"):
        export_artifact(checkpoint("mean_classifier"), tmp_path / "out", "int8")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_proof_leaves_the_old_artifact(
    artifact: MakeArtifact, checkpoint: MakeCheckpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = shutil.copytree(artifact("mean_classifier", "fp32"), tmp_path / "out")
    before = contents(out)

    def fail(*_: object) -> None:
        raise ProofError("logits: relative error 1")

    def write(_from: Path, _checkpoint: object, _precision: str, directory: Path, *_: object) -> None:
        (directory / "manifest.json").write_text("of the successor")

    monkeypatch.setattr(export.artifact, "write", write)
    monkeypatch.setattr(export.artifact, "prove", fail)
    result = CliRunner().invoke(app, [str(checkpoint("mean_classifier")), str(out)])
    assert result.exit_code == 1
    assert ": logits: relative error" in result.stderr
    assert contents(out) == before
    assert list(tmp_path.iterdir()) == [out]


def test_an_artifact_is_replaced_by_its_successor_of_the_same_bytes_each_time(
    artifact: MakeArtifact, checkpoint: MakeCheckpoint, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = shutil.copytree(artifact("mean_classifier", "fp32"), tmp_path / "out")
    expected = contents(artifact("translation", "int8"))
    capfd.readouterr()
    before, arguments = contents(out), [str(checkpoint("translation")), str(out), "--precision", "int8"]
    refused = CliRunner().invoke(app, arguments)
    assert refused.exit_code == 1
    assert "the task classification instead of translation" in refused.stderr
    assert contents(out) == before
    result = CliRunner().invoke(app, [*arguments, "--overwrite"])
    assert result.exit_code == 0, result.stderr
    assert "cpu: translations together and alone: 3 of 3 equal" in result.stdout
    assert "curl -s localhost:8000/translate " in result.stdout.splitlines()[-1]
    assert capfd.readouterr().err == ""
    steps = result.stderr.splitlines()
    assert {"reading weights", "choosing scales of layer", "proving the graphs for cpu"} < set(steps)
    assert len(steps) < 20, "it warns"
    assert contents(out) == expected
    assert list(tmp_path.iterdir()) == [out]
    assert stat.S_IMODE(out.stat().st_mode) & 0o055 == 0o055 & ~umask()


@pytest.mark.parametrize("precision", ["int8", "fp16", "fp32"])
@pytest.mark.parametrize("kind", ["translation_post_norm", "mean_classifier"])
def test_an_artifact_is_exported_to_the_same_bytes(
    artifact: MakeArtifact, tmp_path: Path, kind: Kind, precision: Precision
) -> None:
    """Also over itself, where its owner keeps notes and files for people."""
    out = shutil.copytree(artifact(kind, precision), tmp_path / "artifact")
    notes = {
        "README.md": "A model.",
        "recipe.yaml": "data: {}",
        "training.json": "{}",
        "notes/todo": "!",
        "cpu/log": "?",
    }
    for name, text in notes.items():
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).write_text(text)
    before = contents(out)
    export_artifact(out, out, precision)
    assert contents(out) == before
    assert [path.name for path in tmp_path.iterdir()] == ["artifact"]


def test_an_artifact_is_read_as_the_checkpoint_that_it_was(artifact: MakeArtifact, checkpoint: MakeCheckpoint) -> None:
    expected = load_checkpoint(checkpoint("mean_classifier")).model.state_dict()
    for precision, tolerance in (("fp32", 0.0), ("fp16", 0.0), ("int8", 0.02)):
        found = load_checkpoint(artifact("mean_classifier", precision)).model.state_dict()
        for name, tensor in expected.items():
            torch.testing.assert_close(
                found[name], tensor, rtol=0, atol=tolerance * float(tensor.abs().max()), msg=name
            )


def test_damaged_weights_are_refused_and_not_exported_anew(artifact: MakeArtifact, tmp_path: Path) -> None:
    out = shutil.copytree(artifact("mean_classifier", "fp16"), tmp_path / "artifact")
    weights = bytearray((out / WEIGHTS).read_bytes())
    weights[-200] ^= 1
    (out / WEIGHTS).write_bytes(weights)
    before = contents(out)
    with pytest.raises(
        CheckpointError, match=r"weights\.safetensors is damaged: its sha256 is not what manifest\.json"
    ):
        export_artifact(out, out, "fp16")
    assert contents(out) == before


def test_what_is_no_artifact_is_never_replaced(checkpoint: MakeCheckpoint, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ExportError, match="exists and is not an artifact"):
        export_artifact(checkpoint("translation"), tmp_path, "int8")
    assert (tmp_path / "thesis.txt").exists()


@pytest.mark.parametrize("model", [RECURRENT, LANGUAGE_MODEL], ids=lambda model: model["task"])
def test_what_is_not_served_is_refused_by_its_task(tmp_path: Path, model: Section) -> None:
    write_model(tmp_path / "checkpoint", "tiny", model | {"vocab_size": 300})
    with pytest.raises(ExportError, match=f"{model['task'].replace('_', ' ')} models cannot be served"):
        export_artifact(tmp_path / "checkpoint", tmp_path / "artifact", "fp32")
    assert not (tmp_path / "artifact").exists()


def test_a_beam_that_is_not_served_is_refused(checkpoint: MakeCheckpoint, tmp_path: Path) -> None:
    shutil.copytree(checkpoint("translation"), tmp_path / "checkpoint")
    config = load_config(tmp_path / "checkpoint")
    wide = config.decoding.model_copy(update={"beam_size": MAX_BEAM_SIZE + 1})
    save_config(tmp_path / "checkpoint", config.model_copy(update={"decoding": wide}))
    with pytest.raises(ExportError, match=r"`decoding.beam_size` is 9; it must be at most 8"):
        export_artifact(tmp_path / "checkpoint", tmp_path / "artifact", "fp32")


def test_what_is_no_checkpoint_is_named(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, [str(tmp_path / "nowhere"), str(tmp_path / "out")])
    assert result.exit_code == 1
    assert "nowhere is not a checkpoint: config.yaml is missing" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("file", "content", "sentence"),
    [
        ("tokenizer.json", b"{", "tokenizer.json is damaged: EOF while parsing"),
        ("config.yaml", b"name: [\nx", "config.yaml: not YAML: while parsing a flow sequence in"),
        ("config.yaml", b"name: \xff", "config.yaml: not YAML: "),
    ],
)
def test_a_damaged_checkpoint_is_refused_in_a_sentence(
    checkpoint: MakeCheckpoint, tmp_path: Path, file: str, content: bytes, sentence: str
) -> None:
    damaged = shutil.copytree(checkpoint("mean_classifier"), tmp_path / "damaged")
    (damaged / file).write_bytes(content)
    result = CliRunner().invoke(app, [str(damaged), str(tmp_path / "out")])
    assert result.exit_code == 1
    *steps, said = result.stderr.splitlines()
    assert said.startswith(f"cannot export {damaged}: {damaged}/{sentence}")
    assert steps == ["reading weights"]
    assert list(tmp_path.iterdir()) == [damaged]


def test_a_place_that_cannot_be_written_is_told(
    checkpoint: MakeCheckpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(export.artifact, "write", fail)
    result = CliRunner().invoke(app, [str(checkpoint("mean_classifier")), str(tmp_path / "out")])
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1].endswith(": [Errno 28] No space left on device")
    assert list(tmp_path.iterdir()) == []


def spoil(
    model: TransformerClassifier, stored: Mapping[str, Tensor], reading: Reading, least: float
) -> Transformer | TransformerClassifier:
    """Imitate a wrong rounding: double one scale."""
    served = quantize_model(model, stored, reading, least)
    dict(served.named_buffers())["encoder.layers.0.feed_forward.hidden.weight_scales"] *= 2
    return served


def contents(directory: Path) -> dict[str, bytes]:
    files = [path for path in directory.rglob("*") if path.is_file()]
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in files}


def umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
