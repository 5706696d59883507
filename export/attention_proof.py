"""Proof of attention.onnx: its matrices are those that PyTorch computes for each sequence alone.

Legend: B batch, S source, T target, H heads, L layers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnxruntime as ort

from export.examination import Array, Examination
from export.padding import MIN_TOKENS, pad

ROW_TOLERANCE = 1e-5
"""Largest difference between the sum of a row and 1."""


@dataclass(frozen=True)
class AttentionRun:
    """A session of attention.onnx with the sequences that it reads: sources, and targets if it is a translator's."""

    session: ort.InferenceSession
    sources: Sequence[list[int]]
    targets: Sequence[list[int]]
    padding: int

    @property
    def names(self) -> list[str]:
        """Names of the kinds of matrices."""
        if not self.targets:
            return ["attention"]
        return [f"{output.name} attention" for output in self.session.get_outputs()]

    def matrices(self, rows: Sequence[int]) -> dict[str, Array]:
        """Return the matrices of a padded batch by name, each (B, L, H, T, S)."""
        sources = [self.sources[row] for row in rows]
        if not self.targets:
            return {"attention": run_classifier(self.session, sources, self.padding)}
        by_kind = run_translation(self.session, sources, [self.targets[row] for row in rows], self.padding)
        return {f"{kind} attention": matrices for kind, matrices in by_kind.items()}


def examine_matrices(
    examination: Examination, run: AttentionRun, expected: Mapping[str, Sequence[Array]], alone: Sequence[int]
) -> None:
    """Check every matrix of all sequences together.

    Args:
        expected: PyTorch's matrices (L, H, T, S) of each sequence, by name.
        alone: rows of sequences that are also run alone.
    """
    together = run.matrices(range(len(run.sources)))
    by_themselves = [run.matrices([row]) for row in alone]
    for name, matrices in expected.items():
        places = [matrix.shape[-2:] for matrix in matrices]
        without_padding = [whole[..., :T, :S] for whole, (T, S) in zip(together[name], places, strict=True)]
        examination.check_close(name, without_padding, matrices)
        sums = np.concatenate([matrix.sum(axis=-1).ravel() for matrix in without_padding])
        examination.check_within(f"{name}: a row's sum is off by", float(np.abs(sums - 1).max()), ROW_TOLERANCE)
        padding = [whole[..., :T, S:] for whole, (T, S) in zip(together[name], places, strict=True)]
        examination.check_zero(f"{name} to padding", padding)
        again = [
            of[name][0, ..., : places[row][0], : places[row][1]] for row, of in zip(alone, by_themselves, strict=True)
        ]
        examination.check_close(f"{name}: together and alone", again, [without_padding[row] for row in alone])
    if "decoder attention" in together:
        future = np.triu(np.ones(together["decoder attention"].shape[-2:], dtype=bool), 1)
        examination.check_zero("decoder attention to the future", [together["decoder attention"][..., future]])


def run_translation(
    session: ort.InferenceSession, sources: Sequence[list[int]], targets: Sequence[list[int]], padding: int
) -> dict[str, Array]:
    """Return the matrices of a padded batch by kind."""
    source_ids, source_lengths = pad(sources, padding, MIN_TOKENS)
    target_ids, _ = pad(targets, padding, MIN_TOKENS)
    feeds = {"input_ids": source_ids, "source_lengths": source_lengths, "target_ids": target_ids}
    kinds = [output.name for output in session.get_outputs()]
    return dict(zip(kinds, session.run(None, feeds), strict=True))


def run_classifier(session: ort.InferenceSession, sequences: Sequence[list[int]], padding: int) -> Array:
    """Return the matrices (B, L, H, S, S) of a padded batch."""
    ids, lengths = pad(sequences, padding, MIN_TOKENS)
    matrices: Array = session.run(None, {"input_ids": ids, "lengths": lengths})[0]
    return matrices
