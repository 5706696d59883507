"""What the pieces of a new language begin with: the mean of the embeddings of what they are translated by.

A checkpoint from French to English knows no Japanese. But one corpus tells which English pieces stand beside a Japanese
one, another which French pieces stand beside these, and the encoder knows what to make of those. Minixhofer et al. 2022
("WECHSEL") do this with a dictionary; here IBM model 1 (Brown et al. 1993) makes one from texts.

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

from model.checkpoint import Model, load_checkpoint
from model.config import Config, ConfigError, DataSource, RecurrentConfig, TransformerConfig
from model.data import load_rows
from model.tokenizer import PAD_ID

Pieces = Sequence[int]
Translator = TransformerConfig | RecurrentConfig

ITERATIONS = 6
LONGEST = 24
"""Pieces of a text that a link is read from: of two long texts, too much could be a translation of too much."""
LEAST_PROBABILITY = 0.05
"""Below it a link is chance."""
LEAST_COUNT, LEAST_MASS = 2.0, 0.1
"""A piece that was seen less often, or whose links come to less, is left as it is."""


def begin_with_translations(
    model: Model, config: Config, tokenizer: Tokenizer, start: Path, data_dir: Path | None
) -> int:
    """Give a model's pieces that the checkpoint `start` lacks the embeddings of their translations.

    The language that both models have is the pivot; `config.data.pivot` has it beside the other one of `start`.

    Returns:
        How many pieces: those of which the corpora tell enough.

    Raises:
        ConfigError: the two have no language in common, or both.
        DataError: a corpus is missing, empty or malformed.
    """
    checkpoint = load_checkpoint(start)
    pivot = _pivot_column(config, checkpoint.config)
    own = [source for source in config.data.train if source.rewrite is None and not source.merge_dropout]
    to_pivot = lexicon(_pieces(own, data_dir, 1 - pivot, (tokenizer, tokenizer)))
    from_pivot = lexicon(_pieces(config.data.pivot, data_dir, pivot, (tokenizer, checkpoint.tokenizer)))
    old, new = checkpoint.tokenizer.get_vocab(), tokenizer.get_vocab()
    lacking = torch.tensor([new[piece] for piece in new.keys() - old.keys()])
    weights, known = model.state_dict(), checkpoint.model.state_dict()
    for name in weights:
        if name.endswith("embedding.tokens.weight"):
            pieces, embeddings = translated_embeddings(known[name], to_pivot, from_pivot, len(new))
            new_ones = torch.isin(pieces, lacking)
            weights[name][pieces[new_ones]] = embeddings[new_ones]
    return int(new_ones.sum())


@dataclass(frozen=True)
class Lexicon:
    """p(translation | piece), of which unlikely links are left out."""

    pieces: NDArray[np.int64]
    """(L)"""
    translations: NDArray[np.int64]
    """(L)"""
    probabilities: NDArray[np.float64]
    """(L)"""

    def mean(self, embeddings: Tensor, n_pieces: int) -> Tensor:
        """(n_pieces, D), the sum of what a piece is translated by, each times its probability."""
        links = torch.sparse_coo_tensor(
            torch.from_numpy(np.stack([self.pieces, self.translations])),
            torch.from_numpy(self.probabilities).to(embeddings),
            (n_pieces, len(embeddings)),
            check_invariants=True,
        )
        mean: Tensor = torch.sparse.mm(links, embeddings)
        return mean


def lexicon(pairs: Iterable[tuple[Pieces, Pieces]]) -> Lexicon:
    """What pieces are translated by, from texts and their translations (IBM model 1).

    What comes from no piece of a text comes from <pad>, which every text is taken to have.
    """
    of, into, place = [], [], []
    n_places = 0
    for text, translation in pairs:
        if translation and max(len(text), len(translation)) <= LONGEST:
            candidates = np.array([*text, PAD_ID], dtype=np.int64)
            of.append(np.tile(candidates, len(translation)))
            into.append(np.repeat(np.array(translation, dtype=np.int64), len(candidates)))
            place.append(np.repeat(np.arange(n_places, n_places + len(translation)), len(candidates)))
            n_places += len(translation)
    if not n_places:
        return Lexicon(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    as_one, link = np.unique(np.concatenate(of) << 32 | np.concatenate(into), return_inverse=True)
    pieces, translations, places = as_one >> 32, as_one & 0xFFFFFFFF, np.concatenate(place)
    probabilities = np.ones(len(pieces))
    for _ in range(ITERATIONS):
        share = probabilities[link]
        share /= np.bincount(places, share)[places]
        counts = np.bincount(link, share)
        seen = np.bincount(pieces, counts)[pieces]
        probabilities = counts / seen
    kept = (pieces != PAD_ID) & (seen >= LEAST_COUNT) & (probabilities >= LEAST_PROBABILITY)
    return Lexicon(pieces[kept], translations[kept], probabilities[kept])


def translated_embeddings(known: Tensor, to_pivot: Lexicon, from_pivot: Lexicon, size: int) -> tuple[Tensor, Tensor]:
    """The pieces (n) of a vocabulary of which enough is known, and an embedding (n, D) for each, of usual length.

    Args:
        known: (K, D).
        to_pivot: from pieces of the new language to pieces of the pivot language, both of the new vocabulary.
        from_pivot: from these to pieces of the known vocabulary.
        size: V.
    """
    linked = np.isin(to_pivot.translations, from_pivot.pieces)
    mass = np.bincount(to_pivot.pieces[linked], to_pivot.probabilities[linked], size)
    pieces = torch.from_numpy(np.flatnonzero(mass >= LEAST_MASS))
    means = to_pivot.mean(from_pivot.mean(known, size), size)[pieces]
    return pieces, normalize(means, dim=1) * known.norm(dim=1).median()


def _pivot_column(config: Config, start: Config) -> int:
    """Where the language stands that both have: 0 if it is the source, 1 if it is the target."""
    new, old = config.model, start.model
    if isinstance(new, Translator) and isinstance(old, Translator):
        same_source, same_target = new.source == old.source, new.target == old.target
        if same_source != same_target:
            return int(same_target)
    raise ConfigError(f"data.pivot: {config.name} and {start.name} do not share their source or their target alone")


def _pieces(
    sources: Sequence[DataSource], data_dir: Path | None, column: int, tokenizers: tuple[Tokenizer, Tokenizer]
) -> Iterator[tuple[Pieces, Pieces]]:
    """The pieces of the texts in a column, and of those beside them, each by a tokenizer of its own."""
    for source in sources:
        rows = load_rows(source, data_dir)[: source.sample]
        columns = ([row[i] for row in rows] for i in (column, 1 - column))
        sides = (
            [encoding.ids for encoding in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]
            for tokenizer, texts in zip(tokenizers, columns, strict=True)
        )
        yield from zip(*sides, strict=True)
