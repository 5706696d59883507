"""`python -m export.evaluate` on test sets whose scores are known."""

import lzma
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from typer.testing import CliRunner

from export.evaluate import app
from model.checkpoint import load_checkpoint
from model.evaluation.scoring import classify, translate
from tests.export.tiny_checkpoints import MAX_SOURCE_TOKENS, Kind, MakeArtifact, MakeCheckpoint

TEXTS = [
    "Two dogs run.",
    "She asked him.",
    "No.",
    "The law comes into force, and the law is the law.",
    "A weak script, tired actors and two hours that feel like four, or like five, or like a week in the rain.",
]
LABELS = ["bad", "good", "odd", "dull", "long"]


@pytest.mark.parametrize("options", [[], ["--swap"]])
def test_pytorchs_own_translations_score_a_hundred(
    artifact: MakeArtifact, checkpoint: MakeCheckpoint, tmp_path: Path, options: list[str]
) -> None:
    texts = [text for text in TEXTS if len(text) < MAX_SOURCE_TOKENS]
    translations = [text for text, _ in translate(load_checkpoint(checkpoint("translation")), texts)]
    rows = [(s, t) for s, t in zip(texts, translations, strict=True) if t.strip() and "\t" not in t and "\n" not in t]
    test = tmp_path / "test.tsv.xz"
    with lzma.open(test, "wt", encoding="utf-8") as file:
        file.writelines("\t".join(reversed(row) if options else row) + "\n" for row in rows)
    result = CliRunner().invoke(app, [str(artifact("translation", "fp32")), str(test), *options])
    assert result.exit_code == 0, result.stderr
    assert "chrf 100.0 nrefs:1" in result.stdout
    assert f"translation fp32, cpu: {len(rows)} texts" in result.stdout


@pytest.mark.parametrize("kind", ["mean_classifier", "max_classifier"])
def test_pytorchs_own_labels_are_all_right_and_long_texts_are_read_in_windows(
    artifact: MakeArtifact, checkpoint: MakeCheckpoint, tmp_path: Path, kind: Kind
) -> None:
    loaded = load_checkpoint(checkpoint(kind))
    tokenizer: Tokenizer = loaded.tokenizer
    assert max(len(tokenizer.encode(text).ids) for text in TEXTS) > MAX_SOURCE_TOKENS
    labels = [max(scores, key=scores.__getitem__) for scores in classify(loaded, TEXTS)]
    wrong = [label if i else next(other for other in LABELS if other != label) for i, label in enumerate(labels)]
    in_file = ["+" if label == "good" else label for label in wrong]
    test = tmp_path / "test.tsv"
    test.write_text("".join(f"{label}\t{text}\n" for label, text in zip(in_file, TEXTS, strict=True)))
    result = CliRunner().invoke(app, [str(artifact(kind, "fp32")), str(test), "--label", "+=good"])
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("accuracy 80.0\n")


def test_a_missing_test_set_is_named(artifact: MakeArtifact, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, [str(artifact("translation", "fp32")), str(tmp_path / "none.tsv")])
    assert result.exit_code == 1
    assert "none.tsv: no such file" in result.stderr


def test_a_label_that_the_model_has_not_is_named(artifact: MakeArtifact, tmp_path: Path) -> None:
    test = tmp_path / "test.tsv"
    test.write_text("good\tYes.\npos\tYes.\n")
    result = CliRunner().invoke(app, [str(artifact("mean_classifier", "fp32")), str(test)])
    assert result.exit_code == 1
    assert "unknown labels pos; the model has bad, good, odd, dull, long" in result.stderr
