"""Greedy search and beam search side by side, over decoder rows that a test makes up and over a tiny artifact's."""

from collections.abc import Callable

import numpy as np
import pytest

from service.artifact import MAX_BEAM_SIZE, Artifact
from service.contract import Candidates, Ints
from service.engine.beam_search import BeamSearch, Search
from service.engine.greedy_search import GreedySearch
from service.engine.scheduler import Sequence
from service.engine.searches import Searches
from service.loading import searches
from service.runner.provider import Provider
from service.runner.translation import TranslationGraphs
from tests.service.engine.test_beam_search import BOS, Rows, ScriptedRows, expected, random_sequence
from tests.service.fakes import search_all
from tests.service.oracle import EOS
from tests.service.tiny_artifacts import V

SLOTS = 16


class CountingRows(Rows):
    """Remembers how many hypotheses one source had at most."""

    most_hypotheses = 0

    def step(
        self, token_ids: Ints, positions: Ints, rows_of_sources: list[Ints], places_of_rows: Ints, k: int
    ) -> Candidates:
        self.most_hypotheses = max(self.most_hypotheses, len(rows_of_sources[0]))
        return super().step(token_ids, positions, rows_of_sources, places_of_rows, k)


def both(greedy_rows: Rows, beam_rows: Rows) -> Searches:
    return Searches(GreedySearch(greedy_rows, BOS, EOS), BeamSearch(beam_rows, BOS, EOS))


def some_sequence(rng: np.random.Generator) -> Sequence[Search]:
    """With a beam of one as often as with a wider one."""
    sequence = random_sequence(rng)
    if rng.random() < 0.5:
        limit, penalty = sequence.output.max_target_tokens, sequence.output.length_penalty
        return Sequence(sequence.source_ids, Search(limit, length_penalty=penalty))
    return sequence


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("leaving", [0.0, 0.03, 0.3])
def test_every_sequence_gets_the_answer_of_the_slow_search_whoever_comes_and_goes(seed: int, leaving: float) -> None:
    rng = np.random.default_rng(seed)
    greedy_rows, beam_rows = CountingRows(SLOTS), CountingRows(SLOTS)
    everybody = [some_sequence(rng) for _ in range(24)]
    abandoned = search_all(both(greedy_rows, beam_rows), SLOTS, everybody, rng, leaving)
    for sequence in everybody:
        if sequence not in abandoned:
            assert sequence.output.best() == expected(sequence)
    assert greedy_rows.most_hypotheses == 1, "no source in greedy search's rows ever has a second hypothesis"


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("leaving", [0.0, 0.1])
def test_greedy_search_alone_gets_the_answers_of_the_slow_search(seed: int, leaving: float) -> None:
    rng = np.random.default_rng(seed)
    everybody = [random_sequence(rng) for _ in range(24)]
    everybody = [Sequence(s.source_ids, Search(s.output.max_target_tokens)) for s in everybody]
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
        search.prefill(0, [sequence])
        while not sequence.finished:
            search.step([sequence])
        found += sequence.output.best()
    assert found[0] == found[1]
    assert (found[0].token_ids, found[0].finish_reason) == (script, reason)


def test_a_step_counts_the_rows_of_both() -> None:
    search = both(Rows(SLOTS), Rows(SLOTS))
    everybody = [Sequence([4, EOS], Search(9, beam_size), slots=beam_size) for beam_size in (4, 1, 1)]
    search.prefill(0, everybody)
    assert search.step(everybody) == [2, 1]
    assert search.step(everybody) == [2, 4 - len(everybody[0].output.finished)]


@pytest.mark.parametrize("kind", ["greedy", "beams"])
@pytest.mark.parametrize("name", ["encode", "step", "move"])
def test_after_a_failed_call_the_next_sequences_are_searched_as_ever(
    kind: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("told to fail")

    rng = np.random.default_rng(2)
    rows = {"greedy": Rows(SLOTS), "beams": Rows(SLOTS)}
    search = both(rows["greedy"], rows["beams"])
    running = [Sequence([4, EOS], Search(40, size), slots=size) for size in (1, 2, 1, 2)]
    newcomers = [Sequence([4, EOS], Search(40, size), slots=size) for size in (1, 2)]
    calls: dict[str, Callable[[], object]] = {
        "encode": lambda: search.prefill(4, newcomers),
        "step": lambda: search.step(running),
        "move": lambda: search.move(3, 0 if kind == "greedy" else 1),
    }
    search.prefill(0, running)
    search.step(running)
    with monkeypatch.context() as patch:
        patch.setattr(rows[kind], name, fail)
        with pytest.raises(RuntimeError, match="told to fail"):
            calls[name]()
    everybody = [some_sequence(rng) for _ in range(8)]
    search_all(search, SLOTS, everybody, rng)
    assert [sequence.output.best() for sequence in everybody] == [expected(sequence) for sequence in everybody]


def test_neighbours_change_no_bit_of_an_answer(translator_artifact: Artifact) -> None:
    """Whatever they are: cross-attention of one query and of several have different kernels."""
    rng = np.random.default_rng(6)
    graphs = TranslationGraphs(translator_artifact, Provider("cpu", threads=1))
    sources = [[*rng.integers(4, V, int(length)).tolist(), EOS] for length in rng.integers(1, 40, 24)]
    beam_sizes = rng.choice([1, 1, 2, MAX_BEAM_SIZE], len(sources)).tolist()
    together = [Sequence(s, Search(30, size), slots=size) for s, size in zip(sources, beam_sizes, strict=True)]
    search_all(searches(graphs, SLOTS), SLOTS, together, rng)
    for sequence in together:
        asked = sequence.output
        alone = Sequence(sequence.source_ids, Search(30, asked.beam_size), slots=asked.beam_size)
        search_all(searches(graphs, SLOTS), SLOTS, [alone], rng)
        assert alone.output.best() == asked.best(), "log-probabilities are compared to the last bit"
