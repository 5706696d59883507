"""Greedy search compared with beam search and a slow search, and both with the graphs of a tiny artifact."""

from collections.abc import Callable

import numpy as np
import pytest

from manifest.schema import MAX_BEAM_SIZE
from service.base.artifact import Artifact
from service.engine.beam_search import BeamSearch
from service.engine.greedy_search import GreedySearch
from service.engine.scheduler import Sequence
from service.engine.search import Search
from service.runner.provider import Provider
from service.runner.translation import TranslationGraphs, TranslationRunner
from tests.service.engine.test_beam_search import BOS, Rows, ScriptedRows, expected, random_sequence
from tests.service.fakes import prefill, search_all
from tests.service.oracle import EOS
from tests.service.tiny_artifacts import V

N_ROWS = 16


def with_a_beam_of_one(sequence: Sequence[Search]) -> Sequence[Search]:
    search = sequence.output
    return Sequence(
        sequence.source_ids,
        Search(
            search.max_target_tokens,
            length_penalty=search.length_penalty,
            prefix=search.prefix,
            once_tokens=search.once_tokens,
            scored=search.scored,
        ),
    )


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("leaving", [0.0, 0.1])
def test_greedy_search_alone_gets_the_answers_of_the_slow_search(seed: int, leaving: float) -> None:
    rng = np.random.default_rng(seed)
    everybody = [random_sequence(rng) for _ in range(24)]
    everybody = [with_a_beam_of_one(sequence) for sequence in everybody]
    abandoned = search_all(GreedySearch(Rows(8), BOS, EOS), 8, everybody, rng, leaving)
    remaining = [sequence for sequence in everybody if sequence not in abandoned]
    assert remaining
    for sequence in remaining:
        assert sequence.output.best() == expected(sequence)


@pytest.mark.parametrize(
    ("limit", "script", "reason"),
    [
        (9, [7, 8, EOS], "eos"),
        (3, [7, 8, EOS], "eos"),
        (2, [7, 8], "length"),
        (200, [5, 6, 7] * 8, "repetition"),
        (24, [5] * 24, "length"),
    ],
)
def test_greedy_search_ends_for_the_reasons_of_beam_search(limit: int, script: list[int], reason: str) -> None:
    found = []
    rows = [ScriptedRows([*script, *script]) for _ in range(2)]
    for search in (GreedySearch(rows[0], BOS, EOS), BeamSearch(rows[1], BOS, EOS)):
        sequence = Sequence([4, EOS], Search(limit))
        prefill(search, 0, [sequence])
        while not sequence.finished:
            search.step([sequence])
        found += sequence.output.best()
    assert found[0] == found[1]
    assert (found[0].token_ids, found[0].finish_reason) == (script, reason)


@pytest.mark.parametrize("kind", [GreedySearch, BeamSearch])
@pytest.mark.parametrize("name", ["encode", "step", "move"])
def test_after_a_failed_call_the_next_sequences_are_searched_as_ever(
    kind: type[GreedySearch | BeamSearch], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("told to fail")

    rng = np.random.default_rng(2)
    rows = Rows(N_ROWS)
    search = kind(rows, BOS, EOS)
    width = 1 if kind is GreedySearch else 2
    running = [Sequence([4, EOS], Search(40, width), n_rows=width) for _ in range(4)]
    newcomers = [Sequence([4, EOS], Search(40, width), n_rows=width) for _ in range(2)]
    calls: dict[str, Callable[[], object]] = {
        "encode": lambda: prefill(search, 4, newcomers),
        "step": lambda: search.step(running),
        "move": lambda: search.move(3, 0, running[3]),
    }
    prefill(search, 0, running)
    search.step(running)
    with monkeypatch.context() as patch:
        patch.setattr(rows, name, fail)
        with pytest.raises(RuntimeError, match="told to fail"):
            calls[name]()
    everybody = [random_sequence(rng) for _ in range(8)]
    if kind is GreedySearch:
        everybody = [with_a_beam_of_one(sequence) for sequence in everybody]
    search_all(search, N_ROWS, everybody, rng)
    assert [sequence.output.best() for sequence in everybody] == [expected(sequence) for sequence in everybody]


@pytest.mark.parametrize("beam_sizes", [[1], [2, 3, MAX_BEAM_SIZE]])
def test_neighbours_change_no_bit_of_an_answer(translator_artifact: Artifact, beam_sizes: list[int]) -> None:
    """This must hold for any neighbours: cross-attention of one query and of several use different kernels."""
    rng = np.random.default_rng(6)
    graphs = TranslationGraphs(translator_artifact, Provider("cpu", threads=1))

    def search() -> GreedySearch | BeamSearch:
        if beam_sizes == [1]:
            return GreedySearch(TranslationRunner(graphs, N_ROWS, min_queries=1), BOS, EOS)
        return BeamSearch(TranslationRunner(graphs, N_ROWS), BOS, EOS)

    sources = [[*rng.integers(4, V, int(length)).tolist(), EOS] for length in rng.integers(1, 40, 24)]
    sizes = rng.choice(beam_sizes, len(sources)).tolist()
    together = [Sequence(s, Search(30, size), n_rows=size) for s, size in zip(sources, sizes, strict=True)]
    search_all(search(), N_ROWS, together, rng)
    for sequence in together:
        asked = sequence.output
        alone = Sequence(sequence.source_ids, Search(30, asked.beam_size), n_rows=asked.beam_size)
        search_all(search(), N_ROWS, [alone], rng)
        assert alone.output.best() == asked.best(), "log-probabilities are compared to the last bit"
