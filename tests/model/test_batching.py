import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from model.batching import (
    BatchStream,
    Pool,
    TranslationExample,
    batches_by_length,
    bucket,
    collate_translations,
    training_batches,
)
from model.tokenizer import BOS_ID, EOS_ID


def pairs(lengths: list[int]) -> list[TranslationExample]:
    return [
        TranslationExample(np.full(n, 10 + i, dtype=np.int32), np.full(n, 10 + i, dtype=np.int32))
        for i, n in enumerate(lengths)
    ]


@given(st.lists(st.integers(1, 40), min_size=1, max_size=60))
def test_batches_by_length_hold_every_index_once_within_the_budget(lengths: list[int]) -> None:
    batches = batches_by_length(np.array(lengths), batch_tokens=64)
    assert sorted(itertools.chain.from_iterable(b.tolist() for b in batches)) == list(range(len(lengths)))
    assert all(max(lengths[i] for i in batch) * len(batch) <= 64 or len(batch) == 1 for batch in batches)


@given(st.integers(1, 5000))
def test_a_bucket_is_at_least_the_length_and_wastes_at_most_a_quarter(length: int) -> None:
    assert length <= bucket(length) <= max(length * 1.25, length + 3)


def test_training_batches_are_full_and_come_in_one_shape_per_bucket() -> None:
    pool = Pool(pairs(list(np.random.default_rng(1).integers(2, 60, 500))))
    batches = list(itertools.islice(training_batches([pool], batch_tokens=128, seed=3), 50))
    shapes = {
        collate_translations([pool.examples[draw.index] for draw in batch]).source.shape
        for batch in batches  # type: ignore[misc]
    }
    assert len({columns for _, columns in shapes}) == len(shapes)
    assert all(rows * columns <= 128 for rows, columns in shapes)


def test_the_order_depends_on_the_seed_alone_and_differs_between_epochs() -> None:
    pool = Pool(pairs([3] * 64))
    first, again = (list(itertools.islice(training_batches([pool], 16, seed=5), 32)) for _ in range(2))
    assert first == again
    orders = [[[draw.index for draw in batch] for batch in epoch] for epoch in (first[:16], first[16:])]
    assert orders[0] != orders[1]
    assert first != list(itertools.islice(training_batches([pool], 16, seed=6), 32))


def test_a_sampled_pool_gives_that_many_examples_an_epoch() -> None:
    pools = [Pool(pairs([3] * 8)), Pool(pairs([3] * 100), sample=8)]
    epoch = [draw for batch in itertools.islice(training_batches(pools, 16, seed=1), 4) for draw in batch]
    assert sum(draw.pool == 1 for draw in epoch) == 8


def test_a_corpus_smaller_than_a_batch_is_trained_on_all_the_same() -> None:
    """A stream that waited for a full batch once ran for ever."""
    [batch] = itertools.islice(training_batches([Pool(pairs([5, 6]))], 1000, seed=1), 1)
    assert sorted(draw.index for draw in batch) == [0, 1]


def test_a_resumed_stream_goes_on_where_the_killed_one_stopped() -> None:
    pools = [Pool(pairs([3, 5, 9] * 30))]
    whole = list(BatchStream(pools, collate_translations, 64, seed=1, start=0, n_batches=10))
    rest = list(BatchStream(pools, collate_translations, 64, seed=1, start=6, n_batches=4))
    assert [b.source.tolist() for b in whole[6:]] == [b.source.tolist() for b in rest]  # type: ignore[union-attr]


def test_a_translation_batch_shifts_the_target_by_one() -> None:
    source, target = np.array([7, 8, EOS_ID], dtype=np.int32), np.array([9, 10, 11], dtype=np.int32)
    batch = collate_translations([TranslationExample(source, target)])
    assert batch.source_lengths.tolist() == [3]
    assert batch.target_input.tolist() == [[BOS_ID, 9, 10, 11]]
    assert batch.target_output.tolist() == [[9, 10, 11, EOS_ID]]
