"""Batches of similar length under a budget of padded tokens, in an order that depends on the seed alone.

Training batches have a few fixed shapes: lengths are rounded up to a bucket, and a bucket has one number of rows. On a
CPU every new shape costs the compilation of its matrix products; free shapes made training three times slower. The
order is a pure function of seed and epoch, so a killed run resumes at the batch it had reached.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.tokenizer import BOS_ID, EOS_ID, PAD_ID

Indices = NDArray[np.int64]
Ids = NDArray[np.int32]
"""Token ids of one text: an array, because millions of Python integers do not fit in memory."""


@dataclass(frozen=True)
class TranslationExample:
    source: Ids
    """Source ids, which end with </s>."""
    target: Ids
    """Target ids without <s> and </s>."""

    def __len__(self) -> int:
        return max(len(self.source), len(self.target) + 1)


@dataclass(frozen=True)
class ReviewExample:
    ids: Ids
    label: int

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class TextExample:
    ids: Ids
    """A piece of a text, without <s>; the last piece ends with </s>."""

    def __len__(self) -> int:
        return len(self.ids)


Example = TranslationExample | ReviewExample | TextExample


@dataclass(frozen=True)
class TranslationBatch:
    source: Tensor  # (B, S)
    source_lengths: Tensor  # (B)
    target_input: Tensor  # (B, T), begins with <s>
    target_output: Tensor  # (B, T), ends with </s>

    @property
    def padded_tokens(self) -> int:
        """Padded tokens of both sides."""
        return self.source.numel() + self.target_input.numel()

    @property
    def n_predictions(self) -> int:
        """Number of tokens that the loss is the mean of."""
        return int((self.target_output != PAD_ID).sum())


@dataclass(frozen=True)
class ReviewBatch:
    ids: Tensor  # (B, S)
    lengths: Tensor  # (B)
    labels: Tensor  # (B)

    @property
    def padded_tokens(self) -> int:
        return self.ids.numel()

    @property
    def n_predictions(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class TextBatch:
    target_input: Tensor  # (B, T), begins with <s>
    target_output: Tensor  # (B, T), the same one token later

    @property
    def padded_tokens(self) -> int:
        return self.target_input.numel()

    @property
    def n_predictions(self) -> int:
        return int((self.target_output != PAD_ID).sum())


Batch = TranslationBatch | ReviewBatch | TextBatch


@dataclass(frozen=True)
class Pool:
    """Examples of one corpus, and how many an epoch draws: None takes all, more than there are repeats some."""

    examples: Sequence[TranslationExample] | Sequence[ReviewExample] | Sequence[TextExample]
    sample: int | None = None
    shortest_crop: int | None = None
    """Shortest random piece to draw of each example; None takes whole examples."""
    n_around: tuple[int, int] = (0, 0)
    """Numbers of special tokens before and after each text; a piece has them too."""


@dataclass(frozen=True)
class Draw:
    """One example of one pool, or the piece [start, stop) of its text."""

    pool: int
    index: int
    start: int
    stop: int


def training_batches(pools: Sequence[Pool], batch_tokens: int, seed: int) -> Iterator[list[Draw]]:
    """Yield batches for ever; each epoch draws anew and shuffles examples and batches.

    The rest of a bucket after its full batches is left out of this epoch; a bucket smaller than a batch is one batch.
    """
    lengths = [np.array([len(example) - sum(pool.n_around) for example in pool.examples]) for pool in pools]
    for epoch in itertools.count():
        random = np.random.default_rng((seed, epoch))
        drawn = np.concatenate([_draw(p, pool, lengths[p], random) for p, pool in enumerate(pools)])
        buckets = np.array([bucket(stop - start + sum(pools[p].n_around)) for p, _, start, stop in drawn.tolist()])
        batches = []
        for size in np.unique(buckets):
            n_rows = max(1, batch_tokens // int(size))
            members = random.permutation(drawn[buckets == size])
            n_starts = max(1, len(members) - n_rows + 1)
            batches += [members[start : start + n_rows] for start in range(0, n_starts, n_rows)]
        for batch in random.permutation(len(batches)):
            yield [Draw(*row) for row in batches[batch].tolist()]


def bucket(length: int) -> int:
    """Round `length` up to a multiple of a quarter of the power of two below it (at least 4): 4, .. 32, 40, .."""
    step: int = max(4, 2 ** ((length - 1).bit_length() - 3))
    return -(-length // step) * step


def batches_by_length(lengths: Indices, batch_tokens: int) -> list[Indices]:
    """Group indices so that longest x count stays within `batch_tokens`; a single longer example is its own batch.

    Args:
        lengths: (N) tokens of each example.
    """
    batches: list[Indices] = []
    current: list[int] = []
    for index in np.argsort(lengths, kind="stable"):
        if current and lengths[index] * (len(current) + 1) > batch_tokens:
            batches.append(np.array(current))
            current = []
        current.append(int(index))
    if current:
        batches.append(np.array(current))
    return batches


def _draw(number: int, pool: Pool, lengths: Indices, random: np.random.Generator) -> Indices:
    """Return (N, 4): the fields of `Draw` for each example that this epoch takes from the pool."""
    n = len(pool.examples)
    repeats, rest = divmod(n if pool.sample is None else pool.sample, n)
    indices = np.tile(np.arange(n), repeats)
    if rest:
        indices = np.concatenate([indices, random.choice(n, rest, replace=False)])
    starts, stops = np.zeros_like(lengths[indices]), lengths[indices]
    if pool.shortest_crop is not None:
        starts, stops = random_pieces(stops, pool.shortest_crop, random)
    return np.stack([np.full_like(indices, number), indices, starts, stops], axis=1)


def random_pieces(lengths: Indices, shortest: int, random: np.random.Generator) -> tuple[Indices, Indices]:
    """Return starts and stops (N) of a random piece of each text, given their lengths (N).

    The logarithm of its length is uniform, so that sentences are drawn as often as paragraphs.
    """
    least = np.minimum(shortest, lengths)
    pieces = np.exp(random.uniform(np.log(least), np.log(lengths))).astype(np.int64)
    starts = random.integers(0, lengths - pieces + 1)
    return starts, starts + pieces


def piece(ids: Ids, start: int, stop: int, n_around: tuple[int, int]) -> Ids:
    """Return the piece [start, stop) of a text between the special tokens of the whole text."""
    before, after = n_around
    return np.concatenate([ids[:before], ids[before + start : before + stop], ids[len(ids) - after :]])


def collate_translations(examples: Sequence[TranslationExample]) -> TranslationBatch:
    """Pad pairs into one batch, both sides to the bucket of the longest."""
    size = bucket(max(len(example) for example in examples))
    source, source_lengths = pad([e.source for e in examples], size)
    target_input, _ = pad([[BOS_ID, *e.target] for e in examples], size)
    target_output, _ = pad([[*e.target, EOS_ID] for e in examples], size)
    return TranslationBatch(source, source_lengths, target_input, target_output)


def collate_reviews(examples: Sequence[ReviewExample]) -> ReviewBatch:
    """Pad reviews into one batch."""
    ids, lengths = pad([e.ids for e in examples], bucket(max(len(example) for example in examples)))
    return ReviewBatch(ids, lengths, torch.tensor([e.label for e in examples]))


def collate_texts(examples: Sequence[TextExample]) -> TextBatch:
    """Pad pieces of texts into one batch."""
    size = bucket(max(len(example) for example in examples))
    target_input, _ = pad([[BOS_ID, *e.ids[:-1]] for e in examples], size)
    target_output, _ = pad([e.ids for e in examples], size)
    return TextBatch(target_input, target_output)


def pad(sequences: Sequence[Sequence[int] | Ids], size: int | None = None) -> tuple[Tensor, Tensor]:
    """Pad sequences to ids (B, size), by default as wide as the longest; return them with lengths (B)."""
    lengths = torch.tensor([len(s) for s in sequences])
    ids = torch.full((len(sequences), size or int(lengths.max())), PAD_ID)
    for row, sequence in zip(ids, sequences, strict=True):
        row[: len(sequence)] = torch.as_tensor(sequence)
    return ids, lengths


class BatchStream(torch.utils.data.IterableDataset[Batch]):
    """Batches `start` to `start + n_batches` of a training run."""

    def __init__(
        self,
        pools: Sequence[Pool],
        collate: Callable[..., Batch],
        batch_tokens: int,
        seed: int,
        start: int,
        n_batches: int,
    ) -> None:
        self.pools, self.collate = pools, collate
        self.batch_tokens, self.seed = batch_tokens, seed
        self.start, self.n_batches = start, n_batches

    def __iter__(self) -> Iterator[Batch]:
        stream = training_batches(self.pools, self.batch_tokens, self.seed)
        for batch in itertools.islice(stream, self.start, self.start + self.n_batches):
            yield self.collate([self._example(draw) for draw in batch])

    def _example(self, draw: Draw) -> Example:
        pool = self.pools[draw.pool]
        example = pool.examples[draw.index]
        if pool.shortest_crop is None or not isinstance(example, ReviewExample):
            return example
        return replace(example, ids=piece(example.ids, draw.start, draw.stop, pool.n_around))
