"""Converts rows to token ids: training pools, validation examples and the tokenizer they share."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from model.augmentation.rewriting import rewrite_rows
from model.batching import Ids, Pool, ReviewExample, TextExample, TranslationExample
from model.config import ClassifierConfig, Config, LanguageModelConfig, RecurrentConfig, TransformerConfig
from model.data import DataError, Row, load_rows
from model.recipe import DataSource, Experiment, Recipe
from model.splits import split
from model.tokenizer import EOS_ID, byte_ids, n_special_around, train_tokenizer, with_dropout

log = logging.getLogger(__name__)

ENCODE_BATCH = 10_000
"""Texts encoded at once: the tokenizer returns kilobytes for each."""
BLOCK_SIZE = 64
"""Number of target tokens is a multiple of it, as kernels compute whole blocks."""
EPOCH_TOKENS = 2_000_000
"""Tokens of an epoch in which kinds of text have shares, padding aside: enough batches for every length."""
RARE_SHARE = 5e-7
"""Largest share of target tokens that is rare: one in two million, a dozen in our corpora, too few to learn from."""
Examples = list[TranslationExample] | list[ReviewExample] | list[TextExample]


@dataclass(frozen=True)
class TrainingData:
    pools: list[Pool]
    validation: Examples


def prepare_data(
    experiment: Experiment, data_dir: Path | None, tokenizer: Tokenizer | None
) -> tuple[TrainingData, Tokenizer]:
    """Load, split, and encode the corpora of an experiment; without a tokenizer, train one on the training rows. Raises
    DataError: a corpus is missing, empty or malformed, or has an unknown label."""
    random = np.random.default_rng(experiment.training.seed)
    tested = tested_rights(experiment, data_dir)
    train_rows: list[list[Row]] = []
    validation_rows: dict[Row, None] = {}
    is_pairs = isinstance(experiment.model, TransformerConfig | RecurrentConfig)
    for source in experiment.data.validation:
        validation_rows |= dict.fromkeys(load_rows(source, data_dir))
    for source in experiment.data.train:
        rows = [row for row in load_rows(source, data_dir) if row.right not in tested]
        parts = split(rows, source, experiment.data, is_pairs)
        validation_rows |= dict.fromkeys(parts.validation)
        train_rows.append(rewrite_rows(parts.train, source.rewrite, random) if source.rewrite else parts.train)
    if not any(train_rows):
        raise DataError("no training rows are left without those of the test sets")
    if tokenizer is None:
        tokenizer = _train_tokenizer(experiment, train_rows)
    n_around = n_special_around(tokenizer)
    pools = []
    for source, rows in zip(experiment.data.train, train_rows, strict=True):
        encoded = encode_rows(experiment, tokenizer, rows, source.merge_dropout)
        if not encoded and source.rewrite is None:
            limit = f"`max_tokens`, {experiment.max_tokens}, tokens"
            raise DataError(f"{source.file}: no training row has at most {limit}")
        if encoded:  # a rewriting may apply to no row
            pools.append((source, Pool(encoded, source.sample, source.shortest_crop, n_around)))
    if experiment.data.shares is not None:
        pools = sampled(pools, experiment.data.shares)
    validation = encode_rows(experiment, tokenizer, [*validation_rows])
    return TrainingData([pool for _, pool in pools], validation), tokenizer


def sampled(pools: Sequence[tuple[DataSource, Pool]], shares: Mapping[str, float]) -> list[tuple[DataSource, Pool]]:
    """Return the pools with as many rows an epoch as give each kind of text its share of the tokens.

    Within a kind, tokens are shared by the root of the number of rows, times the weight of the corpus.
    """
    parts = [source.weight * len(pool.examples) ** 0.5 for source, pool in pools]
    of_kinds = dict.fromkeys(shares, 0.0)
    for (source, _), part in zip(pools, parts, strict=True):
        of_kinds[str(source.kind)] += part
    total = sum(share for kind, share in shares.items() if of_kinds[kind])
    chosen = []
    for (source, pool), part in zip(pools, parts, strict=True):
        share = shares[str(source.kind)] / total * part / of_kinds[str(source.kind)]
        tokens = sum(map(len, pool.examples)) / len(pool.examples)
        n_rows = max(1, round(share * EPOCH_TOKENS / tokens))
        rows = f"{n_rows:,d} of {len(pool.examples):,d} rows an epoch"
        log.warning(
            "%s%s: %.1f %% of the tokens, %s",
            source.file,
            f", {source.rewrite}" if source.rewrite else "",
            100 * share,
            rows,
        )
        chosen.append((source, replace(pool, sample=n_rows)))
    return chosen


def encode_rows(config: Config, tokenizer: Tokenizer, rows: Sequence[Row], merge_dropout: float = 0.0) -> Examples:
    """Encode rows as examples; `merge_dropout` of the merges of translation sources are left out.

    Too long pairs are left out; too long reviews keep their first and last tokens. A language model reads the second
    column in consecutive windows.
    """
    limit = config.max_tokens
    if isinstance(config.model, ClassifierConfig):
        labels = {label: i for i, label in enumerate(config.model.labels)}
        unknown = {row.left for row in rows} - labels.keys()
        if unknown:
            known = ", ".join(config.model.labels)
            raise DataError(f"unknown labels {', '.join(sorted(unknown))}; the model has {known}")
        texts = encode_texts(tokenizer, [row.right for row in rows])
        return [
            ReviewExample(_head_and_tail(ids, limit), labels[row.left]) for row, ids in zip(rows, texts, strict=True)
        ]
    if isinstance(config.model, LanguageModelConfig):
        return [TextExample(ids) for ids in text_windows(tokenizer, [row.right for row in rows], limit)]
    sources, targets = (encode_texts(tokenizer, [row[side] for row in rows]) for side in (0, 1))
    pairs = (TranslationExample(source, target[:-1]) for source, target in zip(sources, targets, strict=True))
    if not merge_dropout:
        return [pair for pair in pairs if len(pair) <= limit]
    in_pieces = encode_texts(with_dropout(tokenizer, merge_dropout), [row.left for row in rows])
    return [
        TranslationExample(source, pair.target) if len(source) <= limit else pair
        for pair, source in zip(pairs, in_pieces, strict=True)
        if len(pair) <= limit
    ]


def text_windows(tokenizer: Tokenizer, texts: Sequence[str], size: int) -> Iterator[Ids]:
    """Yield each text and its </s>, cut into consecutive windows of at most `size` tokens."""
    for text in encode_texts(tokenizer, texts):
        ids = np.append(text, np.int32(EOS_ID))
        yield from (ids[start : start + size] for start in range(0, len(ids), size))


def target_tokens(pools: Sequence[Pool], known: NDArray[np.bool_], tokenizer: Tokenizer) -> NDArray[np.bool_]:
    """Return (V), the tokens that a translation may have: known ones (V), and those of the targets except rare ones,
    which bytes can spell; others fill up the last block.

    No other token was trained as output, and each would cost as much as any at every step.
    """
    examples = (example for pool in pools for example in pool.examples)
    targets = [example.target for example in examples if isinstance(example, TranslationExample)]
    counts = np.bincount(np.concatenate(targets), minlength=len(known))
    more_than = np.full(len(known), RARE_SHARE * counts.sum())
    more_than[byte_ids(tokenizer)] = 0
    kept: NDArray[np.bool_] = known | (counts > more_than)
    kept[EOS_ID] = True
    n = -(-np.count_nonzero(kept) // BLOCK_SIZE) * BLOCK_SIZE
    kept[np.argsort(~kept, kind="stable")[:n]] = True
    return kept


def tested_rights(recipe: Recipe, data_dir: Path | None) -> set[str]:
    """Return the targets, or reviews, of the test sets, to leave them out of training; the IMDB splits share 123
    reviews."""
    return {row.right for source in recipe.data.test for row in load_rows(source, data_dir)}


def encode_texts(tokenizer: Tokenizer, texts: Sequence[str]) -> Iterator[Ids]:
    """Yield the tokens of each text, with special tokens."""
    for start in range(0, len(texts), ENCODE_BATCH):
        for encoding in tokenizer.encode_batch_fast(texts[start : start + ENCODE_BATCH]):
            yield np.array(encoding.ids, dtype=np.int32)


def _head_and_tail(ids: Ids, limit: int) -> Ids:
    if len(ids) <= limit:
        return ids
    head = limit // 2
    return np.concatenate([ids[:head], ids[head - limit :]])


def _train_tokenizer(experiment: Experiment, train_rows: list[list[Row]]) -> Tokenizer:
    translation = isinstance(experiment.model, TransformerConfig | RecurrentConfig)
    texts = (
        text
        for source, rows in zip(experiment.data.train, train_rows, strict=True)
        for row in rows[: source.sample]
        for text in (row if translation else (row.right,))
    )
    one_form = isinstance(experiment.model, ClassifierConfig) and experiment.model.one_form
    return train_tokenizer(texts, experiment.model.vocab_size, end_of_sequence=translation, one_form=one_form)
