"""Beam search over a fake decoder."""

import math
import pickle
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from manifest.schema import MAX_BEAM_SIZE
from service.base.contract import AnyInts, BeamLayout, Candidates, EncodedSource, Ints
from service.engine.beam_search import BeamSearch
from service.engine.scheduler import Sequence
from service.engine.search import Hypothesis, Search, is_runaway
from tests.service.fakes import prefill, search_all
from tests.service.oracle import EOS, beam_search, goes_round

Array = NDArray[Any]

BOS = 2
V = 13
RUBBISH = -1


@cache
def next_log_probs(source: tuple[int, ...], target: tuple[int, ...]) -> Array:
    """Return the log-probability of every token (V) by a random model. Some sources make it repeat itself."""
    logits = 2 * np.random.default_rng([*source, V, *target]).standard_normal(V)
    logits[EOS] += (1.0, -1.0, -4.0)[source[0] % 3]
    if source[0] % 3 == 2:
        logits[5 + len(target) % 3] += 8
    log_probs: Array = (logits - np.log(np.exp(logits).sum())).astype(np.float32)
    return log_probs


def encoded(sources: list[Ints]) -> list[EncodedSource]:
    """Return sources for a decoder that reads no keys."""
    nothing = np.zeros((0, len(sources), 0, 0), np.float32)
    return [EncodedSource(source, nothing, row) for row, source in enumerate(sources)]


class Rows:
    """Checks the contract of `DecoderRows`: a cache holds tokens, and rows that are not in use hold rubbish."""

    def __init__(self, n_rows: int, n_tokens: int = 128) -> None:
        self.n_rows = n_rows
        self._sources: list[tuple[int, ...] | None] = [None] * n_rows
        self._tokens = np.full((n_rows, n_tokens), RUBBISH)

    def encode(self, sources: list[Ints]) -> list[EncodedSource]:
        return encoded(sources)

    def enter(self, first_place: int, sources: list[EncodedSource]) -> None:
        assert None not in self._sources[:first_place], "places are in use without gaps"
        n = first_place + len(sources)
        entering = [tuple(source.token_ids) for source in sources]
        self._sources[first_place:] = [*entering, *[None] * (len(self._sources) - n)]

    def step(
        self, token_ids: AnyInts, positions: AnyInts, length: int, k: int, beams: BeamLayout | None = None
    ) -> Candidates:
        R = len(token_ids)
        rows_of_sources, places_of_rows = beams or BeamLayout([[row] for row in range(R)], list(range(R)))
        N, W = np.shape(rows_of_sources)
        assert length == max(positions) + 1
        assert len(positions) == len(places_of_rows) == R
        assert np.ravel(rows_of_sources)[places_of_rows].tolist() == list(range(R))
        assert all(0 <= row < R for rows in rows_of_sources for row in rows)
        self._tokens[R:] = RUBBISH
        self._sources[N:] = [None] * (len(self._sources) - N)
        self._tokens[np.arange(R), positions] = token_ids
        log_probs = np.stack([self._next(row, places_of_rows[row] // W, positions[row]) for row in range(R)])
        best = np.argsort(-log_probs, axis=1)[:, :k]
        return best, np.take_along_axis(log_probs, best, axis=1)

    def copy(self, source_rows: Ints, target_rows: Ints, n_tokens: int) -> None:
        assert not set(source_rows) & set(target_rows), "no row is copied over and copied from"
        assert len(set(target_rows)) == len(target_rows)
        self._tokens[target_rows] = RUBBISH
        self._tokens[target_rows, :n_tokens] = self._tokens[source_rows, :n_tokens]

    def move(self, source_place: int, target_place: int) -> None:
        self._sources[target_place] = self._sources[source_place]

    def _next(self, row: int, place: int, position: int) -> Array:
        source, tokens = self._sources[place], self._tokens[row, : position + 1].tolist()
        assert source is not None, "only sources in use are attended"
        assert tokens[0] == BOS
        assert RUBBISH not in tokens
        return next_log_probs(source, tuple(tokens[1:]))


def random_sequence(rng: np.random.Generator) -> Sequence[Search]:
    beam_size = int(rng.integers(1, MAX_BEAM_SIZE + 1))
    search = Search(
        max_target_tokens=int(rng.integers(1, 45)),
        beam_size=beam_size,
        length_penalty=float(rng.choice([0, 0.6, 1, 2])),
        n_best=int(rng.integers(1, beam_size + 1)),
        beam_threshold=float(rng.choice([0, 0.5, 2, math.inf])),
        stop=rng.choice(["empty", "no_better", "full", "full_no_better"]),
        prefix=tuple(rng.integers(4, V, int(rng.choice([0, 0, 1, 3]))).tolist()),
        once_tokens=tuple(rng.choice(np.arange(4, V), int(rng.choice([0, 0, 1, 4])), replace=False).tolist()),
        scored=bool(rng.integers(2)),
    )
    search.may_end = sum(search.prefix) % 3 == 1
    return Sequence([*rng.integers(4, 100, int(rng.integers(1, 35))).tolist(), EOS], search, n_rows=beam_size)


def expected(sequence: Sequence[Search]) -> list[Hypothesis]:
    """Return the hypotheses that the oracle finds."""
    source, search = tuple(sequence.source_ids), sequence.output
    return beam_search(
        lambda target: next_log_probs(source, tuple(target)),
        len(source),
        search.max_target_tokens,
        search.beam_size,
        search.length_penalty,
        search.n_best,
        search.beam_threshold,
        search.stop,
        search.prefix,
        search.once_tokens,
        search.scored,
        search.may_end,
    )


def search_alone(sequence: Sequence[Search], rows: Any = None) -> list[Hypothesis]:
    """Return a sequence's best hypotheses when no other sequence shares its steps."""
    beams = BeamSearch(rows or Rows(MAX_BEAM_SIZE), BOS, EOS)
    prefill(beams, 0, [sequence])
    while not sequence.finished:
        beams.step([sequence])
    return sequence.output.best()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("leaving", [0.0, 0.03, 0.3])
def test_every_sequence_gets_the_answer_of_the_slow_search_whoever_comes_and_goes(seed: int, leaving: float) -> None:
    rng = np.random.default_rng(seed)
    n_rows = int(rng.integers(MAX_BEAM_SIZE, 24))
    everybody = [random_sequence(rng) for _ in range(20)]
    abandoned = search_all(BeamSearch(Rows(n_rows), BOS, EOS), n_rows, everybody, rng, leaving)
    assert bool(abandoned) == (leaving > 0)
    for sequence in everybody:
        if sequence not in abandoned:
            assert sequence.output.best() == expected(sequence)


def test_the_searches_above_end_in_every_way() -> None:
    rng = np.random.default_rng(0)
    reasons = [hypothesis.finish_reason for _ in range(120) for hypothesis in expected(random_sequence(rng))]
    assert min(reasons.count(reason) for reason in ("eos", "length", "repetition")) > 5


def test_the_log_probability_of_a_hypothesis_is_the_sum_over_its_tokens() -> None:
    rng = np.random.default_rng(1)
    for sequence in (random_sequence(rng) for _ in range(10)):
        search_alone(sequence)
        for hypothesis in sequence.output.finished:
            steps = [
                next_log_probs(tuple(sequence.source_ids), tuple(hypothesis.token_ids[:i]))[token]
                for i, token in enumerate(hypothesis.token_ids)
                if i >= len(sequence.output.prefix)
            ]
            assert hypothesis.log_prob == pytest.approx(sum(map(float, steps)))


def test_a_step_tells_how_many_rows_it_took() -> None:
    wide, narrow = (Sequence([4, EOS], Search(9, beam_size), n_rows=beam_size) for beam_size in (4, 1))
    beams = BeamSearch(Rows(8), BOS, EOS)
    prefill(beams, 0, [wide, narrow])
    assert beams.step([wide, narrow]) == 2, "each begins as one hypothesis"
    finished = len(wide.output.finished)
    assert beams.step([wide, narrow]) == (4 - finished) + 1


@pytest.mark.parametrize("first", [9, 12, 24, 30])
def test_where_a_copy_fails_those_that_run_still_get_their_answers(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hypotheses got the rows of sequences that had left, and kept them when the copy failed: a stranger's cache."""

    def fail(*_: object) -> None:
        raise RuntimeError("told to fail")

    rows = Rows(24)
    beams = BeamSearch(rows, BOS, EOS)
    staying, leaving, newcomer = (Sequence([i, EOS], Search(40, 4, n_best=4), n_rows=4) for i in (first, 7, 5))
    prefill(beams, 0, [staying, leaving])
    beams.step([staying, leaving])
    beams.step([staying, leaving])
    with monkeypatch.context() as patch:
        patch.setattr(rows, "copy", fail)
        prefill(beams, 1, [newcomer])
        with pytest.raises(RuntimeError, match="told to fail"):
            beams.step([staying, newcomer])
    running = [staying, newcomer]
    while running:
        beams.step(running)
        if running[0].finished and len(running) == 2:
            beams.move(1, 0, newcomer)
        running = [sequence for sequence in running if not sequence.finished]
    assert staying.output.best() == expected(staying)
    assert newcomer.output.best() == expected(newcomer)


class ScriptedRows:
    """A decoder that ignores the source: row i follows script i, and the first script is the most probable."""

    def __init__(self, *scripts: list[int]) -> None:
        self.n_rows = 8
        self._scripts = scripts
        self.fed: list[tuple[list[int], list[int]]] = []

    def encode(self, sources: list[Ints]) -> list[EncodedSource]:
        return encoded(sources)

    def enter(self, first_place: int, sources: list[EncodedSource]) -> None:
        pass

    def step(
        self, token_ids: AnyInts, positions: AnyInts, length: int, k: int, beams: BeamLayout | None = None
    ) -> Candidates:
        self.fed.append(([*map(int, token_ids)], [*map(int, positions)]))
        chosen = [[self._scripts[row][position]] * k for row, position in enumerate(positions)]
        return np.array(chosen), np.array([[-0.5 * (position + 1)] * k for position in positions], np.float32)

    def copy(self, source_rows: Ints, target_rows: Ints, n_tokens: int) -> None:
        raise AssertionError("a beam of one stays where it is")

    def move(self, source_place: int, target_place: int) -> None:
        raise AssertionError("not in these tests")


def test_each_row_is_fed_its_own_last_token_at_its_own_position() -> None:
    rows = ScriptedRows([7, 8, 9], [6, 6, 6])
    early, late = (Sequence([5, EOS], Search(9)) for _ in range(2))
    beams = BeamSearch(rows, BOS, EOS)
    prefill(beams, 0, [early])
    beams.step([early])
    prefill(beams, 1, [late])
    beams.step([early, late])
    beams.step([early, late])
    assert rows.fed == [([BOS], [0]), ([7, BOS], [1, 0]), ([8, 6], [2, 1])]


@pytest.mark.parametrize("period", [1, 3, 6])
@pytest.mark.parametrize(("n_source", "n_target"), [(2, 24), (24, 24), (25, 32), (40, 40)])
def test_a_hypothesis_that_goes_round_in_circles_is_ended_as_soon_as_it_is_seen(
    period: int, n_source: int, n_target: int
) -> None:
    circle = [5 + i % period for i in range(200)]
    (found,) = search_alone(Sequence([4] * n_source, Search(200)), ScriptedRows(circle))
    assert (found.token_ids, found.finish_reason) == (circle[:n_target], "repetition")


def test_a_hypothesis_that_only_begins_in_circles_goes_on() -> None:
    script = [*[7, 8] * 11, 9, 10, *[7, 8] * 10, EOS]
    (found,) = search_alone(Sequence([5, EOS], Search(200)), ScriptedRows(script))
    assert (found.token_ids, found.finish_reason) == (script, "eos")


@pytest.mark.parametrize(
    ("token_ids", "n_source", "runaway"),
    [
        ([7] * 24, 5, True),
        ([7] * 23, 5, False),
        ([7] * 24, 25, False),
        ([5, 6, 7, 8, 9, 10] * 4, 5, True),
        ([5, 6, 7, 8, 9, 10, 11] * 4, 5, False),  # three and a half pieces
        ([1, 2, 3, *[7] * 24], 5, True),
        ([*[7] * 24, 8], 5, False),
        ([*range(5, 12)] * 4, 28, True),
    ],
)
def test_four_equal_pieces_as_long_as_the_source_are_a_circle(
    token_ids: list[int], n_source: int, runaway: bool
) -> None:
    assert is_runaway(token_ids, n_source) is runaway
    assert goes_round(token_ids, n_source) is runaway


def test_hypotheses_that_ended_by_themselves_come_first_then_by_penalized_log_probability() -> None:
    cut = Hypothesis([5, 6], -0.1, "length")
    short, long = Hypothesis([5, EOS], -2.0, "eos"), Hypothesis([5, 6, 7, EOS], -3.0, "eos")
    circle = Hypothesis([5] * 24, -0.1, "repetition")
    ended = [cut, circle, short, long]
    assert Search(9, 4, length_penalty=0.0, n_best=4, finished=ended).best() == [short, long, cut, circle]
    assert Search(9, 4, length_penalty=1.0, n_best=3, finished=ended).best() == [long, short, circle]


def test_another_process_gets_the_best_hypotheses_in_the_same_order() -> None:
    found = [Hypothesis([5, EOS], score, "eos") for score in (-3.0, -1.0, -4.0, -2.0)]
    search = Search(9, 4, 0.5, 2, 1.5, "full", (7,), (5, 6), found, may_end=True, n_next_tokens=3)
    sent = Search.of(pickle.loads(pickle.dumps(search.values())))
    assert sent.best() == sent.finished == search.best() == [found[1], found[3]]
    assert {**vars(sent), "finished": found} == vars(search)
