"""The attention matrices that a request selects, and how they are answered."""

from dataclasses import dataclass
from itertools import product
from typing import Literal

from manifest.schema import AttentionKind, Manifest
from service.base.contract import Matrices
from service.base.errors import InvalidFields, LimitExceeded
from service.engine.scheduler import Sequence
from service.passes.attention import AttentionPass, ChosenMatrices
from service.schemas.answers import AttentionMatrix, ShownToken, SourceAttention, encoded
from service.schemas.requests import AttentionSelection
from service.text.tokens import Token

ROWS: dict[AttentionKind, Literal["source", "target"]] = {"encoder": "source", "decoder": "target", "cross": "target"}
COLUMNS: dict[AttentionKind, Literal["source", "prefix"]]
COLUMNS = {"encoder": "source", "decoder": "prefix", "cross": "source"}


@dataclass(frozen=True)
class Selection:
    """The matrices that a request selects, checked against its model. The passes keep the `chosen` ones."""

    chosen: ChosenMatrices
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
        where = f"attention of {manifest.name}"
        layers = {kind: _chosen("layers", asked.layers, depth[kind], f"{kind} {where}") for kind in kinds}
        heads = asked.heads
        if heads != "mean":
            heads = _chosen("heads", heads, manifest.dimensions.n_heads, manifest.name)
        return cls(ChosenMatrices(tuple(dict.fromkeys(kinds)), layers, heads), asked.encoding)

    def n_weights(self, n_source: int, n_target: int) -> int:
        """Return how many numbers the matrices of one sentence have."""
        sizes = {"source": n_source, "target": n_target, "prefix": n_target}
        chosen = self.chosen
        n_heads = 1 if chosen.heads == "mean" else len(chosen.heads)
        sizes_of_kinds = ((len(chosen.layers[kind]), sizes[ROWS[kind]], sizes[COLUMNS[kind]]) for kind in chosen.kinds)
        return sum(n_heads * n_layers * n_rows * n_columns for n_layers, n_rows, n_columns in sizes_of_kinds)

    def matrices_of_sentence(self, matrices: Matrices, first_source: int, first_target: int) -> list[AttentionMatrix]:
        """Return the selected matrices of a sentence, whose first tokens have the numbers `first_source` and
        `first_target` in the token lists of the text."""
        first = {"source": first_source, "target": first_target, "prefix": first_target}
        selected = []
        heads: list[int | Literal["mean"]] = ["mean"] if self.chosen.heads == "mean" else [*self.chosen.heads]
        for kind in self.chosen.kinds:
            for (i, layer), (j, head) in product(enumerate(self.chosen.layers[kind]), enumerate(heads)):
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
        way_out = "select fewer `kinds`, `layers` or `heads`, or send shorter texts"
        raise LimitExceeded(f"`attention` has {n_weights:,} numbers; the limit is {limit:,}: {way_out}")


def prefix_of(target: list[Token]) -> list[Token]:
    """Return, for each target token of a sentence, the token that the decoder had read last."""
    return [Token("<s>", target[0].start, target[0].start), *target[:-1]]
