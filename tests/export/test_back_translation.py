"""`python -m export.back_translation` gives the pairs that PyTorch's own translations make."""

import lzma
from pathlib import Path

from typer.testing import CliRunner

from export.back_translation import app
from model.checkpoint import load_checkpoint
from model.data import read_tsv
from model.evaluation import translate
from tests.export.tiny_checkpoints import MAX_SOURCE_TOKENS, MakeArtifact, MakeCheckpoint

TEXTS = ["Two dogs run.", "She asked him.", "No.", "The law is the law.", "He asked her, and she asked him."]
LONG = "A weak script, tired actors and two hours that feel like four, or like five, or like a week in the rain."


def write(path: Path, texts: list[str]) -> Path:
    with lzma.open(path, "wt", encoding="utf-8") as file:
        file.writelines(f"{text}\tx\n" for text in texts)
    return path


def test_each_unknown_text_that_ends_is_translated_once(
    artifact: MakeArtifact, checkpoint: MakeCheckpoint, tmp_path: Path
) -> None:
    corpora = [
        write(tmp_path / "a.tsv.xz", TEXTS[:3]),
        write(tmp_path / "b.tsv.xz", ["two dogs run", *TEXTS[2:], LONG]),
    ]
    known, out = write(tmp_path / "known.tsv.xz", ["SHE ASKED HIM"]), tmp_path / "new" / "out.tsv.xz"
    arguments = [
        str(artifact("translation", "fp32")),
        *map(str, corpora),
        "--without",
        str(known),
        "--out",
        str(out),
        "--least-score",
        "-99",
    ]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.stderr
    asked = [text for text in TEXTS if text != "She asked him." and len(text) < MAX_SOURCE_TOKENS]
    translations = translate(load_checkpoint(checkpoint("translation")), asked)
    expected = [
        (text, " ".join(t.split()))
        for text, (t, hypothesis) in zip(asked, translations, strict=True)
        if hypothesis.finished
    ]
    assert [tuple(row) for row in read_tsv(out)] == [row for row in expected if row[1]]
    assert "of 5 texts" in result.stdout


def test_what_the_model_is_not_sure_of_is_left_out(
    artifact: MakeArtifact, checkpoint: MakeCheckpoint, tmp_path: Path
) -> None:
    hypotheses = [hypothesis for _, hypothesis in translate(load_checkpoint(checkpoint("translation")), TEXTS)]
    scores = sorted(hypothesis.score for hypothesis in hypotheses if hypothesis.finished)
    corpus, out = write(tmp_path / "a.tsv.xz", TEXTS), tmp_path / "out.tsv.xz"
    least = (scores[-2] + scores[-1]) / 2
    arguments = [str(artifact("translation", "fp32")), str(corpus), "--out", str(out), "--least-score", str(least)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.stderr
    assert len(list(read_tsv(out))) == 1


def test_a_missing_corpus_is_named_and_nothing_is_written(artifact: MakeArtifact, tmp_path: Path) -> None:
    out = tmp_path / "out.tsv.xz"
    arguments = [str(artifact("translation", "fp32")), str(tmp_path / "none.tsv"), "--out", str(out)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert "none.tsv: no such file" in result.stderr
    assert not out.exists()


def test_a_classifier_does_not_translate(artifact: MakeArtifact, tmp_path: Path) -> None:
    corpus = write(tmp_path / "a.tsv.xz", TEXTS)
    arguments = [str(artifact("mean_classifier", "fp32")), str(corpus), "--out", str(tmp_path / "out.tsv.xz")]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert "does not translate" in result.stderr
