"""Attention matrices, from one more forward pass over a finished answer.

Decoding keeps no matrices. This pass reads source and target together, with the same weights, and returns all matrices.
It has its own queue, so that decoding never waits for it.
"""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from manifest.schema import AlignmentChoice, AttentionKind, Manifest
from service.base.contract import Attend, AttentionKinds, Matrices
from service.engine.scheduler import Sequence

Weights = NDArray[np.float32]


@dataclass(frozen=True)
class ChosenMatrices:
    """The matrices that a pass keeps."""

    kinds: tuple[AttentionKind, ...]
    layers: dict[AttentionKind, list[int]]
    heads: list[int] | Literal["mean"]

    def select(self, kind: AttentionKind, matrices: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return a copy of the selected layers and heads of (layers, heads, rows, columns)."""
        chosen = matrices[self.layers[kind]]
        return chosen.mean(axis=1, keepdims=True) if self.heads == "mean" else chosen[:, self.heads]


@dataclass
class AttentionPass:
    """One forward pass: its request, and the requested part of its result."""

    read_ids: list[int]
    """The tokens that the decoder reads, beginning with <s>; empty without a decoder."""
    chosen: ChosenMatrices | None = None
    alignment: AlignmentChoice | None = None
    matrices: Matrices = field(default_factory=dict)
    """By kind: (selected layers, selected heads or their mean, rows, columns)."""
    weights: NDArray[np.float32] | None = None
    """(T, S): the attention that gives the alignment, as the manifest chooses."""

    @property
    def kinds(self) -> AttentionKinds:
        selected: AttentionKinds = frozenset(self.chosen.kinds if self.chosen else ())
        return selected | {"cross"} if self.alignment else selected

    def keep(self, matrices: Matrices) -> None:
        """Copy the requested part of a pass's matrices."""
        if self.chosen is not None:
            self.matrices = {kind: self.chosen.select(kind, matrices[kind]) for kind in self.chosen.kinds}
        if self.alignment is not None:
            self.weights = alignment_weights(matrices["cross"], self.alignment)


def read_attention(attend: Attend, sequences: list[Sequence[AttentionPass]]) -> None:
    """Run a batch of an attention engine."""
    sources = [sequence.source_ids for sequence in sequences]
    targets = [sequence.output.read_ids for sequence in sequences]
    kinds: AttentionKinds = frozenset().union(*(sequence.output.kinds for sequence in sequences))
    for sequence, matrices in zip(sequences, attend(sources, targets, kinds), strict=True):
        sequence.output.keep(matrices)


def attention_probe(manifest: Manifest) -> Sequence[AttentionPass]:
    """Return the shortest sequence that the model can read."""
    tokens, chosen = manifest.special_tokens, ChosenMatrices(("encoder",), {"encoder": [0]}, "mean")
    if manifest.task != "translation":
        return Sequence([tokens.unk], AttentionPass([], chosen))
    return Sequence([tokens.eos], AttentionPass([tokens.bos], chosen))


def alignment_weights(cross: Weights, choice: AlignmentChoice) -> Weights:
    """Return the alignment weights (T, S): the mean of the layers and heads that the manifest chooses, of the
    cross-attention (layers, heads, T, S) of a sentence."""
    weights: Weights = cross[choice.layer, list(choice.heads)].mean(axis=0)
    return np.concatenate([weights[1:], weights[-1:]]) if choice.next_row else weights
