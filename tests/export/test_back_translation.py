"""`python -m export.back_translation` gives the pairs that PyTorch's own translations make."""

import lzma
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from export import back_translation
from export.back_translation import app, letters_of
from model.checkpoint import load_checkpoint
from model.data import read_tsv
from model.evaluation.scoring import translate
from tests.export.tiny_checkpoints import MAX_SOURCE_TOKENS, MakeArtifact, MakeCheckpoint

TEXTS = ["Two dogs run.", "She asked him.", "No.", "The law is the law.", "He asked her, and she asked him."]
LONG = "A weak script, tired actors and two hours that feel like four, or like five, or like a week in the rain."


def write(path: Path, texts: list[str]) -> Path:
    with lzma.open(path, "wt", encoding="utf-8") as file:
        file.writelines(f"{text}\tx\n" for text in texts)
    return path


def run(artifact: Path, corpora: list[Path], out: Path, *options: str) -> Result:
    return CliRunner().invoke(app, [str(artifact), *map(str, corpora), "--out", str(out), *options])


def test_each_unknown_text_that_ends_is_translated_once(
    artifact: MakeArtifact, checkpoint: MakeCheckpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(back_translation, "AT_ONCE", 2)
    others = ["two dogs run", "12:30", *TEXTS[2:], LONG]
    corpora = [write(tmp_path / "a.tsv.xz", TEXTS[:3]), write(tmp_path / "b.tsv.xz", others)]
    known, out = write(tmp_path / "known.tsv.xz", ["SHE ASKED HIM"]), tmp_path / "new" / "out.tsv.xz"
    result = run(artifact("translation", "fp32"), corpora, out, "--without", str(known), "--least-score", "-99")
    assert result.exit_code == 0, result.stderr
    asked = [text for text in TEXTS if text != "She asked him." and len(text) < MAX_SOURCE_TOKENS]
    translations = translate(load_checkpoint(checkpoint("translation")), asked)
    expected = [
        (text, " ".join(translation.split()))
        for text, (translation, hypothesis) in zip(asked, translations, strict=True)
        if hypothesis.finished and letters_of(translation)
    ]
    assert [tuple(row) for row in read_tsv(out)] == expected
    assert f"{len(expected)} of 5 texts" in result.stdout
    assert [path.name for path in out.parent.iterdir()] == ["out.tsv.xz"]


def test_what_the_model_is_not_sure_of_is_left_out(
    artifact: MakeArtifact, checkpoint: MakeCheckpoint, tmp_path: Path
) -> None:
    hypotheses = [hypothesis for _, hypothesis in translate(load_checkpoint(checkpoint("translation")), TEXTS)]
    scores = sorted(hypothesis.score for hypothesis in hypotheses if hypothesis.finished)
    corpus, out = write(tmp_path / "a.tsv.xz", TEXTS), tmp_path / "out.tsv.xz"
    least = (scores[-2] + scores[-1]) / 2
    result = run(artifact("translation", "fp32"), [corpus], out, "--least-score", str(least))
    assert result.exit_code == 0, result.stderr
    assert len(list(read_tsv(out))) == 1


def test_the_second_column_is_translated_into_what_the_corpus_does_not_have(
    artifact: MakeArtifact, tmp_path: Path
) -> None:
    corpus, out, swapped = write(tmp_path / "a.tsv.xz", TEXTS), tmp_path / "out.tsv.xz", tmp_path / "swapped.tsv.xz"
    assert run(artifact("translation", "fp32"), [corpus], out, "--least-score", "-99").exit_code == 0
    rows = list(read_tsv(out))
    other_way = tmp_path / "b.tsv.xz"
    for known, expected in (("x", rows), (rows[0].right + "!", rows[1:])):
        with lzma.open(other_way, "wt", encoding="utf-8") as file:
            file.write(f"{known}\t{rows[0].left}\n")
            file.writelines(f"{number}\t{row.left}\n" for number, row in enumerate(rows[1:]))
        swapped.unlink(missing_ok=True)
        result = run(artifact("translation", "fp32"), [other_way], swapped, "--swap", "--least-score", "-99")
        assert result.exit_code == (0 if expected else 1)
        assert (list(read_tsv(swapped)) if expected else []) == expected


def test_a_missing_corpus_is_named_and_nothing_is_written(artifact: MakeArtifact, tmp_path: Path) -> None:
    result = run(artifact("translation", "fp32"), [tmp_path / "none.tsv"], tmp_path / "out.tsv.xz")
    assert result.exit_code == 1
    assert "none.tsv: no such file" in result.stderr
    assert not list(tmp_path.iterdir())


def test_a_classifier_does_not_translate(artifact: MakeArtifact, tmp_path: Path) -> None:
    corpus = write(tmp_path / "a.tsv.xz", TEXTS)
    result = run(artifact("mean_classifier", "fp32"), [corpus], tmp_path / "out.tsv.xz")
    assert result.exit_code == 1
    assert "does not translate" in result.stderr


@pytest.mark.parametrize("option", [[], ["--least-score", "0"]])
def test_where_no_translation_is_left_what_was_there_stays(
    artifact: MakeArtifact, tmp_path: Path, option: list[str]
) -> None:
    corpus, out = write(tmp_path / "a.tsv.xz", TEXTS), write(tmp_path / "out.tsv.xz", ["precious"])
    known = ["--without", str(write(tmp_path / "known.tsv.xz", TEXTS))] if not option else []
    result = run(artifact("translation", "fp32"), [corpus], out, *known, *option)
    assert result.exit_code == 1
    assert "none has a translation that is kept" in result.stderr
    assert [row.left for row in read_tsv(out)] == ["precious"]
    assert not list(tmp_path.glob("*.unfinished"))


def test_a_corpus_is_never_written_over(artifact: MakeArtifact, tmp_path: Path) -> None:
    corpus = write(tmp_path / "a.tsv.xz", TEXTS)
    result = run(artifact("translation", "fp32"), [corpus], tmp_path / "." / "a.tsv.xz")
    assert result.exit_code == 1
    assert "is one of the corpora" in result.stderr
    assert len(list(read_tsv(corpus))) == len(TEXTS)


def test_a_name_that_training_would_not_decompress_is_refused(artifact: MakeArtifact, tmp_path: Path) -> None:
    corpus = write(tmp_path / "a.tsv.xz", TEXTS)
    result = run(artifact("translation", "fp32"), [corpus], tmp_path / "out.tsv")
    assert result.exit_code == 1
    assert "must end in .xz" in result.stderr


def test_texts_are_the_same_whose_letters_are() -> None:
    assert letters_of("Café — NOIR!") == letters_of("cafe\u0301 noir")
    assert letters_of("STRASSE") == letters_of("Straße")
    assert letters_of("कि") != letters_of("के")
