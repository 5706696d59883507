"""Cached, batched decoding with ONNX Runtime against uncached PyTorch, and against itself."""

from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
import torch

from export.decoding import FIRST_CACHE_LENGTH, DecoderRows, Memory, Translator
from export.padding import pad
from manifest.file import read_manifest
from manifest.schema import Precision, Provider
from model.decoding.search import greedy_search_uncached
from tests.export.tiny_checkpoints import GRAPHS, Kind, MakeArtifact, MakeCheckpoint, translator_of

RANDOM = np.random.default_rng(7)
SOURCES = [RANDOM.integers(4, 300, length).tolist() for length in (9, 1, 30, 4, 17, 9, 60, 2)]
LIMIT = 48


def translator(artifact: Path, n_rows: int, provider: Provider = "cpu") -> Translator:
    return Translator(artifact, read_manifest(artifact), n_rows, provider)


@pytest.mark.parametrize("kind", ["translation", "translation_post_norm", "translation_ssru"])
def test_cached_decoding_at_mixed_positions_is_pytorchs_uncached_one(
    artifact: MakeArtifact, checkpoint: MakeCheckpoint, kind: Kind
) -> None:
    model = translator_of(checkpoint(kind))
    expected = [
        greedy_search_uncached(model, torch.tensor([source]), torch.tensor([len(source)]), LIMIT)[0]
        for source in SOURCES
    ]
    actual = translator(artifact(kind, "fp32"), n_rows=3).greedy(SOURCES, LIMIT, admit_per_step=1)
    assert [h.ids for h in actual] == [h.ids for h in expected]
    assert [h.finished for h in actual] == [h.finished for h in expected]
    assert [h.score for h in actual] == pytest.approx([h.score for h in expected], abs=1e-4)
    assert max(len(h.ids) for h in actual) > FIRST_CACHE_LENGTH, "the caches never grew"
    assert len({tuple(h.ids) for h in actual}) > 2, "the model ignores its source"


@pytest.mark.parametrize(("precision", "provider"), GRAPHS)
def test_neighbours_never_change_a_translation(
    artifact: MakeArtifact, precision: Precision, provider: Provider
) -> None:
    directory = artifact("translation", precision)
    together = translator(directory, len(SOURCES), provider).greedy(SOURCES, LIMIT)
    crowded = translator(directory, 3, provider).greedy(SOURCES, LIMIT, admit_per_step=1)
    alone = [translator(directory, 1, provider).greedy([source], LIMIT)[0] for source in SOURCES]
    assert [h.ids for h in together] == [h.ids for h in alone]
    assert [h.ids for h in crowded] == [h.ids for h in alone]
    assert [h.score for h in crowded] == pytest.approx([h.score for h in alone], abs=1e-4)


@pytest.mark.parametrize(("precision", "provider"), GRAPHS)
def test_rubbish_in_the_padding_never_reaches_an_answer(
    artifact: MakeArtifact, precision: Precision, provider: Provider
) -> None:
    encoder = translator(artifact("translation", precision), 1, provider).encoder
    outputs = []
    for padding in (0, 299):
        ids, lengths = pad(SOURCES, padding)
        outputs.append(encoder.run(None, {"input_ids": ids, "source_lengths": lengths}))
    for clean, rubbish in zip(*outputs, strict=True):
        for row, length in enumerate(lengths):
            np.testing.assert_array_equal(rubbish[row, :length], clean[row, :length])


@pytest.mark.parametrize(("precision", "provider"), GRAPHS)
def test_caches_are_written_in_place_and_nowhere_else(
    artifact: MakeArtifact, precision: Precision, provider: Provider
) -> None:
    directory = artifact("translation", precision)
    rows = one_sequence_in_each_row(translator(directory, 4, provider))
    for cache in rows.caches.values():
        cache[...] = 0.5
    rows.positions[:] = [5, 0, 30, 11]
    before = {name: cache.copy() for name, cache in rows.caches.items()}
    rows.step()
    outputs = rows.binding.get_outputs()  # in the order in which they were bound: the caches first
    for (name, cache), output in zip(rows.caches.items(), outputs, strict=False):
        assert output.data_ptr() == cache.ctypes.data
        written = (cache != before[name]).any(axis=(1, 3))  # (R, L)
        assert [np.flatnonzero(row).tolist() for row in written] == [[5], [0], [30], [11]]


def test_candidates_are_the_k_best_of_the_whole_distribution(artifact: MakeArtifact) -> None:
    translators = translator(artifact("translation", "int8"), n_rows=4)
    whole = one_sequence_in_each_row(translators, k=300)
    few = one_sequence_in_each_row(translators, k=5)
    all_ids, all_log_probs = whole.step()
    ids, log_probs = few.step()
    np.testing.assert_array_equal(ids, all_ids[:, :5])
    np.testing.assert_array_equal(log_probs, all_log_probs[:, :5])
    assert np.exp(all_log_probs.astype(np.float64)).sum(axis=1) == pytest.approx(np.ones(4), abs=1e-5)
    assert (np.diff(all_log_probs, axis=1) <= 0).all()
    assert all(sorted(row) == list(range(300)) for row in all_ids.tolist())


def one_sequence_in_each_row(translators: Translator, k: int = 1) -> DecoderRows:
    rows = DecoderRows(translators.decoder_step, translators.manifest, translators.n_rows, 9, translators.dtype, k)
    memories: list[Memory] = translators.encode([SOURCES[0][:n] for n in range(1, translators.n_rows + 1)])
    for row, memory in enumerate(memories):
        rows.admit(row, bos=2, memory=memory)
    return rows


def test_onnx_runtime_sees_what_is_written_to_a_bound_array() -> None:
    """`DecoderRows` depends on it."""
    array = np.zeros(3, np.float32)
    value = ort.OrtValue.ortvalue_from_numpy(array)
    array[1] = 7
    assert value.numpy()[1] == 7
