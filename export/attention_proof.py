"""Proof of attention.onnx: its matrices are those that PyTorch computes for each sequence alone.

Legend: B batch, S source, T target, H heads, L layers.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import onnxruntime as ort
import torch
from numpy.typing import NDArray

from export.examination import Examination
from export.padding import MIN_TOKENS, pad
from model.networks.matrices import classification_matrices, translation_matrices
from model.networks.transformer import Transformer, TransformerClassifier, TransformerEncoder

Array = NDArray[Any]

Places = tuple[int, int]
"""Numbers of rows and columns of a padded matrix that belong to tokens."""

ROW_TOLERANCE = 1e-5
"""Largest difference between the sum of a row and 1."""
ALONE_TOLERANCE = 1e-6
"""Largest difference between a weight in a batch and the same weight alone."""


def prove_translation_attention(
    examination: Examination,
    session: ort.InferenceSession,
    model: Transformer,
    sources: Sequence[list[int]],
    targets: Sequence[list[int]],
    padding: int,
) -> None:
    """Check every matrix of sources and of `targets`, which the decoder reads, with `padding` after shorter ones."""
    together = run_translation(session, sources, targets, padding)
    alone = [
        run_translation(session, [source], [target], padding) for source, target in zip(sources, targets, strict=True)
    ]
    expected = [
        translation_matrices(model, torch.tensor([source]), torch.tensor([len(source)]), torch.tensor([target]))
        for source, target in zip(sources, targets, strict=True)
    ]
    S, T = [len(source) for source in sources], [len(target) for target in targets]
    places = {"encoder": (S, S), "decoder": (T, T), "cross": (T, S)}
    for kind in together:
        rows, columns = places[kind]
        examine(
            examination,
            f"{kind} attention",
            together[kind],
            list(zip(rows, columns, strict=True)),
            [outputs[kind][0] for outputs in alone],
            [getattr(matrices, kind)[0].numpy() for matrices in expected],
        )
    if "decoder" not in together:
        return
    future = np.triu(np.ones(together["decoder"].shape[-2:], dtype=bool), 1)
    examination.check_zero("decoder attention to the future", [together["decoder"][..., future]])


def prove_classifier_attention(
    examination: Examination,
    session: ort.InferenceSession,
    model: TransformerClassifier | TransformerEncoder,
    sequences: Sequence[list[int]],
    padding: int,
) -> None:
    """Check every matrix of sequences, with `padding` after shorter ones."""
    together = run_classifier(session, sequences, padding)
    alone = [run_classifier(session, [sequence], padding)[0] for sequence in sequences]
    expected = [
        classification_matrices(model, torch.tensor([sequence]), torch.tensor([len(sequence)]))[0].numpy()
        for sequence in sequences
    ]
    examine(examination, "attention", together, [(len(s), len(s)) for s in sequences], alone, expected)


def examine(
    examination: Examination,
    what: str,
    together: Array,
    places: Sequence[Places],
    alone: Iterable[Array],
    expected: Sequence[Array],
) -> None:
    """Check the matrices of one kind.

    Args:
        together: matrices of a padded batch, (B, L, H, rows, columns).
        places: rows and columns of each sequence.
        alone: the same graph's matrices of each sequence alone, (L, H, rows, columns), perhaps padded.
        expected: PyTorch's matrices of each sequence.
    """
    actual = [matrices[..., :rows, :columns] for matrices, (rows, columns) in zip(together, places, strict=True)]
    examination.check_close(what, actual, expected)
    sums = np.concatenate([matrices.sum(axis=-1).ravel() for matrices in actual])
    examination.check_within(f"{what}: a row's sum is off by", float(np.abs(sums - 1).max()), ROW_TOLERANCE)
    padding = [matrices[..., :rows, columns:] for matrices, (rows, columns) in zip(together, places, strict=True)]
    examination.check_zero(f"{what} to padding", padding)
    differences = [
        np.abs(matrices - by_itself[..., :rows, :columns]).max()
        for matrices, by_itself, (rows, columns) in zip(actual, alone, places, strict=True)
    ]
    examination.check_within(f"{what}: together and alone differ by", float(max(differences)), ALONE_TOLERANCE)


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
