"""Chooses the cross-attention heads that align words: those that agree best with a statistical aligner.

Each head attends to a source token either when the decoder is about to write its translation, or when it has just read
it. Heads are compared as hard alignments, in which each target word has at most one source word: the one with most
attention, where </s> stands for none.

Legend: T target tokens, S source tokens, V target words, W source words, H heads, Ld decoder layers.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from manifest.schema import AlignmentChoice
from model.alignment.word_aligner import Links, statistical_links
from model.batching import batches_by_length, pad
from model.checkpoint import Checkpoint, CheckpointError
from model.data import Row, load_rows
from model.networks.matrices import translation_matrices
from model.networks.transformer import Transformer
from model.recipe import DataConfig, DataSource
from model.tokenizer import BOS_ID
from model.words import word_columns, word_spans

Array = NDArray[np.float32]

BATCH_TOKENS = 2048
CORPUS_ROWS = 60_000
"""Pairs of each training corpus that the aligner reads; with a dozen corpora it takes two cores 15 minutes."""
CAPTIONS = "translation/test/multi30k-val"
"""Default pairs for comparing heads: captions that models are neither trained nor scored on."""


@dataclass(frozen=True)
class Reference:
    """Links that the statistical aligner finds in one pair (Och and Ney 2003)."""

    sure: Links
    """Links found in both directions."""
    possible: Links
    """Links found in either direction."""


@dataclass(frozen=True)
class Agreement:
    """Agreement of a choice of heads with the references, in percent."""

    alignment: AlignmentChoice
    precision: float
    """Share of its links that are possible links."""
    recall: float
    """Share of the sure links that it has."""
    aer: float
    """AlignmentChoice error rate: 0 if it has all sure links and only possible ones."""

    def report(self) -> dict[str, Any]:
        """Return the heads and their rounded scores."""
        scores = {"precision": self.precision, "recall": self.recall, "aer": self.aer}
        return self.alignment.model_dump(mode="json") | {name: round(score, 2) for name, score in scores.items()}


@dataclass(frozen=True)
class Comparison:
    """All choices of heads that were tried, the best first."""

    candidates: list[Agreement]
    compared_on: str
    n_pairs: int
    """Number of pairs that the choices were compared on."""
    n_aligned: int
    """Number of pairs that the statistical aligner read."""

    def report(self) -> dict[str, Any]:
        """Return the content of alignment.json: the choice and its measurements."""
        return {
            "choice": self.candidates[0].alignment.model_dump(mode="json"),
            "measured": {
                "aligner": f"eflomal; its statistics are of {self.n_aligned} pairs",
                "compared_on": self.compared_on,
                "pairs": self.n_pairs,
                "candidates": [candidate.report() for candidate in self.candidates],
            },
        }


def compare_heads(
    checkpoint: Checkpoint, data: DataConfig, data_dir: Path | None, n_pairs: int, corpus_rows: int = CORPUS_ROWS
) -> Comparison:
    """Compare the heads of a checkpoint on the first `n_pairs` pairs.

    Args:
        data: corpora of the recipe that the model was trained with.
        corpus_rows: the most rows of each training corpus that the aligner reads.

    Raises:
        CheckpointError: the checkpoint is not a translator.
        DataError: a corpus is missing, empty or malformed.
        AlignmentError: the statistical aligner is not installed.
    """
    model = checkpoint.model
    if not isinstance(model, Transformer):
        raise CheckpointError(
            f"{checkpoint.config.name} is no Transformer for translation: its task is {checkpoint.config.model.task}"
        )
    source = compared_source(data)
    limit = model.config.max_positions
    fitting = (
        row
        for row in load_rows(source, data_dir)
        if all(len(checkpoint.tokenizer.encode(text)) <= limit for text in row)
    )
    compared = list(itertools.islice(fitting, n_pairs))
    rows = compared + training_rows(data, data_dir, corpus_rows)
    references = [Reference(f & r, f | r) for f, r in statistical_links(rows, len(compared))]
    attention = list(word_attention(model, checkpoint.tokenizer, compared))
    return Comparison(compare(attention, references), source.file, len(compared), len(rows))


def compared_source(data: DataConfig) -> DataSource:
    """Return the configured source, or captions in the language pair and order of the first training file."""
    if data.aligned is not None:
        return data.aligned
    first = data.train[0]
    suffix = Path(first.file).name.split(".", 1)[1]
    return DataSource(file=f"{CAPTIONS}.{suffix}", swap=first.swap, licence=first.licence)


def training_rows(data: DataConfig, data_dir: Path | None, corpus_rows: int) -> list[Row]:
    """Return the first rows of each training corpus that is not rewritten."""
    sources = {source.file: source for source in data.train if not source.rewrite}
    return [row for source in sources.values() for row in load_rows(source, data_dir)[:corpus_rows]]


@torch.inference_mode()
def word_attention(model: Transformer, tokenizer: Tokenizer, rows: Sequence[Row]) -> Iterator[Array]:
    """Yield the cross-attention between words of each pair in order: (2, Ld, H, V, W + 1), by next_row."""
    sources = [tokenizer.encode(row.left) for row in rows]
    targets = [tokenizer.encode(row.right) for row in rows]  # each ends in </s>, like the sources
    of_rows: dict[int, Array] = {}
    lengths_of_pairs = np.array([max(map(len, pair)) for pair in zip(sources, targets, strict=True)])
    for batch in batches_by_length(lengths_of_pairs, BATCH_TOKENS):
        source, lengths = pad([sources[i].ids for i in batch])
        target, _ = pad([[BOS_ID, *targets[i].ids[:-1]] for i in batch])
        cross = translation_matrices(model, source, lengths, target).cross.numpy()
        for i, matrices in zip(batch.tolist(), cross, strict=True):
            left, right = rows[i]
            of_source = word_columns(left, word_spans(left), sources[i].offsets)
            of_target = word_columns(right, word_spans(right), targets[i].offsets)
            of_rows[i] = among_words(matrices[..., : len(of_target), : len(of_source)], of_source, of_target[:-1])
    yield from (of_rows[i] for i in range(len(rows)))


def among_words(cross: Array, of_source: Array, of_target: Array) -> Array:
    """Convert cross-attention of tokens (Ld, H, T + 1, S) to that of words (2, Ld, H, V, W + 1).

    A source word gets the sum over its tokens, a target word the mean of its tokens. The first half aligns a target
    token by the row that produces it, the second by the next row, which reads it.

    Args:
        of_source, of_target: (S, W + 1) and (T, V + 1), the word of each token; the last column is for no word.
    """
    means = (of_target / np.maximum(of_target.sum(axis=0), 1))[:, :-1].T  # (V, T)
    by_source: Array = cross @ of_source  # (Ld, H, T + 1, W + 1)
    return np.stack([means @ by_source[..., :-1, :], means @ by_source[..., 1:, :]])


def compare(attention: Sequence[Array], references: Sequence[Reference]) -> list[Agreement]:
    """Measure single heads, all heads of a layer and the best few of them; return them with the best first.

    Args:
        attention: cross-attention of each pair, (2, Ld, H, V, W + 1), by next_row.
    """
    n_layers = attention[0].shape[1]
    candidates: list[Agreement] = []
    for layer, next_row in itertools.product(range(n_layers), (False, True)):
        of_layer = [pair[int(next_row), layer] for pair in attention]
        candidates += compare_layer(layer, next_row, of_layer, references)
    return sorted(candidates, key=error_rate)


def compare_layer(
    layer: int, next_row: bool, attention: Sequence[Array], references: Sequence[Reference]
) -> list[Agreement]:
    """Measure one layer with attention (H, V, W + 1) of each pair; heads join the best one while that helps."""
    every = range(len(attention[0]))

    def measure(heads: Iterable[int]) -> Agreement:
        return agreement(AlignmentChoice(layer=layer, heads=tuple(heads), next_row=next_row), attention, references)

    candidates = [measure([head]) for head in every] + [measure(every)]
    best = min(candidates[:-1], key=error_rate)
    while len(chosen := best.alignment.heads) + 1 < len(every):
        better = min((measure(sorted({*chosen, head})) for head in set(every) - set(chosen)), key=error_rate)
        if better.aer >= best.aer:
            break
        candidates.append(better)
        best = better
    return candidates


def error_rate(candidate: Agreement) -> float:
    """Sort key: the alignment error rate."""
    return candidate.aer


def agreement(alignment: AlignmentChoice, of_layer: Sequence[Array], references: Sequence[Reference]) -> Agreement:
    """Measure the mean over some heads of a layer, whose attention is (H, V, W + 1) for each pair."""
    n_links = n_sure = n_sure_found = n_possible_found = 0
    for attention, reference in zip(of_layer, references, strict=True):
        links = hard_links(attention[list(alignment.heads)].mean(axis=0))
        n_links += len(links)
        n_sure += len(reference.sure)
        n_sure_found += len(links & reference.sure)
        n_possible_found += len(links & reference.possible)
    return Agreement(
        alignment,
        precision=percentage(n_possible_found, n_links),
        recall=percentage(n_sure_found, n_sure),
        aer=100 - percentage(n_sure_found + n_possible_found, n_links + n_sure),
    )


def hard_links(attention: Array) -> Links:
    """Link each target word to its best source word; the last column of attention (V, W + 1) is for no word."""
    best = attention.argmax(axis=1)
    return {(int(source), target) for target, source in enumerate(best) if source < attention.shape[1] - 1}


def percentage(part: int, whole: int) -> float:
    """Return the part in percent, or 0 of an empty whole."""
    return 100 * part / max(whole, 1)
