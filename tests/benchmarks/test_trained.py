from pathlib import Path

import pytest
from rich.console import Console

from benchmarks import trained
from benchmarks.trained import QUICK, quick_experiment, train_and_evaluate
from manifest.layout import TOKENIZER
from model.checkpoint import EVALUATION, TRAINING
from tests.model.tiny_configs import TRANSLATOR, configured

CORPUS = {"file": "a.tsv", "licence": "none"}
EXPERIMENT = configured(TRANSLATOR, data={"train": [CORPUS], "test": [CORPUS]})


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the commands that run, and write the files that real ones would."""
    names: list[str] = []

    def run(arguments: list[str], log: Path) -> None:
        names.append(arguments[0])
        checkpoint = log.parent / "run" / "checkpoint"
        checkpoint.mkdir(parents=True, exist_ok=True)
        (checkpoint / {"train": TRAINING, "evaluate": EVALUATION}[arguments[0]]).touch()

    monkeypatch.setattr(trained, "_run", run)
    return names


def test_what_was_trained_is_kept_until_its_configuration_changes(tmp_path: Path, commands: list[str]) -> None:
    for _ in range(2):
        assert train_and_evaluate(EXPERIMENT, tmp_path, None, Console()) == tmp_path / "run" / "checkpoint"
    assert commands == ["train", "evaluate"]
    train_and_evaluate(EXPERIMENT.model_copy(update={"description": "Another."}), tmp_path, None, Console())
    assert commands == ["train", "evaluate"] * 2


def test_a_run_that_was_interrupted_goes_on(tmp_path: Path, commands: list[str]) -> None:
    train_and_evaluate(EXPERIMENT, tmp_path, None, Console())
    (tmp_path / "run" / "checkpoint" / EVALUATION).unlink()
    train_and_evaluate(EXPERIMENT, tmp_path, None, Console())
    assert commands == ["train", "evaluate", "evaluate"]


def test_a_tokenizer_is_shared(tmp_path: Path, commands: list[str]) -> None:
    (tmp_path / "other.json").write_text("{}")
    train_and_evaluate(EXPERIMENT, tmp_path, None, Console(), tokenizer=tmp_path / "other.json")
    assert (tmp_path / "run" / TOKENIZER).read_text() == "{}"


@pytest.mark.process
def test_a_command_that_fails_names_its_output(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"train .* failed: see .*train\.log"):
        train_and_evaluate(EXPERIMENT, tmp_path, tmp_path / "absent", Console())
    assert "no such file" in (tmp_path / "train.log").read_text()


def test_a_quick_experimenturation_has_few_steps_and_rows() -> None:
    quick = quick_experiment(EXPERIMENT)
    assert quick.training.max_steps == QUICK["max_steps"]
    assert all(source.sample for source in (*quick.data.train, *quick.data.test))
    assert quick.model == EXPERIMENT.model
