"""Attention matrices, from one more forward pass over a finished answer.

Decoding keeps no matrices. This pass reads source and target together, with the same weights, and returns all matrices.
It has its own queue, so that decoding never waits for it.
"""

from dataclasses import dataclass, field
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from manifest.schema import AlignmentChoice, AttentionKind, Manifest
from service.base.contract import Attend, AttentionKinds, Matrices
from service.base.errors import InvalidFields, LimitExceeded
from service.engine.scheduler import Sequence
from service.schemas.answers import AttentionMatrix, ShownToken, SourceAttention, encoded
from service.schemas.requests import AttentionSelection
from service.tasks.alignment import alignment_weights
from service.text.tokens import Token

ROWS: dict[AttentionKind, Literal["source", "target"]] = {"encoder": "source", "decoder": "target", "cross": "target"}
COLUMNS: dict[AttentionKind, Literal["source", "prefix"]] = {
    "encoder": "source",
    "decoder": "prefix",
    "cross": "source",
}


@dataclass
class AttentionPass:
    """One forward pass: its request, and the requested part of its result."""

    read_ids: list[int]
    """The tokens that the decoder reads, beginning with <s>; empty without a decoder."""
    selection: "Selection | None" = None
    alignment: AlignmentChoice | None = None
    matrices: Matrices = field(default_factory=dict)
    """By kind: (selected layers, selected heads or their mean, rows, columns)."""
    weights: NDArray[np.float32] | None = None
    """(T, S): the attention that gives the alignment, as the manifest chooses."""

    @property
    def kinds(self) -> AttentionKinds:
        selected: AttentionKinds = frozenset(self.selection.kinds if self.selection else ())
        return selected | {"cross"} if self.alignment else selected

    def keep(self, found: Matrices) -> None:
        """Copy the requested part of a pass's matrices."""
        if self.selection is not None:
            self.matrices = {kind: self.selection.select(kind, found[kind]) for kind in self.selection.kinds}
        if self.alignment is not None:
            self.weights = alignment_weights(found["cross"], self.alignment)


def read_attention(attend: Attend, sequences: list[Sequence[AttentionPass]]) -> None:
    """Run a batch of an attention engine."""
    sources = [sequence.source_ids for sequence in sequences]
    targets = [sequence.output.read_ids for sequence in sequences]
    kinds: AttentionKinds = frozenset().union(*(sequence.output.kinds for sequence in sequences))
    for sequence, found in zip(sequences, attend(sources, targets, kinds), strict=True):
        sequence.output.keep(found)


def attention_probe(manifest: Manifest) -> Sequence[AttentionPass]:
    """Return the shortest sequence that the model can read."""
    tokens, selection = manifest.special_tokens, Selection(("encoder",), {"encoder": [0]}, "mean", "json")
    if manifest.task != "translation":
        return Sequence([tokens.unk], AttentionPass([], selection))
    return Sequence([tokens.eos], AttentionPass([tokens.bos], selection))


@dataclass(frozen=True)
class Selection:
    """The matrices that a request selects, checked against its model."""

    kinds: tuple[AttentionKind, ...]
    layers: dict[AttentionKind, list[int]]
    heads: list[int] | Literal["mean"]
    encoding: Literal["json", "base64"]

    @classmethod
    def of(cls, asked: AttentionSelection, manifest: Manifest) -> "Selection":
        """Check a selection. Raises InvalidFields: the model has no such kind, layer or head."""
        depth = manifest.attention_layers
        kinds = asked.kinds or sorted(depth)
        for kind in kinds:
            if kind not in depth:
                allowed = " or ".join(depth)
                raise InvalidFields([(("attention", "kinds"), f"must be {allowed} for {manifest.name}, not {kind}")])
        layers = {
            kind: _chosen("layers", asked.layers, depth[kind], f"{kind} attention of {manifest.name}") for kind in kinds
        }
        heads = asked.heads
        if heads != "mean":
            heads = _chosen("heads", heads, manifest.dimensions.n_heads, manifest.name)
        return cls(tuple(dict.fromkeys(kinds)), layers, heads, asked.encoding)

    def n_weights(self, n_source: int, n_target: int) -> int:
        """Return how many numbers the matrices of one sentence have."""
        sizes = {"source": n_source, "target": n_target, "prefix": n_target}
        n_heads = 1 if self.heads == "mean" else len(self.heads)
        return sum(n_heads * len(self.layers[kind]) * sizes[ROWS[kind]] * sizes[COLUMNS[kind]] for kind in self.kinds)

    def select(self, kind: AttentionKind, found: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return a copy of the selected layers and heads of (layers, heads, rows, columns)."""
        chosen = found[self.layers[kind]]
        return chosen.mean(axis=1, keepdims=True) if self.heads == "mean" else chosen[:, self.heads]

    def matrices_of_sentence(self, matrices: Matrices, first_source: int, first_target: int) -> list[AttentionMatrix]:
        """Return the selected matrices of one sentence.

        Args:
            first_source, first_target: numbers of its first tokens in the token lists of the text.
        """
        first = {"source": first_source, "target": first_target, "prefix": first_target}
        selected = []
        heads: list[int | Literal["mean"]] = ["mean"] if self.heads == "mean" else [*self.heads]
        for kind in self.kinds:
            for (i, layer), (j, head) in product(enumerate(self.layers[kind]), enumerate(heads)):
                weights = matrices[kind][i, j]
                selected.append(
                    AttentionMatrix.model_construct(  # our own numbers, thousands of them, need no validation
                        kind=kind,
                        layer=layer,
                        head=head,
                        rows=ROWS[kind],
                        columns=COLUMNS[kind],
                        first_row=first[ROWS[kind]],
                        first_column=first[COLUMNS[kind]],
                        shape=weights.shape,
                        weights=encoded(weights, self.encoding),
                    )
                )
        return selected


def join_windows(
    tokens: list[ShownToken], windows: list[Sequence[AttentionPass]], selection: Selection
) -> SourceAttention:
    """Return the attention in all windows of a text, whose tokens together are `tokens`."""
    matrices, first = [], 0
    for window in windows:
        matrices += selection.matrices_of_sentence(window.output.matrices, first, 0)
        first += len(window.source_ids)
    return SourceAttention.model_construct(source=tokens, matrices=matrices)


def _chosen(field: str, asked: Literal["all", "last"] | list[int], count: int, where: str) -> list[int]:
    if asked == "all":
        return list(range(count))
    if asked == "last":
        return [count - 1]
    for number in asked:
        if number >= count:
            raise InvalidFields([(("attention", field), f"must be less than {count} for {where}, not {number}")])
    return list(dict.fromkeys(asked))


def refuse_too_many_weights(limit: int, n_weights: int) -> None:
    """Raise LimitExceeded if the matrices have more numbers than one answer may have."""
    if n_weights > limit:
        raise LimitExceeded(
            f"`attention` has {n_weights:,} numbers; the limit is {limit:,}: select fewer `kinds`, `layers` or "
            "`heads`, or send shorter texts"
        )


def prefix_of(target: list[Token]) -> list[Token]:
    """Return, for each target token of a sentence, the token that the decoder had read last."""
    return [Token("<s>", target[0].start, target[0].start), *target[:-1]]
