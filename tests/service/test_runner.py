"""ONNX Runtime against the same model in numpy: any mixture of rows gives each row the answer it has alone."""

from pathlib import Path

import numpy as np
import pytest

from service.artifact import Artifact, read_artifact
from service.decoding import GreedyDecoding, Hypothesis
from service.runner import provider
from service.runner.classification import ClassificationRunner
from service.runner.provider import Provider
from service.runner.translation import TranslationRunner
from service.scheduler import Scheduler, Sequence
from tests.service.tiny_artifacts import BOS, EOS, MAX_TARGET_TOKENS, TinyClassifier, TinyTranslator, V

WARNINGS_TOO = 2
CPU = Provider("cpu", threads=1)


def random_source(rng: np.random.Generator, length: int) -> list[int]:
    return [*rng.integers(4, V, length - 1).tolist(), EOS]


def decode_all(runner: TranslationRunner, sequences: list[Sequence[Hypothesis]], arrivals: list[int]) -> None:
    """Run all, letting `arrivals[i]` new ones in before step i, finished rows out at once: as an engine does."""
    decoding = GreedyDecoding(runner, BOS, EOS)
    scheduler: Scheduler[Hypothesis] = Scheduler(slots=6, max_waiting=1000, prefill_padded_tokens=10_000)
    pending = list(sequences)
    step = 0
    while not all(sequence.finished for sequence in sequences):
        n_new = arrivals[step] if step < len(arrivals) else len(pending)
        scheduler.add(pending[:n_new])
        pending = pending[n_new:]
        step += 1
        admitted = scheduler.admit()
        if admitted:
            decoding.prefill(len(scheduler.running), admitted)
            scheduler.start(admitted)
        if scheduler.running:
            decoding.step(scheduler.running)
            for move in scheduler.evict([s for s in scheduler.running if s.finished]):
                decoding.move(move.source, move.target)


@pytest.mark.parametrize("seed", range(6))
def test_neighbours_never_change_an_answer(
    translator_artifact: Artifact, tiny_translator: TinyTranslator, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    limits = rng.integers(1, MAX_TARGET_TOKENS, 20).tolist()
    sequences = [Sequence(random_source(rng, int(rng.integers(2, 40))), Hypothesis(limit)) for limit in limits]
    arrivals = rng.integers(0, 4, 30).tolist()
    decode_all(TranslationRunner(translator_artifact, CPU, slots=6), sequences, arrivals)
    for sequence, limit in zip(sequences, limits, strict=True):
        target, log_prob = tiny_translator.translate(sequence.source_ids, limit)
        assert sequence.output.token_ids == target
        assert sequence.output.log_prob == pytest.approx(log_prob, abs=1e-3)
    assert {sequence.output.finish_reason for sequence in sequences} == {"eos", "length"}


def test_caches_grow_with_long_rows_and_shrink_back(translator_artifact: Artifact) -> None:
    rng = np.random.default_rng(0)
    runner = TranslationRunner(translator_artifact, CPU, slots=6)
    decode_all(runner, [Sequence(random_source(rng, 40), Hypothesis(MAX_TARGET_TOKENS))], [1])
    assert runner._cross_attention.length == 64
    GreedyDecoding(runner, BOS, EOS).warm_up()
    assert runner._self_attention.length == 32
    assert runner._cross_attention.length == 32


def test_a_step_writes_one_key_in_place(
    translator_artifact: Artifact, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """ONNX Runtime copies a whole cache, and warns, where it is not one buffer on both sides."""
    monkeypatch.setattr(provider, "ERRORS_ONLY", WARNINGS_TOO)
    runner = TranslationRunner(translator_artifact, CPU, slots=2)
    runner.encode(0, [[5, EOS]])
    runner.step(np.array([BOS]), np.array([0]))
    assert "copying past_cache" not in capfd.readouterr().err
    cache = runner._self_attention.caches["0.decoder.key"]._rows  # type: ignore[attr-defined]
    assert np.any(cache[0, :, 0])
    assert not np.any(cache[0, :, 1:])
    assert not np.any(cache[1])


def test_rows_may_be_padded_for_a_device(
    translator_artifact: Artifact, tiny_translator: TinyTranslator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On CUDA a step runs a power of two of rows; those beyond the ones in use change nothing."""
    monkeypatch.setattr(Provider, "padded_rows", lambda self, rows, slots: min(slots, 1 << (rows - 1).bit_length()))
    rng = np.random.default_rng(1)
    sequences = [Sequence(random_source(rng, 5 + i), Hypothesis(12)) for i in range(3)]
    decode_all(TranslationRunner(translator_artifact, CPU, slots=6), sequences, [1, 1, 1])
    for sequence in sequences:
        assert sequence.output.token_ids == tiny_translator.translate(sequence.source_ids, 12)[0]


@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_a_batch_of_different_lengths_is_classified_as_each_text_alone(tmp_path: Path, pooling: str) -> None:
    classifier = TinyClassifier(seed=2, pooling=pooling)
    runner = ClassificationRunner(read_artifact(classifier.save(tmp_path / "classifier")), CPU)
    rng = np.random.default_rng(3)
    sources = [rng.integers(4, V, length).tolist() for length in (1, 7, 3, 2)]
    logits = runner.classify(sources)
    for source, row in zip(sources, logits, strict=True):
        np.testing.assert_allclose(row, classifier.logits(source), rtol=1e-5)
