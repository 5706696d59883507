"""The parts of a tiny classifier, trained together and one by one."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from model.batching import ReviewExample, collate_masked
from model.checkpoint import OF_TOKENS, average_weights, build_model, load_checkpoint, load_training
from model.config import ClassifierConfig, ConfigError, NGramConfig
from model.evaluation.scoring import classify
from model.networks.ngrams import NGramLogits
from model.networks.transformer import TransformerClassifier
from model.recipe import Experiment, Part
from model.training import parts
from model.training.parts import sure_labels
from model.training.train import train
from tests.model.tiny_configs import CLASSIFIER
from tests.model.tiny_training import REVIEWS, WARNINGS, classifier_experiment, lines

N_GRAMS = {"buckets": 97, "longest": 3}
REGIONS = {"width": 12, "detectors": 17, "dropout": 0.0}
pytestmark = WARNINGS


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "reviews.tsv").write_text(lines(REVIEWS * 4))
    return tmp_path


def test_n_grams_are_trained_beside_the_encoder_and_weighed_on_what_was_held_out(data: Path, tmp_path: Path) -> None:
    experiment = classifier_experiment().model_dump()
    experiment["model"] |= {"n_grams": {"buckets": 97, "longest": 3}, "lower_case": True}
    experiment["data"]["validation_fraction"] = 0.25
    (data / "unlabelled.tsv").write_text(lines([("-", text) for _, text in REVIEWS * 4]))
    experiment["n_gram_training"] = {
        "training": experiment["training"],
        "unlabelled": [{"file": "unlabelled.tsv", "licence": "ours"}],
    }
    train(Experiment.model_validate(experiment), data, tmp_path / "run", tmp_path / "out")
    checkpoint = load_checkpoint(tmp_path / "out")
    assert isinstance(checkpoint.model, TransformerClassifier)
    assert checkpoint.model.n_grams is not None
    assert checkpoint.model.n_grams.weight.abs().max() > 0
    bad, good = (text for _, text in REVIEWS)
    scores = classify(checkpoint, [bad, good, good.upper()])
    assert [max(score, key=score.__getitem__) for score in scores] == ["negative", "positive", "positive"]
    assert scores[1] == scores[2]


def with_regions(data: Path) -> dict[str, Any]:
    """The classifier's configuration with regions beside its encoder, and texts for them."""
    experiment = classifier_experiment().model_dump()
    experiment["model"]["regions"] = REGIONS
    experiment["data"]["validation_fraction"] = 0.25
    (data / "near.tsv").write_text(lines([("-", text) for _, text in REVIEWS * 60]))
    experiment["region_training"] = {
        "unlabelled": [{"file": "near.tsv", "licence": "free"}],
        "pretraining": experiment["training"],
        "training": experiment["training"],
    }
    return experiment


def test_regions_are_trained_beside_the_encoder(data: Path, tmp_path: Path) -> None:
    experiment = Experiment.model_validate(with_regions(data))
    train(experiment, data, tmp_path / "run", tmp_path / "out")
    checkpoint = load_checkpoint(tmp_path / "out")
    assert isinstance(checkpoint.model, TransformerClassifier)
    assert checkpoint.model.regions is not None
    labels = []
    for _, text in REVIEWS:
        ids = torch.tensor([checkpoint.tokenizer.encode(text).ids])
        labels.append(checkpoint.model.regions.pooled(ids, torch.tensor([ids.shape[1]])).argmax().item())
    assert labels == [0, 1]
    facts = load_training(tmp_path / "out")
    assert facts["steps"] == 3 * experiment.training.max_steps
    assert facts["licences"]["near.tsv"] == "free"
    assert "only" not in facts


def test_vectors_of_regions_are_learnt_before_the_labels_alone(data: Path, tmp_path: Path) -> None:
    train(Experiment.model_validate(with_regions(data)), data, tmp_path / "run", tmp_path / "out")
    last = tmp_path / "run" / "regions" / "pretraining" / "steps" / "last.ckpt"
    learnt = average_weights([last], "model.region_embedding.")["tokens.weight"]
    kept = load_checkpoint(tmp_path / "out").model.state_dict()["regions.embedding.tokens.weight"]
    torch.testing.assert_close(kept, learnt, rtol=2e-3, atol=1e-4)


@pytest.fixture
def start_with_parts(data: Path, tmp_path: Path) -> Path:
    """A classifier with n-grams and no regions."""
    experiment = classifier_experiment().model_dump()
    experiment["model"]["n_grams"] = N_GRAMS
    experiment["n_gram_training"] = {"training": experiment["training"]}
    train(Experiment.model_validate(experiment), data, tmp_path / "start-run", tmp_path / "start")
    return tmp_path / "start"


def only_regions(data: Path) -> Experiment:
    experiment = with_regions(data)
    experiment["model"]["n_grams"] = N_GRAMS
    experiment["n_gram_training"] = {"training": experiment["training"]}
    return Experiment.model_validate(experiment)


def test_one_part_is_trained_and_the_others_stay(start_with_parts: Path, data: Path, tmp_path: Path) -> None:
    experiment = only_regions(data)
    train(experiment, data, tmp_path / "run", tmp_path / "out", start_with_parts, only="regions")
    old, new = (load_checkpoint(path) for path in (start_with_parts, tmp_path / "out"))
    before, after = old.model.state_dict(), new.model.state_dict()
    assert {name for name in after if not name.startswith("regions.")} == before.keys()
    calibrated = ("output.weight", "output.bias", "n_grams.weight", "n_grams.prior")
    for name in before.keys() - set(calibrated):
        n_rows = len(old.tokenizer.get_vocab()) if name.endswith(OF_TOKENS) else len(before[name])
        torch.testing.assert_close(after[name][:n_rows], before[name][:n_rows])
    for name in ("output.weight", "n_grams.weight"):  # but for a factor
        factor = (after[name] * before[name]).sum() / (before[name] * before[name]).sum()
        torch.testing.assert_close(after[name], factor * before[name], rtol=2e-3, atol=1e-4)
    facts = load_training(tmp_path / "out")
    assert facts["only"] == "regions"
    assert facts["steps"] == load_training(start_with_parts)["steps"] + 2 * experiment.training.max_steps
    train(experiment, data, tmp_path / "all", tmp_path / "all-out", tmp_path / "out")
    assert "only" not in load_training(tmp_path / "all-out")


def test_a_killed_run_of_one_part_goes_on_with_it_unasked(
    start_with_parts: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = only_regions(data)
    monkeypatch.setattr(parts, "PartClassifier", killed)
    with pytest.raises(KeyboardInterrupt):
        train(experiment, data, tmp_path / "run", tmp_path / "out", start_with_parts, only="regions")
    monkeypatch.undo()
    with pytest.raises(ConfigError, match="holds a run of regions: name another directory by --run"):
        train(experiment, data, tmp_path / "run", tmp_path / "out", start_with_parts, only="n_grams")
    train(experiment, data, tmp_path / "run", tmp_path / "out")
    facts = load_training(tmp_path / "out")
    assert facts["only"] == "regions"
    assert facts["steps"] == load_training(start_with_parts)["steps"] + 2 * experiment.training.max_steps


def killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_regions_of_another_size_are_trained_anew(data: Path, tmp_path: Path) -> None:
    experiment = with_regions(data)
    train(Experiment.model_validate(experiment), data, tmp_path / "run", tmp_path / "out")
    experiment["model"]["regions"] = REGIONS | {"width": 14, "detectors": 19}
    train(
        Experiment.model_validate(experiment),
        data,
        tmp_path / "other",
        tmp_path / "out",
        tmp_path / "out",
        only="regions",
    )
    assert load_checkpoint(tmp_path / "out").model.state_dict()["regions.detectors.weight"].shape == (19, 14)


@pytest.mark.parametrize(
    ("only", "is_started", "message"),
    [
        ("regions", False, "--only trains one part of --start"),
        ("n_grams", True, "--only n_grams: tiny is no classifier that has n_grams"),
    ],
)
def test_a_part_that_there_is_not_is_refused(
    start_with_parts: Path, data: Path, tmp_path: Path, only: Part, is_started: bool, message: str
) -> None:
    experiment, start = Experiment.model_validate(with_regions(data)), start_with_parts if is_started else None
    with pytest.raises(ConfigError, match=message):
        train(experiment, data, tmp_path / "run", tmp_path / "out", start, only=only)


def test_texts_are_labelled_by_the_n_grams_where_they_are_sure() -> None:
    n_grams = NGramLogits(50, 3, NGramConfig(buckets=97, longest=2))
    n_grams.weight.data[10] = torch.tensor([2.0, 0.0])  # for the second class
    n_grams.weight.data[11] = torch.tensor([-3.0, -3.0])  # for the first
    texts = [np.array(ids, dtype=np.int32) for ids in ([10, 10], [11, 11, 11], [10, 20, 20, 20], [20])]
    sure = sure_labels(n_grams, texts, least_margin=1.0)
    assert {(tuple(example.ids.tolist()), example.label) for example in sure} == {((10, 10), 1), ((11, 11, 11), 0)}


@pytest.mark.parametrize(
    ("part", "section", "training"),
    [("n_grams", N_GRAMS, "n_gram_training"), ("regions", REGIONS, "region_training")],
)
def test_a_part_that_nobody_trains_is_refused(part: str, section: dict[str, Any], training: str) -> None:
    experiment = classifier_experiment().model_dump()
    experiment["model"][part] = section
    with pytest.raises(ValueError, match=training):
        Experiment.model_validate(experiment)


@pytest.mark.parametrize(("part", "section"), [("n_grams", N_GRAMS), ("regions", REGIONS)])
def test_a_part_beside_a_maximum_is_refused(part: str, section: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{part} need mean pooling"):
        ClassifierConfig.model_validate(CLASSIFIER | {"pooling": "max", part: section})


def test_pretraining_on_unlabelled_text_leaves_its_encoder_to_the_classifier(data: Path, tmp_path: Path) -> None:
    experiment = classifier_experiment().model_dump()
    texts = [{"file": "unlabelled.tsv", "licence": "ours"}]
    experiment["pretraining"] = {"train": texts, "masked": 0.3, "training": experiment["training"]}
    (data / "unlabelled.tsv").write_text(lines([("-", text) for _, text in REVIEWS * 60]))
    train(Experiment.model_validate(experiment), data, tmp_path / "run", tmp_path / "out")
    pretrained = average_weights([tmp_path / "run" / "pretraining" / "steps" / "last.ckpt"], "model.")
    model = build_model(Experiment.model_validate(experiment))
    model.load_state_dict(pretrained)
    assert isinstance(model, TransformerClassifier)
    batch = collate_masked(
        [
            ReviewExample(np.array(load_checkpoint(tmp_path / "out").tokenizer.encode(text).ids), 0)
            for _, text in REVIEWS
        ],
        masked=0.2,
        generator=torch.Generator().manual_seed(1),
    )
    logits = model.encode(batch.ids, batch.lengths) @ model.embedding.tokens.weight.T
    guessed = logits[batch.masked].argmax(dim=-1) == batch.targets[batch.masked]
    assert guessed.float().mean() > 0.5
    assert json.loads((tmp_path / "out" / "training.json").read_text())["steps"] == 120
