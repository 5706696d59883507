"""What the pieces of a new language begin with: the mean of the embeddings of their translations.

A checkpoint from French to English knows no Japanese. But one corpus tells which English pieces stand beside a Japanese
one, another which French pieces stand beside these, and the encoder knows what to make of those. Tran 2020 weights
embeddings by translation probabilities so, of one language; here English is the pivot between two. The probabilities
are of IBM model 1 (Brown et al. 1993).

Legend: V pieces of the new vocabulary, K of the known one, L links, D width.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn.functional import normalize

from model.batching import Ids
from model.checkpoint import EMBEDDING, Checkpoint, Model
from model.config import Config, ConfigError, DataSource, RecurrentConfig, TransformerConfig
from model.data import load_rows
from model.tokenizer import PAD_ID
from model.training.examples import encode, tested_rights

ITERATIONS = 6
"""Of expectation maximization; what is likely hardly changes after that."""
LONGEST = 24
"""Pieces of a text that a link is read from: of two long texts, too much could be a translation of too much."""
LEAST_PROBABILITY = 0.05
"""Below it a link is chance."""
LEAST_COUNT = 3
"""Texts. A piece of fewer is linked with whatever is rare in them."""
LEAST_MASS = 0.1
"""A piece whose links come to less is left as it is."""


@dataclass(frozen=True)
class Lexicon:
    """p(translation | piece), of which unlikely links are left out."""

    pieces: NDArray[np.int64]
    """(L)"""
    translations: NDArray[np.int64]
    """(L)"""
    probabilities: NDArray[np.float64]
    """(L)"""

    def weighted_sum(self, embeddings: Tensor, n_pieces: int) -> Tensor:
        """(n_pieces, D), of the embeddings of each piece's translations, by their probability."""
        links = torch.sparse_coo_tensor(
            torch.from_numpy(np.stack([self.pieces, self.translations])),
            torch.from_numpy(self.probabilities).to(embeddings),
            (n_pieces, len(embeddings)),
            check_invariants=True,
        )
        sums: Tensor = torch.sparse.mm(links, embeddings)
        return sums


def pivot_column(config: Config, start: Config) -> int:
    """Where the language stands that two translators have in common: 0 if it is the source of both, 1 if the target.

    Raises:
        ConfigError: they have none in common there, or both.
    """
    new, old = config.model, start.model
    if isinstance(new, TransformerConfig | RecurrentConfig) and isinstance(old, TransformerConfig | RecurrentConfig):
        same_source, same_target = new.source == old.source, new.target == old.target
        if same_source != same_target:
            return int(same_target)
    raise ConfigError(f"data.pivot: {config.name} and {start.name} do not share their source or their target alone")


def begin_with_translations(
    model: Model, config: Config, tokenizer: Tokenizer, start: Checkpoint, data_dir: Path | None
) -> int:
    """Give a model's pieces that a checkpoint lacks the embeddings of their translations.

    Returns:
        How many pieces: those of which the corpora tell enough.

    Raises:
        ConfigError: model and checkpoint have no language in common, or both.
        DataError: a corpus is missing, empty or malformed.
    """
    pivot = pivot_column(config, start.config)
    tested = tested_rights(config, data_dir)
    own = {source.file: source for source in config.data.train if source.rewrite is None}.values()
    to_pivot = lexicon(_pieces(own, data_dir, tested, 1 - pivot, (tokenizer, tokenizer)))
    from_pivot = lexicon(_pieces(config.data.pivot, data_dir, tested, pivot, (tokenizer, start.tokenizer)))
    known, old, new = start.model.state_dict(), start.tokenizer.get_vocab(), tokenizer.get_vocab()
    pieces = torch.from_numpy(linked_pieces(to_pivot, from_pivot, len(new)))
    pieces = pieces[torch.isin(pieces, torch.tensor([new[piece] for piece in new.keys() - old.keys()]))]
    for name, embeddings in model.state_dict().items():
        if name.endswith(EMBEDDING):
            embeddings[pieces] = translated_embeddings(known[name], to_pivot, from_pivot, len(new))[pieces]
    return len(pieces)


def lexicon(pairs: Iterable[tuple[Ids, Ids]]) -> Lexicon:
    """What pieces are translated by, from texts and their translations (IBM model 1).

    What comes from no piece of a text comes from <pad>, which every text is taken to have.
    """
    candidates, produced, positions, texts = [], [], [], []
    n_positions = 0
    for text, translation in pairs:
        if len(translation) and max(len(text), len(translation)) <= LONGEST:
            text_and_none = np.append(text, PAD_ID).astype(np.int64)
            candidates.append(np.tile(text_and_none, len(translation)))
            produced.append(np.repeat(translation.astype(np.int64), len(text_and_none)))
            positions.append(np.repeat(np.arange(n_positions, n_positions + len(translation)), len(text_and_none)))
            texts.append(np.unique(text))
            n_positions += len(translation)
    if not n_positions:
        return Lexicon(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    links, link = np.unique(np.concatenate(candidates) << 32 | np.concatenate(produced), return_inverse=True)
    pieces, translations, position = links >> 32, links & 0xFFFFFFFF, np.concatenate(positions)
    probabilities = np.ones(len(links))
    for _ in range(ITERATIONS):
        share = probabilities[link]
        share /= np.bincount(position, share)[position]
        expected = np.bincount(link, share)
        probabilities = expected / np.bincount(pieces, expected)[pieces]
    seen = np.bincount(np.concatenate(texts), minlength=pieces.max() + 1)[pieces]
    kept = (pieces != PAD_ID) & (seen >= LEAST_COUNT) & (probabilities >= LEAST_PROBABILITY)
    return Lexicon(pieces[kept], translations[kept], probabilities[kept])


def linked_pieces(to_pivot: Lexicon, from_pivot: Lexicon, size: int) -> NDArray[np.int64]:
    """(n) of V = `size`, the pieces of whose translations into the pivot language enough are translated on."""
    linked = np.isin(to_pivot.translations, from_pivot.pieces)
    return np.flatnonzero(np.bincount(to_pivot.pieces[linked], to_pivot.probabilities[linked], size) >= LEAST_MASS)


def translated_embeddings(known: Tensor, to_pivot: Lexicon, from_pivot: Lexicon, size: int) -> Tensor:
    """(V, D) embeddings as long as the known ones mostly are; zero where there is no link.

    Args:
        known: (K, D).
        to_pivot: from pieces of the new language to pieces of the pivot language, both of the new vocabulary.
        from_pivot: from these to pieces of the known vocabulary.
        size: V.
    """
    sums = to_pivot.weighted_sum(from_pivot.weighted_sum(known, size), size)
    return normalize(sums, dim=1).mul(known.norm(dim=1).median())


def _pieces(
    sources: Iterable[DataSource],
    data_dir: Path | None,
    tested: set[str],
    column: int,
    tokenizers: Sequence[Tokenizer],
) -> Iterator[tuple[Ids, Ids]]:
    """The pieces of the texts in a column, and of those beside them, each by a tokenizer of its own, without </s>."""
    for source in sources:
        rows = [row for row in load_rows(source, data_dir) if row.right not in tested]
        texts, beside = (
            encode(tokenizer, [row[side] for row in rows])
            for tokenizer, side in zip(tokenizers, (column, 1 - column), strict=True)
        )
        yield from ((text[:-1], translation[:-1]) for text, translation in zip(texts, beside, strict=True))
