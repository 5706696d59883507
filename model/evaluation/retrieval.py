"""Vectors that must find one another: how often the nearest neighbour of a text is of its own group.

Legend: N texts, E width, V vocabulary.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.tokenizer import EOS_ID

Vectors = NDArray[np.float32]
"""(N, E), or (N, V) for a bag of word pieces."""


@dataclass(frozen=True)
class Retrieval:
    """How well texts find others of their own group; not a number where no text asks."""

    accuracy: float
    """Share of texts whose nearest neighbour is one of them, in percent."""
    mrr: float
    """Mean of 1 / rank of the first of them."""

    @classmethod
    def of(cls, ranks: NDArray[np.int64]) -> "Retrieval":
        """Of the ranks (N) of the first ones."""
        if len(ranks) == 0:
            return cls(float("nan"), float("nan"))
        return cls(100 * float((ranks == 1).mean()), float((1 / ranks).mean()))


def first_ranks(vectors: Vectors, group: NDArray[np.int64]) -> NDArray[np.int64]:
    """(N), from 1 on: where in the order of falling cosine the first of a text's own group stands, itself left out.

    Ties count against the method: those that are as near as the first of the group come before it.
    """
    ranks = []
    for rows, similarities in by_rows(vectors):
        own = group[rows, None] == group
        similarities[np.arange(len(rows)), rows] = -np.inf
        best = np.where(own, similarities, -np.inf).max(axis=1, keepdims=True)
        ranks.append(1 + ((similarities >= best) & ~own).sum(axis=1))
    return np.concatenate(ranks)


def nearest(vectors: Vectors, i: int) -> int:
    """The nearest text to text i."""
    unit = unit_length(vectors)
    similarities = unit @ unit[i]
    similarities[i] = -np.inf
    return int(similarities.argmax())


def tf_idf(sequences: Sequence[list[int]], vocab_size: int) -> Vectors:
    """(N, V): how often a text has each token, weighed down by how many texts have it; </s> does not count."""
    counts = np.zeros((len(sequences), vocab_size), np.float32)
    for row, ids in zip(counts, sequences, strict=True):
        np.add.at(row, [i for i in ids if i != EOS_ID], 1)
    n_with = (counts > 0).sum(axis=0)
    weighed: Vectors = counts * np.log((1 + len(sequences)) / (1 + n_with)).astype(np.float32)
    return weighed


def centred(vectors: Vectors) -> Vectors:
    """Less their mean over all texts, which says nothing of any one."""
    shifted: Vectors = vectors - vectors.mean(axis=0)
    return shifted


def whitened(vectors: Vectors) -> Vectors:
    """Centred, and with every direction scaled to the same variance (Su et al. 2021)."""
    shifted = centred(vectors)
    variances, directions = np.linalg.eigh(np.cov(shifted.T).astype(np.float64))
    scaled: Vectors = (shifted @ directions / np.sqrt(np.maximum(variances, 1e-9))).astype(np.float32)
    return scaled


def by_rows(vectors: Vectors, size: int = 512) -> Iterator[tuple[NDArray[np.int64], Vectors]]:
    """Cosines of some rows with all, a few rows at a time."""
    unit = unit_length(vectors)
    for start in range(0, len(unit), size):
        rows = np.arange(start, min(start + size, len(unit)))
        yield rows, unit[rows] @ unit.T


def unit_length(vectors: Vectors) -> Vectors:
    """Each row at length 1, or 0 where it is 0."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Vectors = vectors / np.maximum(lengths, 1e-12)
    return scaled
