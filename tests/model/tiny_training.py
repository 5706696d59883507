"""Shared by tests of training: a few sentences, and a run that is killed."""

from pathlib import Path

import pytest
import torch

from model.batching import Batch
from model.recipe import Experiment
from model.training.optimization import TrainingModule
from model.training.train import train
from tests.model.tiny_configs import CLASSIFIER, configured

PAIRS = [
    ("a dog runs", "un chien court"),
    ("a cat sleeps", "un chat dort"),
    ("a dog sleeps", "un chien dort"),
    ("a cat runs", "un chat court"),
]

REVIEWS = [("neg", "a bad and boring film"), ("pos", "a good and funny film")]
SCHEDULE = {"max_steps": 60, "checkpoint_every_steps": 20, "warmup_steps": 5, "decay_steps": 20}

WARNINGS = [
    pytest.mark.filterwarnings("ignore::UserWarning:lightning"),
    pytest.mark.filterwarnings("ignore::FutureWarning:lightning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
"""Warnings of Lightning, about few workers and a progress bar of runs that take seconds."""


def classifier_experiment() -> Experiment:
    model = {"vocab_size": 300, "n_encoder_layers": 1, "labels": ["negative", "positive"], "pooling": "mean"}
    labels = {"neg": "negative", "pos": "positive"}
    data = {"train": [{"file": "reviews.tsv", "licence": "ours", "labels": labels}]}
    return configured(CLASSIFIER | model, data=data, training=SCHEDULE)


def lines(rows: list[tuple[str, str]]) -> str:
    """Write rows as lines of a corpus."""
    return "".join(f"{left}\t{right}\n" for left, right in rows)


def train_until_killed(step: int, experiment: Experiment, data_dir: Path, run_dir: Path, checkpoint_dir: Path) -> None:
    """Train until a run dies before a step."""
    training_step = TrainingModule.training_step

    def killed(module: TrainingModule, batch: Batch, batch_idx: int) -> torch.Tensor:
        if module.global_step == step:
            raise RuntimeError("killed")
        return training_step(module, batch, batch_idx)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TrainingModule, "training_step", killed)
        with pytest.raises(RuntimeError, match="killed"):
            train(experiment, data_dir, run_dir, checkpoint_dir)
