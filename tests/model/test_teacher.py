"""A classifier that learns what another one says of texts without labels."""

from pathlib import Path

import pytest

from model.checkpoint import load_checkpoint
from model.config import ConfigError
from model.data import DataError
from model.evaluation.scoring import classify
from model.recipe import Experiment
from model.training.train import train
from tests.model.tiny_training import REVIEWS, WARNINGS, classifier_experiment, lines

pytestmark = WARNINGS


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("teacher")
    (root / "reviews.tsv").write_text(lines(REVIEWS * 4))
    train(classifier_experiment(), root, root / "run", root / "checkpoint")
    return root / "checkpoint"


def pupil(**model: object) -> Experiment:
    experiment = classifier_experiment().model_dump()
    experiment["data"]["train"] = [{"file": "texts.tsv", "licence": "ours", "taught": True, "shortest_crop": 3}]
    experiment["training"]["seed"] = 7
    experiment["model"] |= model
    return Experiment.model_validate(experiment)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "texts.tsv").write_text(lines([("-", text) for _, text in REVIEWS * 8]))
    return tmp_path


def test_texts_without_labels_are_labelled_by_the_teacher(teacher: Path, data: Path) -> None:
    train(pupil(), data, data / "run", data / "out", teacher=teacher)
    texts = [text for _, text in REVIEWS]
    taught, told = (classify(load_checkpoint(directory), texts) for directory in (data / "out", teacher))
    for probabilities, expected in zip(taught, told, strict=True):
        assert probabilities == pytest.approx(expected, abs=0.15)
    assert taught[0]["negative"] > 0.7 < taught[1]["positive"]


def test_without_a_teacher_they_are_left_out(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(DataError, match="no training rows"):
        train(pupil(), data, data / "run", data / "out")
    assert "what --teacher would label of texts.tsv" in capsys.readouterr().out


def test_a_teacher_of_other_labels_is_refused(teacher: Path, data: Path) -> None:
    with pytest.raises(ConfigError, match="no classifier with the labels bad, good"):
        train(pupil(labels=["bad", "good"]), data, data / "run", data / "out", teacher=teacher)
