"""Counts of tokens in training examples."""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np

from model.batching import Pool, TranslationExample
from model.data import Row
from model.tokenizer import EOS_ID, byte_ids, train_tokenizer
from model.training.examples import BLOCK_SIZE, RARE_SHARE, encode_rows, prepare_data, target_tokens
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
    assert [len(pool.examples) for pool in data.pools] == [80, 200]
    assert len(data.validation) == 20
