"""What a model reads to be calibrated, and what it answers: the yardstick for how near a rounded one is."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from export.calibration import (
    Activations,
    CalibrationSources,
    Inputs,
    ServedModel,
    calibration_inputs,
    record_activations,
)
from manifest.schema import Nearness
from model.networks.transformer import Transformer, TransformerClassifier
from model.pooling import normalized, pooled
from model.progress import step

Answers = list[NDArray[Any]]
"""One answer for each sequence: a translator's most probable token after each token of a target (T), a classifier's
probabilities (C), or an embedding of length 1 (D)."""


class Reading:
    """What a model in float32 reads and answers, computed when it is first needed.

    Args:
        sources: token ids that it reads; random ones if there are none.
    """

    def __init__(self, model: ServedModel, sources: Sequence[CalibrationSources] = ()) -> None:
        self.model = model
        self.sources = sources
        self.half: Nearness | None = None
        """How near the model is in float16, once that was rehearsed."""

    @cached_property
    def inputs(self) -> list[Inputs]:
        """The sequences; those of a translator with its own translations."""
        step("reading texts")
        return calibration_inputs(self.model, self.sources)

    @cached_property
    def activations(self) -> Activations:
        """What each layer reads."""
        return record_activations(self.model, self.inputs)

    @cached_property
    def answers(self) -> Answers:
        """What the model answers."""
        return answers_of(self.model, self.inputs)

    def nearness(self, model: ServedModel) -> Nearness:
        """Return how near another model is to this one."""
        return compare(self.model, answers_of(model, self.inputs), self.answers)


@torch.inference_mode()
def answers_of(model: ServedModel, inputs: Sequence[Inputs]) -> Answers:
    """Return what PyTorch answers to each sequence alone."""
    return [answer_of(model, *each).numpy() for each in inputs]


def answer_of(model: ServedModel, ids: Tensor, lengths: Tensor, *target: Tensor) -> Tensor:
    """Return the answer to one sequence, ids (1, S) of lengths (1), for a translator teacher-forced with a target."""
    if isinstance(model, Transformer):
        return model.logits(model(ids, lengths, *target))[0].argmax(dim=-1)
    if isinstance(model, TransformerClassifier):
        return probabilities(model, model(ids, lengths)[0][0])
    return embedding_of(model, model.encode(ids, lengths)[0])


def probabilities(model: TransformerClassifier, logits: Tensor) -> Tensor:
    """Return the probabilities (C) of logits (C); logits, if the model's answers are no probabilities."""
    match model.config.label_activation:
        case "sigmoid":
            return logits.sigmoid()
        case "softmax":
            return logits.softmax(dim=-1)
    return logits


def embedding_of(model: Any, states: Tensor) -> Tensor:
    """Return the embedding (D), of length 1, of a text's states (S, E)."""
    embedding: Tensor = normalized(model.project(pooled(states, len(states), model.config)))
    return embedding


def compare(model: ServedModel, answers: Answers, expected: Answers) -> Nearness:
    """Return how near answers are to those that are expected of a model."""
    pairs = list(zip(answers, expected, strict=True))
    if isinstance(model, Transformer):
        same = np.concatenate([a == e for a, e in pairs])
        return Nearness(same=float(same.mean()), of=len(same))
    if isinstance(model, TransformerClassifier):
        threshold = 0.5 if model.config.label_activation == "sigmoid" else 0.0
        one_of_many = model.config.label_activation == "softmax"
        label = np.argmax if one_of_many else lambda answers: tuple(answers > threshold)
        return Nearness(
            same=float(np.mean([label(a) == label(e) for a, e in pairs])),
            difference=float(np.mean([np.abs(a - e).mean() for a, e in pairs])),
            of=len(pairs),
        )
    return Nearness(cosine=float(np.mean([a @ e for a, e in pairs])), of=len(pairs))
