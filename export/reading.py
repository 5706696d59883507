"""What a model reads to be calibrated, and what it answers: the yardstick for how near a rounded one is."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from export.calibration import (
    Activations,
    CalibrationSources,
    Inputs,
    ServedModel,
    calibration_inputs,
    record_activations,
)
from export.rehearsal import RoundedTable
from manifest.schema import Nearness
from model.networks.transformer import Transformer, TransformerClassifier, TransformerEncoder
from model.pooling import normalized, pooled
from model.progress import step
from model.weights import ROWS_AT_ONCE

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

    def activations(self) -> Activations:
        """Record what each layer reads. They are not kept: those of a large model take 0.8 GB."""
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
    if isinstance(model, Transformer):
        return most_probable(model, [model(*each)[0] for each in inputs])
    return [answer_of(model, *each).numpy() for each in inputs]


def most_probable(model: Transformer, states: Sequence[Tensor]) -> Answers:
    """Return the most probable token (T) after each of the decoder's states (T, E) of a sequence.

    The rows of the output projection take turns: a rehearsal rounds them when they are read.
    """
    projection: nn.Module = model.projection
    read = projection.rows if isinstance(projection, RoundedTable) else model.projection.weight.__getitem__
    best = [torch.full((len(x),), float("-inf")) for x in states]
    tokens = [torch.zeros(len(x), dtype=torch.int64) for x in states]
    for start in range(0, model.config.vocab_size, ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        weight, bias = read(rows), None if model.output_bias is None else model.output_bias[rows]
        for i, x in enumerate(states):
            logits = F.linear(x, weight, bias).masked_fill(~model.is_target_token[rows], float("-inf"))
            highest, places = logits.max(dim=-1)
            tokens[i] = torch.where(highest > best[i], places + start, tokens[i])
            best[i] = torch.maximum(highest, best[i])
    return [x.numpy() for x in tokens]


def answer_of(model: TransformerClassifier | TransformerEncoder, ids: Tensor, lengths: Tensor) -> Tensor:
    """Return the answer to one sequence, ids (1, S) of lengths (1)."""
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
