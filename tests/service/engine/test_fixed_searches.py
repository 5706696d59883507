"""Searches in fixed places over a fake decoder: every sequence gets the answer of the slow search."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import DataObject, booleans, data, integers, lists

from manifest.schema import MAX_BEAM_SIZE
from service.base.contract import IntArray
from service.engine.beam_search import BeamSearch
from service.engine.engine import Failed, Finished, Outcome, Ran
from service.engine.fixed_beam_search import WIDTHS
from service.engine.fixed_engine import MAX_STEPS_WAITED, FixedEngine
from service.engine.fixed_greedy_search import STEPS_TOGETHER
from service.engine.greedy_search import GreedySearch
from service.engine.places import are_runaway, step_sizes
from service.engine.scheduler import Sequence
from service.engine.search import WATCHED_CANDIDATES, Search, is_runaway
from tests.service.engine.fixed_rows import KINDS, Array, Rows, fixed_engine, search_all, searched_by
from tests.service.engine.test_beam_search import BOS, V, expected, next_log_probs, random_sequence
from tests.service.engine.test_beam_search import Rows as CompactRows
from tests.service.fakes import prefill
from tests.service.fakes import search_all as compact_search_all
from tests.service.oracle import EOS

PAD = 0
N_ROWS = 24


def engine_of(kind: str, rows: Rows, n_rows: int = N_ROWS) -> FixedEngine[Search]:
    return fixed_engine(kind, rows, n_rows, (BOS, EOS, PAD), prefill_padded_tokens=10_000)


def some_sequences(kind: str, rng: np.random.Generator, n: int = 20) -> list[Sequence[Search]]:
    return searched_by(kind, [random_sequence(rng) for _ in range(n)])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("leaving", [0.0, 0.03, 0.3])
def test_every_sequence_gets_the_answer_of_the_slow_search_whoever_comes_and_goes(
    kind: str, seed: int, leaving: float
) -> None:
    rng = np.random.default_rng(seed)
    everybody = some_sequences(kind, rng)
    rows = Rows(N_ROWS, N_ROWS)
    gone = search_all(engine_of(kind, rows), everybody, rng, leaving)
    assert bool(gone) == (leaving > 0)
    for sequence in everybody:
        if sequence not in gone:
            assert sequence.output.best() == expected(sequence)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_every_target_begins_with_its_prefix_as_in_compact_places(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    everybody = some_sequences(kind, rng)
    for sequence in everybody:
        sequence.output.prefix = tuple(rng.integers(3, V, int(rng.integers(0, 6))).tolist())
    search_all(engine_of(kind, Rows(N_ROWS, N_ROWS)), everybody, rng)
    for sequence in everybody:
        alone = Sequence(sequence.source_ids, replace(sequence.output, finished=[]), sequence.n_rows)
        compact = (BeamSearch if kind.startswith("beam") else GreedySearch)(CompactRows(MAX_BEAM_SIZE), BOS, EOS)
        prefill(compact, 0, [alone])
        while not alone.finished:
            compact.step([alone])
        assert sequence.output.best() == alone.output.best()
        assert all(tuple(h.token_ids[: len(alone.output.prefix)]) == alone.output.prefix for h in alone.output.best())


@pytest.mark.parametrize("kind", ["greedy", "greedy ahead", "compact"])
@pytest.mark.parametrize("seed", range(4))
def test_the_tokens_behind_a_prefix_are_recorded_whatever_shares_the_steps(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    everybody = searched_by("greedy", [random_sequence(rng) for _ in range(20)])
    for sequence in everybody[::2]:
        prefix = tuple(rng.integers(4, V, int(rng.integers(0, 6))).tolist())
        sequence.output = Search(len(prefix) + 1, prefix=prefix, may_end=True, n_next_tokens=int(rng.integers(1, V)))
    if kind == "compact":
        compact_search_all(GreedySearch(CompactRows(N_ROWS), BOS, EOS), N_ROWS, everybody, rng)
    else:
        search_all(engine_of(kind, Rows(N_ROWS, N_ROWS)), everybody, rng)
    for sequence in everybody:
        [hypothesis], n = sequence.output.best(), sequence.output.n_next_tokens
        log_probs = next_log_probs(tuple(sequence.source_ids), sequence.output.prefix)
        assert [log_prob for _, log_prob in hypothesis.next_tokens] == sorted(log_probs.tolist(), reverse=True)[:n]
        assert all(log_probs[token] == log_prob for token, log_prob in hypothesis.next_tokens)


class RowsWithoutNumbers(Rows):
    """Rows whose log-probabilities are no numbers for sources with the token BAD, from their third token on."""

    BAD = 101

    def _next(self, row: int, place: int, position: int) -> Array:
        found = super()._next(row, place, position)
        return np.full_like(found, np.nan) if position >= 2 and self.BAD in (self._sources[place] or ()) else found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_a_sequence_without_numbers_fails_alone(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    everybody = some_sequences(kind, rng)
    bad = [Sequence([RowsWithoutNumbers.BAD, EOS], Search(40, s.n_rows), n_rows=s.n_rows) for s in everybody[:3]]
    gone = search_all(engine_of(kind, RowsWithoutNumbers(N_ROWS, N_ROWS)), [*everybody, *bad], rng)
    assert gone == {sequence for sequence in bad if sequence.failure is not None}
    assert gone
    for sequence in everybody:
        assert sequence.output.best() == expected(sequence)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("call", ["encode", "launch", "fetch", "copy"])
def test_after_a_failed_call_those_that_come_next_are_searched_as_ever(kind: str, call: str) -> None:
    if kind.startswith("greedy") and call == "copy":
        pytest.skip("greedy search copies nothing")
    rng = np.random.default_rng(2)
    rows = Rows(N_ROWS, N_ROWS)
    engine = engine_of(kind, rows)
    first = some_sequences(kind, rng, 6)
    for sequence in first:
        sequence.output.max_target_tokens = 40
    engine.scheduler.add(first)
    outcomes: list[Outcome[Search]] = []
    for _ in range(2):
        engine.step(outcomes.append)
    running = set(engine.computation.places.running)
    rows.failing = call
    newcomers = some_sequences(kind, rng, 6)
    engine.scheduler.add(newcomers)
    while not any(isinstance(outcome, Failed) for outcome in outcomes):
        engine.step(outcomes.append)
    rows.failing = None
    failed = {sequence for outcome in outcomes if isinstance(outcome, Failed) for sequence in outcome.sequences}
    assert failed <= {*first, *newcomers}
    if call == "encode":
        assert not failed & running, "those that run go on"
    rest = [sequence for sequence in (*first, *newcomers) if sequence not in failed]
    while engine.scheduler.waiting or engine.n_running:
        engine.step(outcomes.append)
    told = [s for outcome in outcomes if isinstance(outcome, Finished | Failed) for s in outcome.sequences]
    assert len(told) == len({*first, *newcomers}) == len(set(told)), "each is told once"
    everybody = some_sequences(kind, rng, 8)
    search_all(engine, everybody, rng)
    for sequence in (*rest, *everybody):
        assert sequence.output.best() == expected(sequence)


@pytest.mark.parametrize("kind", KINDS)
def test_a_sequence_that_cannot_be_read_fails_alone(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Rows(N_ROWS, N_ROWS)
    engine = engine_of(kind, rows)
    encode = rows.encode

    def fail_at_seven(places: IntArray, sources: list[list[int]]) -> None:
        if [7, EOS] in sources:
            raise RuntimeError("told to fail")
        encode(places, sources)

    monkeypatch.setattr(rows, "encode", fail_at_seven)
    everybody = [Sequence([first, EOS], Search(9)) for first in (5, 7, 6)]
    assert search_all(engine, everybody, np.random.default_rng(0)) == {everybody[1]}
    assert all(sequence.output.best() == expected(sequence) for sequence in (everybody[0], everybody[2]))


@pytest.mark.parametrize("kind", KINDS)
def test_log_probabilities_that_are_no_numbers_are_an_error_of_those_that_run(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = Rows(N_ROWS, N_ROWS)
    engine = engine_of(kind, rows)
    fetch = rows.fetch
    broken = True

    def nan_where_nobody_is() -> tuple[IntArray, Array]:
        token_ids, log_probs = fetch()
        log_probs[:, 0 if broken else 1 :] = math.nan
        return token_ids, log_probs

    monkeypatch.setattr(rows, "fetch", nan_where_nobody_is)
    unlucky, lucky = Sequence([5, EOS], Search(9)), Sequence([5, EOS], Search(9))
    assert search_all(engine, [unlucky], np.random.default_rng(0)) == {unlucky}
    broken = False
    assert search_all(engine, [lucky], np.random.default_rng(0)) == set()
    assert lucky.output.best() == expected(lucky)


@pytest.mark.parametrize("kind", KINDS)
def test_no_shape_is_new_after_the_first_probe(kind: str) -> None:
    """With and without tokens to watch for: a step that reads their probabilities has more candidates."""
    rows = Rows(72, 72)
    engine = engine_of(kind, rows, 72)
    engine.probe()
    probed = set(rows.shapes)
    n_kinds = {"greedy": 2, "greedy ahead": 3}.get(kind, 2 * len(WIDTHS))
    assert len(probed) == n_kinds * len(step_sizes(72))
    everybody = some_sequences(kind, np.random.default_rng(0), 200)
    search_all(engine, everybody, np.random.default_rng(0), leaving=0.1)
    assert any(k == WATCHED_CANDIDATES for *_, k in rows.shapes)
    assert rows.shapes == probed


@pytest.mark.parametrize("kind", KINDS)
def test_a_later_probe_runs_one_shape(kind: str) -> None:
    rows = Rows(72, 72)
    engine = engine_of(kind, rows, 72)
    engine.probe()
    rows.shapes.clear()
    rows.failing = "warm_up"
    engine.probe()
    assert len(rows.shapes) == 1


@given(data())
def test_runaway_targets_are_those_that_the_slow_test_finds(values: DataObject) -> None:
    lengths = np.array(values.draw(lists(integers(1, 60), min_size=1, max_size=6)))
    tokens = integers(5, 6)
    targets = np.array([[*values.draw(lists(tokens, min_size=60, max_size=60))] for _ in lengths])
    period = values.draw(integers(1, 9))
    targets[:, period:] = np.where(values.draw(booleans()), targets[:, :-period], targets[:, period:])
    n_sources = np.array(values.draw(lists(integers(1, 50), min_size=len(lengths), max_size=len(lengths))))
    wanted = [is_runaway(t[:n].tolist(), s) for t, n, s in zip(targets, lengths, n_sources.tolist(), strict=True)]
    assert are_runaway(targets, lengths, n_sources).tolist() == wanted


class EndlessRows(Rows):
    """A decoder whose targets repeat with a period too long to be detected."""

    def _next(self, row: int, place: int, position: int) -> Array:
        log_probs = np.full(V, -9.0, np.float32)
        log_probs[5 + position % 7] = 0
        return log_probs


class Waiting:
    """An engine whose sequences run for long, while others wait."""

    def __init__(self, n_running: int) -> None:
        self.engine = engine_of("greedy", EndlessRows(N_ROWS, N_ROWS))
        self.add(n_running)
        self.step()
        assert self.engine.n_running == n_running

    def add(self, n: int) -> None:
        self.engine.scheduler.add([Sequence([6, EOS], Search(100)) for _ in range(n)])

    def step(self) -> None:
        self.engine.step(lambda outcome: None)


@pytest.mark.parametrize(
    ("n_running", "n_waiting", "enter"), [(0, 1, True), (8, 5, False), (8, 6, True), (14, 99, False)]
)
def test_newcomers_enter_when_they_are_three_quarters_of_the_running(
    n_running: int, n_waiting: int, enter: bool
) -> None:
    waiting = Waiting(n_running)
    waiting.add(n_waiting)
    waiting.step()
    assert (waiting.engine.n_running > n_running) == enter


@pytest.mark.parametrize(("n_running", "is_full"), [(8, False), (N_ROWS, True)])
def test_an_engine_is_full_if_newcomers_find_no_place(n_running: int, is_full: bool) -> None:
    waiting = Waiting(n_running)
    assert not waiting.engine.is_full
    waiting.add(1)
    assert waiting.engine.is_full == is_full


def test_newcomers_do_not_wait_for_ever() -> None:
    waiting = Waiting(8)
    waiting.add(1)
    for _ in range(MAX_STEPS_WAITED + 1):
        assert waiting.engine.n_running == 8
        waiting.step()
    assert waiting.engine.n_running == 9


def test_a_step_is_launched_before_the_last_one_is_looked_at() -> None:
    """No step is launched ahead while a sequence has a prefix, or may write end of sequence as its first token; then
    several are."""
    rows = EndlessRows(N_ROWS, N_ROWS)
    engine = engine_of("greedy ahead", rows)
    engine.scheduler.add([Sequence([6, EOS], Search(limit, prefix=(7,))) for limit in (3, 12, 12)])
    ahead = []
    while engine.scheduler.waiting or engine.n_running:
        engine.step(lambda outcome: None)
        ahead.append(rows.n_launched - rows.n_fetched)
    assert ahead == [0, 0, 1, 1, 1, 1, 1]
    assert {M for M, *_ in rows.shapes} == {1, STEPS_TOGETHER}


def test_a_step_of_beams_is_launched_before_the_last_one_is_told_of_and_again_for_newcomers() -> None:
    rows = Rows(N_ROWS, N_ROWS)
    engine = engine_of("beam ahead", rows)
    first, second = (Sequence([5, 6, EOS], Search(30, 2), n_rows=2) for _ in range(2))
    engine.scheduler.add([first])
    ahead = []
    while engine.scheduler.waiting or engine.n_running:
        engine.step(lambda outcome: None)
        ahead.append(rows.n_launched - rows.n_fetched)
        if len(ahead) == 2:
            engine.scheduler.add([second])
    assert ahead[:3] == [1, 1, 2], "what was launched without the newcomer is not used"
    assert ahead[-1] == 1, "no step is launched for nobody"
    assert [sequence.output.best() for sequence in (first, second)] == [expected(first)] * 2


def test_a_step_of_beams_has_few_rows_when_few_hypotheses_are_left() -> None:
    sizes = []
    rows = EndlessRows(N_ROWS, N_ROWS)
    engine = engine_of("beam", rows)
    beams = [(3, math.inf), (9, 1.0), (9, 1.0)]  # all hypotheses but one are much less probable
    engine.scheduler.add([Sequence([6, EOS], Search(n, 8, beam_threshold=nats), n_rows=8) for n, nats in beams])

    def tell(outcome: Outcome[Search]) -> None:
        if isinstance(outcome, Ran) and outcome.forward_pass.phase == "decode":
            sizes.append(outcome.forward_pass.rows)

    while engine.scheduler.waiting or engine.n_running:
        engine.step(tell)
    assert sizes == [8, 24, 24, 8, 8, 8, 8, 8, 8]


def test_the_longest_newcomers_take_the_first_places() -> None:
    """They run longest, so a step soon goes over few places."""
    engine = engine_of("greedy", EndlessRows(N_ROWS, N_ROWS))
    engine.scheduler.add([Sequence([6] * n + [EOS], Search(9)) for n in (2, 5, 3)])
    engine.step(lambda outcome: None)
    places = engine.computation.places
    assert [len(places.sequence(place).source_ids) for place in range(3)] == [6, 4, 3]
