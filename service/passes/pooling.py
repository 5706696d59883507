"""Pools the logits of a classifier over a window's tokens, and the states of an encoder over a window's tokens.

No graph's own pooling over tokens is used: the last bits of its sums depend on padding, and so on other requests.

States are pooled in float64; source: Reimers and Gurevych 2019, "Sentence-BERT".

Legend: C labels, S tokens of a window, E width of the encoder, D width of an embedding.
"""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from manifest.schema import Manifest, TokenPooling
from service.base.contract import Classify, Embed, Project
from service.engine.scheduler import Sequence

Pooling = Literal["mean", "max", "first", "mean_states"]
Vectors = NDArray[np.float64]


@dataclass
class WindowLogits:
    """The logits (C) of one window, one for each label."""

    logits: NDArray[np.float64] | None = None


def refuse_not_finite(numbers: NDArray[np.float32]) -> None:
    """Raise FloatingPointError if the model's output has infinity or NaN."""
    if not np.isfinite(numbers).all():
        raise FloatingPointError("the model's output is not finite")


def read_logits(classify: Classify, pooling: Pooling, sequences: list[Sequence[WindowLogits]]) -> None:
    """Run a batch of a classification engine."""
    logits_of_windows = classify([sequence.source_ids for sequence in sequences])
    for sequence, token_logits in zip(sequences, logits_of_windows, strict=True):
        refuse_not_finite(token_logits)
        exact = token_logits.astype(np.float64)
        sequence.output.logits = exact.max(axis=0) if pooling == "max" else exact.mean(axis=0)


@dataclass
class WindowEmbedding:
    """One window: its request, and its result, which is one vector (D), or the state of each token (S, E).

    Attributes:
        pooling: the kinds of pooling whose vectors are joined; empty: the state of each token.
        n_left_out: the number of tokens at the beginning that are not pooled.
        projected: whether the pooled vector goes through the dense layers.
    """

    pooling: tuple[TokenPooling, ...]
    n_left_out: int = 0
    projected: bool = False
    vectors: Vectors = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def by_default(cls, manifest: Manifest) -> "WindowEmbedding":
        """Return the model's own pooling, or the mean if it has none."""
        settings = manifest.embedding
        return cls(settings.pooling, projected=manifest.has_dense) if settings is not None else cls(("mean",))


def read_states(embed: Embed, project: Project | None, sequences: list[Sequence[WindowEmbedding]]) -> None:
    """Run a batch of an embedding engine. `project` has the dense layers, if the model has any."""
    states_of_windows = embed([sequence.source_ids for sequence in sequences])
    for sequence, states in zip(sequences, states_of_windows, strict=True):
        refuse_not_finite(states)
        window, vectors = sequence.output, states.astype(np.float64)  # a copy: a view would keep the batch in memory
        window.vectors = pool_states(vectors, window.pooling, window.n_left_out) if window.pooling else vectors
    through_layers = [sequence.output for sequence in sequences if sequence.output.projected]
    if through_layers:
        assert project is not None, "a manifest with dense layers has their graph"
        projected = project(np.stack([window.vectors for window in through_layers]).astype(np.float32))
        refuse_not_finite(projected)
        for window, row in zip(through_layers, projected, strict=True):
            window.vectors = row.astype(np.float64)


def pool_states(states: Vectors, pooling: tuple[TokenPooling, ...], n_left_out: int) -> Vectors:
    """Pool states (S, E) into one vector (D), which joins all kinds of pooling in their order."""
    rows = states[n_left_out:]
    places = np.arange(n_left_out + 1, len(states) + 1)[:, np.newaxis]

    def one(kind: TokenPooling) -> Vectors:
        match kind:
            case "first":
                return np.asarray(rows[0])
            case "last":
                return np.asarray(rows[-1])
            case "max":
                return np.asarray(rows.max(axis=0))
            case "mean":
                return np.asarray(rows.mean(axis=0))
            case "mean_sqrt_len":
                return np.asarray(rows.sum(axis=0) / np.sqrt(len(rows)))
            case "weighted_mean":
                return np.asarray((rows * places).sum(axis=0) / places.sum())

    return np.concatenate([one(kind) for kind in pooling])
