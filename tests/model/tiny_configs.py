"""Tiny configurations, all dimensions different, so that a transposed axis cannot hide."""

from typing import Any

from model.recipe import Experiment

Section = dict[str, Any]

LAYERS: Section = {"vocab_size": 50, "d_model": 24, "n_heads": 3, "d_ff": 40, "max_positions": 64}
DIRECTION: Section = {"source": "en", "target": "fr"}
TRANSLATOR = LAYERS | DIRECTION | {"task": "translation", "n_encoder_layers": 3, "n_decoder_layers": 2}
RECURRENT = DIRECTION | {
    "task": "recurrent_translation",
    "vocab_size": 50,
    "d_model": 24,
    "n_encoder_layers": 3,
    "n_decoder_layers": 2,
    "max_positions": 64,
}
LANGUAGE_MODEL = LAYERS | {"task": "language_model", "n_decoder_layers": 2}
CLASSIFIER = LAYERS | {"task": "classification", "n_encoder_layers": 2, "labels": ["negative", "neutral", "positive"]}
TRAINING: Section = {
    "batch_tokens": 48,
    "max_steps": 1,
    "checkpoint_every_steps": 1,
    "learning_rate": 0.01,
    "warmup_steps": 1,
    "decay_steps": 1,
    "precision": "32-true",
}


def configured(
    model: Section, name: str = "tiny", data: Section | None = None, training: Section | None = None, **others: Any
) -> Experiment:
    """Return an experiment with a model; by default with a corpus that nobody reads and one training step."""
    return Experiment.model_validate(
        {
            "name": name,
            "description": "Tiny.",
            "max_tokens": 20,
            "model": model,
            "data": {"train": [{"file": "ours.tsv", "licence": "ours"}]} | (data or {}),
            "training": TRAINING | (training or {}),
            **others,
        }
    )
