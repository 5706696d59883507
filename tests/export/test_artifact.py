"""The directory: what its manifest says, that it is made whole or not at all, and always of the same bytes."""

import hashlib
import json
import os
import shutil
import stat
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from typer.testing import CliRunner

import export.artifact
from export.__main__ import app
from export.artifact import export as export_artifact
from export.calibration import Limits
from export.manifest import describe
from export.proof import ProofError
from export.tracing import ExportError
from model.checkpoint import load_checkpoint
from model.networks.transformer import TransformerClassifier
from tests.export.tiny_checkpoints import MAX_SOURCE_TOKENS, MakeArtifact, MakeCheckpoint, write_model
from tests.model.tiny_configs import LANGUAGE_MODEL, RECURRENT, Section

EVALUATION = {"some-test": {"bleu": 41.25, "chrf": 60.5}}


def test_the_manifest_of_a_translator(artifact: MakeArtifact) -> None:
    directory = artifact("translation", "int8")
    manifest = json.loads((directory / "manifest.json").read_text())
    files = manifest.pop("files")
    assert manifest == {
        "format_version": 7,
        "name": "translation",
        "task": "translation",
        "precision": "int8",
        "opset": 24,
        "dimensions": {
            "d_model": 24,
            "n_heads": 3,
            "head_dim": 8,
            "d_ff": 40,
            "n_encoder_layers": 3,
            "n_decoder_layers": 2,
            "vocab_size": 300,
        },
        "special_tokens": {"pad": 0, "unk": 1, "bos": 2, "eos": 3},
        "directions": [{"source": "en", "target": "fr"}],
        "labels": [],
        "limits": {"max_source_tokens": MAX_SOURCE_TOKENS, "max_target_tokens": 70},
        "pooling": None,
        "decoding": {"beam_size": 4, "length_penalty": 1.0, "beam_threshold": 2.0},
        "alignment": {"layer": 1, "heads": [0, 1, 2], "next_row": False},
        "bias": None,
        "evaluation": {},
    }
    assert files.keys() == {"encoder.onnx", "decoder_step.onnx", "attention.onnx", "weights.bin", "tokenizer.json"}
    assert {path.name for path in directory.iterdir()} == files.keys() | {"manifest.json"}
    for name, file in files.items():
        content = (directory / name).read_bytes()
        assert file == {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}


def test_the_manifest_of_a_classifier(artifact: MakeArtifact, checkpoint: MakeCheckpoint) -> None:
    manifest = json.loads((artifact("max_classifier", "fp32") / "manifest.json").read_text())
    assert manifest["task"] == "classification"
    assert manifest["dimensions"]["n_decoder_layers"] == 0
    assert manifest["labels"] == ["bad", "good", "odd", "dull", "long"]
    assert manifest["limits"] == {"max_source_tokens": MAX_SOURCE_TOKENS, "max_target_tokens": 0}
    assert (manifest["pooling"], manifest["decoding"], manifest["directions"]) == ("max", None, [])
    model = load_checkpoint(checkpoint("max_classifier")).model
    assert isinstance(model, TransformerClassifier)
    assert (manifest["alignment"], manifest["bias"]) == (None, model.output.bias.tolist())
    assert manifest["files"].keys() == {"classifier.onnx", "attention.onnx", "weights.bin", "tokenizer.json"}


def test_the_tokenizer_is_the_checkpoints(artifact: MakeArtifact, checkpoint: MakeCheckpoint) -> None:
    exported = (artifact("translation", "int8") / "tokenizer.json").read_bytes()
    assert exported == (checkpoint("translation") / "tokenizer.json").read_bytes()


def test_scores_come_from_the_checkpoint(checkpoint: MakeCheckpoint, tmp_path: Path) -> None:
    scored = tmp_path / "checkpoint"
    shutil.copytree(checkpoint("mean_classifier"), scored)
    (scored / "evaluation.json").write_text(json.dumps(EVALUATION))
    manifest = describe(load_checkpoint(scored), "int8", scored)
    assert manifest.model_dump(mode="json")["evaluation"] == EVALUATION


def test_the_heads_that_align_come_from_the_checkpoint(checkpoint: MakeCheckpoint, tmp_path: Path) -> None:
    chosen = tmp_path / "checkpoint"
    shutil.copytree(checkpoint("translation"), chosen)
    choice = {"layer": 0, "heads": [2, 0], "next_row": True}
    (chosen / "alignment.json").write_text(json.dumps({"choice": choice, "measured": {}}))
    manifest = describe(load_checkpoint(chosen), "int8", tmp_path / "checkpoint")
    assert manifest.model_dump(mode="json")["alignment"] == choice


def test_a_failed_proof_leaves_no_artifact(
    checkpoint: MakeCheckpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export.artifact, "quantize", spoil)
    with pytest.raises(ProofError, match=r"logits: relative error .* \(tolerance 1e-01\)"):
        export_artifact(checkpoint("mean_classifier"), tmp_path / "out", "int8")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_proof_leaves_the_old_artifact(
    artifact: MakeArtifact, checkpoint: MakeCheckpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    shutil.copytree(artifact("mean_classifier", "fp32"), out)
    before = contents(out)

    def fail(*_: object) -> None:
        raise ProofError("logits: relative error 1")

    def write(*arguments: Any) -> None:
        (arguments[-1] / "manifest.json").write_text("of the successor")

    monkeypatch.setattr(export.artifact, "write", write)
    monkeypatch.setattr(export.artifact, "prove", fail)
    result = CliRunner().invoke(app, [str(checkpoint("mean_classifier")), str(out)])
    assert result.exit_code == 1
    assert "is not exported: logits: relative error" in result.stderr
    assert contents(out) == before
    assert list(tmp_path.iterdir()) == [out]


def test_an_artifact_is_replaced_by_its_successor_of_the_same_bytes_each_time(
    artifact: MakeArtifact, checkpoint: MakeCheckpoint, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    shutil.copytree(artifact("mean_classifier", "fp32"), out)
    expected = contents(artifact("translation", "int8"))
    capfd.readouterr()
    result = CliRunner().invoke(app, [str(checkpoint("translation")), str(out), "--precision", "int8"])
    assert result.exit_code == 0, result.stderr
    assert "translations together and alone: 13 of 13 equal" in result.stdout
    assert result.stderr == capfd.readouterr().err == ""
    assert contents(out) == expected
    assert list(tmp_path.iterdir()) == [out]
    assert stat.S_IMODE(out.stat().st_mode) & 0o055 == 0o055 & ~umask()


def test_what_is_no_artifact_is_never_replaced(checkpoint: MakeCheckpoint, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ExportError, match="is in the way"):
        export_artifact(checkpoint("translation"), tmp_path, "int8")
    assert (tmp_path / "thesis.txt").exists()


@pytest.mark.parametrize("model", [RECURRENT, LANGUAGE_MODEL], ids=lambda model: model["task"])
def test_what_is_not_served_is_refused_by_its_task(tmp_path: Path, model: Section) -> None:
    write_model(tmp_path / "checkpoint", "tiny", model | {"vocab_size": 300})
    with pytest.raises(ExportError, match=f"{model['task'].replace('_', ' ')} models are not served"):
        export_artifact(tmp_path / "checkpoint", tmp_path / "artifact", "fp32")
    assert not (tmp_path / "artifact").exists()


def test_what_is_no_checkpoint_is_named(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, [str(tmp_path / "nowhere"), str(tmp_path / "out")])
    assert result.exit_code == 1
    assert "nowhere is not a checkpoint: config.yaml is missing" in result.stderr
    assert list(tmp_path.iterdir()) == []


def spoil(model: ir.Model, limits: Limits) -> None:
    """What a wrong pass would do: double one weight."""
    for node in model.graph:
        weight = node.inputs[1] if node.op_type == "MatMul" else None
        if weight is not None and weight.const_value is not None:
            weight.const_value = ir.tensor(weight.const_value.numpy() * np.float32(2), name=weight.name)
            return


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
