"""Rows that become training examples, and their shares of the tokens."""

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from tokenizers import Tokenizer

from model.batching import Pool, TranslationExample, training_batches
from model.data import Row
from model.recipe import DataSource
from model.splits import reported_rows
from model.tokenizer import EOS_ID, byte_ids, train_tokenizer
from model.training import examples
from model.training.examples import BLOCK_SIZE, RARE_SHARE, encode_rows, prepare_data, sampled, target_tokens
from tests.model.tiny_configs import CLASSIFIER, TRANSLATOR, configured

V = 400
SYLLABLES = ("ba", "ce", "di", "fo", "gu", "ha", "ki", "lo")
TEXTS = [first + second + third for first in SYLLABLES for second in SYLLABLES for third in SYLLABLES]


def pool(*targets: Sequence[int]) -> Pool:
    source = np.array([EOS_ID], np.int32)
    return Pool([TranslationExample(source, np.array(target, np.int32)) for target in targets])


def test_a_translation_may_have_what_targets_have_but_not_what_they_seldom_have() -> None:
    tokenizer = train_tokenizer(TEXTS, V, end_of_sequence=True)
    assert tokenizer.get_vocab_size() == V
    letters = byte_ids(tokenizer)
    pieces = [i for i in range(EOS_ID + 1, V) if i not in letters]
    often, seldom, never, known, byte = *pieces[-4:], letters[-1]
    n = int(2 / RARE_SHARE)
    targets = pool([often] * (n // 2), [often] * (n // 2), [seldom, byte])
    before = np.zeros(V, bool)
    before[known] = True

    may_have = target_tokens([targets], before, tokenizer)

    assert may_have[[often, known, byte, EOS_ID]].all()
    assert not may_have[[seldom, never]].any()
    assert may_have.sum() == BLOCK_SIZE
    assert target_tokens([pool([seldom, often])], before, tokenizer)[seldom], "in a small corpus nothing is seldom"


def test_merges_are_left_out_of_sources_alone() -> None:
    tokenizer = train_tokenizer(TEXTS, V, end_of_sequence=True)
    config, rows = configured(TRANSLATOR), [Row(text, text) for text in TEXTS]
    whole, cut = (
        cast(list[TranslationExample], encode_rows(config, tokenizer, rows, dropout)) for dropout in (0.0, 0.5)
    )
    assert [pair.target.tolist() for pair in cut] == [pair.target.tolist() for pair in whole]
    assert sum(len(pair.source) for pair in cut) > sum(len(pair.source) for pair in whole)


def test_nothing_is_held_out_of_texts_that_have_several_labels(tmp_path: Path) -> None:
    (tmp_path / "sure.tsv").write_text("".join(f"pos\t{text}\n" for text in TEXTS[:100]))
    (tmp_path / "unsure.tsv").write_text("".join(f"any\t{text}\n" for text in TEXTS[100:200]))
    sources = [
        {"file": "sure.tsv", "licence": "ours", "labels": {"pos": "positive"}},
        {"file": "unsure.tsv", "licence": "ours", "labels": {"any": ["negative", "positive"]}},
    ]
    experiment = configured(CLASSIFIER, data={"train": sources, "validation_fraction": 0.2})
    data, _ = prepare_data(experiment, tmp_path, train_tokenizer(TEXTS, V, end_of_sequence=True))
    sure, unsure = (len(pool.examples) for pool in data.pools)
    assert (sure + len(data.validation), unsure) == (100, 200)
    assert 5 < len(data.validation) < 40


SHARES = {"talk": 3.0, "news": 1.0, "law": 2.0}
CORPORA = {"talk": (("a", 1.0), ("b", 0.25)), "news": (("c", 1.0),)}
"""Corpora of each kind, with their weights; of laws there are none."""


def test_kinds_of_text_have_their_shares_of_the_tokens_and_corpora_theirs_of_a_kind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(examples, "EPOCH_TOKENS", 100_000)
    random = np.random.default_rng(1)
    n_rows = {"a": 400, "b": 1600, "c": 100}
    pools = [
        (DataSource(file=file, licence="ours", kind=kind, weight=weight), pool(*([1] * n for n in lengths)))
        for kind, corpora in CORPORA.items()
        for file, weight in corpora
        for lengths in [random.integers(2, 40, n_rows[file])]
    ]
    drawn = sampled(pools, SHARES)
    n_tokens: dict[str, int] = dict.fromkeys(n_rows, 0)
    epoch = sum(one.sample or 0 for _, one in drawn)
    stream = itertools.chain.from_iterable(training_batches([one for _, one in drawn], 400, seed=1))
    for draw in itertools.islice(stream, 2 * epoch):
        source, one = drawn[draw.pool]
        n_tokens[source.file] += len(one.examples[draw.index])
    total = sum(n_tokens.values())
    shares = {file: n / total for file, n in n_tokens.items()}
    # Within a kind, the root of the number of rows times the weight: 20 and 40 / 4.
    assert shares == pytest.approx({"a": 0.75 * 2 / 3, "b": 0.75 / 3, "c": 0.25}, rel=0.05)


def test_what_is_reported_is_neither_trained_nor_chosen_on(tmp_path: Path) -> None:
    rows = [Row(f"{text} one two three four", f"{text} fünf") for text in TEXTS]
    (tmp_path / "pairs.tsv").write_text("".join(f"{row.left}\t{row.right}\n" for row in rows))
    sources = [
        {"file": "pairs.tsv", "licence": "ours", "kind": "talk"},
        {"file": "pairs.tsv", "licence": "ours", "kind": "talk", "rewrite": "no_final_punctuation"},
        {"file": "pairs.tsv", "licence": "ours", "kind": "talk", "rewrite": "capitals"},
    ]
    fractions = {"validation_fraction": 0.1, "reported_fraction": 0.1}
    experiment = configured(
        TRANSLATOR | {"vocab_size": V, "max_positions": 256},
        max_tokens=200,
        data={"train": sources, "shares": {"talk": 1.0}} | fractions,
    )
    tokenizer = train_tokenizer([text for row in rows for text in row], V, end_of_sequence=True)
    data, _ = prepare_data(experiment, tmp_path, tokenizer)
    trained = {text for one in data.pools for text in decoded(tokenizer, one.examples)}
    chosen = set(decoded(tokenizer, data.validation))
    reported = {row.left for row in reported_rows(rows, experiment.data.train[0], experiment.data)}
    assert 20 < len(reported) < 90
    assert 20 < len(chosen) < 90
    assert trained | chosen | reported == {row.left.casefold() for row in rows}
    assert not reported & (trained | chosen)
    assert not trained & chosen


def decoded(tokenizer: Tokenizer, found: Iterable[Any]) -> list[str]:
    """Return the sources of examples in small letters."""
    return [tokenizer.decode(example.source.tolist()).casefold() for example in found]
