import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.base.errors import QueueFull
from service.engine.scheduler import ADMISSION_WINDOW, BURST, MAX_CLIENTS, STRIDE, Scheduler, Sequence


def scheduler(
    max_rows: int = 4, max_waiting: int = 100, prefill_padded_tokens: int = 100, max_padding: float = math.inf
) -> Scheduler[None]:
    return Scheduler(max_rows, max_waiting, prefill_padded_tokens, max_padding)


def of_lengths(*lengths: int, n_rows: int = 1) -> list[Sequence[None]]:
    return [Sequence([1] * length, None, n_rows=n_rows) for length in lengths]


def nowhere(_source_place: int, _target_place: int, _sequence: Sequence[None]) -> None:
    """Copy nothing: these sequences have no state."""


def lengths_of(sequences: list[Sequence[None]]) -> list[int]:
    return [len(sequence.source_ids) for sequence in sequences]


def test_admission_takes_the_waiting_in_order_while_rows_are_free() -> None:
    s = scheduler(max_rows=2)
    first, second, third = of_lengths(3, 3, 3)
    s.add([first, second, third])
    s.running.extend(s.admit())
    assert s.running == [first, second]
    assert s.waiting == [third]
    assert s.admit() == []


def test_admission_stops_at_the_budget_of_padded_tokens() -> None:
    s = scheduler(prefill_padded_tokens=20)
    s.add(of_lengths(10, 9, 10))  # 2 x 10 = 20, 3 x 10 = 30
    assert lengths_of(s.admit()) == [10, 10]


def test_a_target_that_is_read_too_counts_where_it_is_longer() -> None:
    s = scheduler(prefill_padded_tokens=20)
    s.add([Sequence([1, 1], None, n_target=10), Sequence([1, 1, 1], None), Sequence([1, 1], None, n_target=11)])
    assert [sequence.length for sequence in s.admit()] == [10]
    assert [sequence.length for sequence in s.admit()] == [3]
    assert [sequence.length for sequence in s.admit()] == [11]


def test_a_source_longer_than_the_budget_is_admitted_alone() -> None:
    s = scheduler(prefill_padded_tokens=20)
    s.add(of_lengths(50, 1))
    assert lengths_of(s.admit()) == [50]


def test_admission_stops_at_the_rows_that_are_free() -> None:
    s = scheduler(max_rows=8)
    wide, narrow = of_lengths(3, 3, 3, n_rows=3), of_lengths(3)
    s.add([*wide, *narrow])
    assert s.admit() == wide[:2]
    s.running.extend(wide[:2])
    assert s.admit() == []


def test_the_longest_waiting_is_joined_by_those_of_its_length() -> None:
    s = scheduler(max_rows=3)
    s.add(of_lengths(10, 40, 2, 11, 9, 10))
    assert lengths_of(s.admit()) == [10, 10, 11]
    assert lengths_of(s.waiting) == [40, 2, 9], "the rest keep their order"


def test_newcomers_are_read_together_until_it_would_be_too_much_padding() -> None:
    newcomers = of_lengths(6, 8, 10, 13, 16, 25)
    passes = {n: [lengths_of(batch) for batch in scheduler(max_padding=n).batches(newcomers)] for n in (8, 0, math.inf)}
    assert passes[8] == [[6, 8, 10], [13, 16], [25]]
    assert passes[0] == [[6], [8], [10], [13], [16], [25]]
    assert passes[math.inf] == [[6, 8, 10, 13, 16, 25]]
    assert not list(scheduler().batches([]))


@given(st.lists(st.integers(1, 50)), st.integers(0, 40))
def test_no_pass_is_padded_too_much_and_none_is_needless(lengths: list[int], max_padding: int) -> None:
    newcomers = of_lengths(*sorted(lengths))
    passes = list(scheduler(max_padding=max_padding).batches(newcomers))
    assert [sequence for batch in passes for sequence in batch] == newcomers
    for batch, following in zip(passes, [*passes[1:], None], strict=False):
        assert padding_of(batch) <= max_padding
        assert following is None or padding_of([*batch, following[0]]) > max_padding


def padding_of(batch: list[Sequence[None]]) -> int:
    return sum(max(lengths_of(batch)) - length for length in lengths_of(batch))


def test_only_the_next_in_line_may_join() -> None:
    s = scheduler(max_rows=2, prefill_padded_tokens=1000)
    s.add(of_lengths(10, *[30] * (ADMISSION_WINDOW - 1), 10))
    assert lengths_of(s.admit()) == [10, 30]


def test_narrow_searches_never_keep_a_wide_one_waiting() -> None:
    s = scheduler(max_rows=8)
    (running,) = of_lengths(3)
    s.running.append(running)
    wide = of_lengths(3, n_rows=8)
    s.add([*wide, *of_lengths(3, 3)])
    assert s.admit() == []
    s.evict([running], nowhere)
    assert s.admit() == wide


def test_one_free_row_is_enough_to_encode_as_many_as_all_rows_hold() -> None:
    s = scheduler(max_rows=8)
    s.running.extend(of_lengths(*[3] * 8))
    s.add(of_lengths(*[3] * 20))
    assert s.admit() == []
    s.running.pop()
    assert lengths_of(s.admit()) == [3] * 8
    assert len(s.waiting) == 12


def test_wide_searches_are_encoded_as_many_as_the_rows_hold() -> None:
    s = scheduler(max_rows=8)
    s.add(of_lengths(*[3] * 20, n_rows=3))
    assert len(s.admit()) == 2


def test_a_full_queue_refuses_with_its_numbers_and_takes_nothing() -> None:
    s = scheduler(max_waiting=2)
    s.add(of_lengths(1, 1, 1))
    with pytest.raises(QueueFull, match=r"3 sequences .* 2$"):
        s.add(of_lengths(1))
    assert len(s.waiting) == 3


def test_withdrawing_forgets_only_those_named() -> None:
    s = scheduler()
    kept, gone = of_lengths(1, 1)
    s.add([kept, gone])
    s.withdraw([gone])
    assert s.waiting == [kept]


@given(st.integers(0, 8).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, max(0, n - 1))))))
def test_moves_keep_the_rows_of_the_remaining_compact(case: tuple[int, set[int]]) -> None:
    n, leaving_places = case
    s = scheduler(max_rows=8)
    running = of_lengths(*[1] * n)
    s.running.extend(running)
    rows = dict(enumerate(running))  # what a cache holds, row by row

    def move(source: int, target: int, moved: Sequence[None]) -> None:
        assert rows[source] is moved
        rows[target] = rows[source]

    s.evict([running[place] for place in leaving_places if place < n], move)

    assert set(s.running) == {sequence for place, sequence in enumerate(running) if place not in leaving_places}
    assert [rows[place] for place in range(len(s.running))] == s.running


@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(1, 8)), max_size=40),
    st.integers(8, 20),
    st.integers(1, 60),
    st.randoms(use_true_random=False),
)
def test_nobody_starves_and_no_admission_is_too_large(
    work: list[tuple[int, int]], max_rows: int, budget: int, random: Random
) -> None:
    """Each admission takes the sequence that has waited longest, so that none starves."""
    s = scheduler(max_rows=max_rows, prefill_padded_tokens=budget)
    everybody = [Sequence([1] * length, None, n_rows=width) for length, width in work]
    s.add(everybody)
    served: list[Sequence[None]] = []
    encoded: list[Sequence[None]] = []
    while s.waiting or s.running or encoded:
        first = s.waiting[0] if s.waiting else None
        admitted = [] if encoded else s.admit()
        if admitted:
            assert first in admitted
            assert lengths_of(admitted) == sorted(lengths_of(admitted)), "the shortest come first"
            assert len(admitted) == 1 or max(lengths_of(admitted)) * len(admitted) <= budget
        else:
            assert s.running or encoded, "with nobody running somebody is admitted"
        encoded += admitted
        while encoded and encoded[0].n_rows <= s.n_free_rows:
            s.running.append(encoded.pop(0))
        served += admitted
        assert sum(sequence.n_rows for sequence in s.running) <= max_rows
        s.evict(random.sample(s.running, random.randint(min(1, len(s.running)), len(s.running))), nowhere)
    assert len(served) == len(everybody)
    assert set(served) == set(everybody)


def test_a_large_request_lets_later_ones_pass_and_still_goes_on() -> None:
    s = scheduler(max_rows=1, max_waiting=1000)
    large = of_lengths(*[3] * 1000)
    s.add(large)
    admitted: list[Sequence[None]] = []

    def admit_one() -> Sequence[None]:
        (sequence,) = s.admit()
        admitted.append(sequence)
        return sequence

    first = [admit_one() for _ in range(BURST // 2)]
    assert first == large[: BURST // 2]
    (small,) = of_lengths(3)
    s.add([small])
    while admit_one() is not small:
        pass
    assert len(admitted) == BURST + 1, "it is after the rest of those that came together"
    for _ in range(400):  # somebody new for each that is admitted
        s.add(of_lengths(3))
        admit_one()
    share = len(set(admitted[-400:]) & set(large)) / 400
    assert share == pytest.approx(1 / (STRIDE + 1), abs=0.01)


def test_a_large_request_that_was_alone_goes_on_when_others_come() -> None:
    s = scheduler(max_rows=1, max_waiting=10_000)
    large = of_lengths(*[3] * 3000)
    s.add(large)
    for _ in range(2000):
        s.admit()
    admitted: list[Sequence[None]] = []
    for _ in range(400):  # somebody new for each that is admitted
        s.add(of_lengths(3))
        admitted += s.admit()
    assert len(set(admitted) & set(large)) / 400 == pytest.approx(1 / (STRIDE + 1), abs=0.01)


def test_background_sequences_let_others_pass_from_the_first_on() -> None:
    s = scheduler(max_rows=1, max_waiting=1000)
    (whole,) = of_lengths(3)
    s.add([*(Sequence([1] * 3, None, background=True) for _ in range(40)), whole])
    assert s.admit() == [whole]
    for _ in range(5):
        s.admit()
        (small,) = of_lengths(3)
        s.add([small])
        assert s.admit() == [small]


@pytest.mark.slow
@given(st.lists(st.integers(1, 200), min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_everybody_is_admitted_whatever_comes_later(sizes: list[int], random: Random) -> None:
    s = scheduler(max_rows=3, max_waiting=10**6)
    pending = [of_lengths(*(random.randint(1, 9) for _ in range(size))) for size in sizes]
    everybody = {sequence for request in pending for sequence in request}
    admitted: list[Sequence[None]] = []
    while pending or s.waiting:
        if pending and (not s.waiting or random.random() < 0.1):
            s.add(pending.pop())
        admitted += s.admit()
    assert set(admitted) == everybody
    assert len(admitted) == len(everybody)


def test_a_request_behind_many_sequences_of_another_is_not_refused_for_them() -> None:
    s = scheduler(max_waiting=2 * BURST)
    s.add(of_lengths(*[1] * 1000))
    s.add(of_lengths(1))
    with pytest.raises(QueueFull, match=r"1001 sequences .* 128$"):
        s.add(of_lengths(*[1] * 1000))
    assert len(s.waiting) == 1001


def of_client(client: str, n: int, length: int = 1) -> list[Sequence[None]]:
    return [Sequence([1] * length, None, client=client) for _ in range(n)]


def test_a_client_with_many_requests_lets_others_pass() -> None:
    s = scheduler(max_rows=1, max_waiting=10_000)
    for _ in range(10 * BURST):
        s.add(of_client("flood", 1))
    served = 0
    while served < 2 * BURST:
        served += len(s.admit())
    other = of_client("other", 1)
    assert s.n_before(other) == s.n_before() <= STRIDE
    s.add(other)
    admitted = [s.admit()[0] for _ in range(STRIDE + 2)]
    assert other[0] in admitted


def test_one_client_alone_is_served_in_order() -> None:
    s = scheduler(max_rows=3, max_waiting=10_000)
    sent = [of_client("only", 1) for _ in range(5 * BURST)]
    admitted: list[Sequence[None]] = []
    for i, request in enumerate(sent):
        s.add(request)
        if i % 7 == 0:
            admitted += s.admit()
    while s.waiting:
        admitted += s.admit()
    assert admitted == [sequence for request in sent for sequence in request]


def test_many_clients_are_served_in_order_of_arrival() -> None:
    s = scheduler(max_rows=1, max_waiting=10_000)
    sent = [of_client(f"client {i % 300}", 1) for i in range(600)]
    for request in sent:
        s.add(request)
    assert [s.admit()[0] for _ in sent] == [sequence for request in sent for sequence in request]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 80)), max_size=12))
def test_the_backlog_of_a_request_is_known_before_it_is_queued(requests: list[tuple[str, int]]) -> None:
    s = scheduler(max_rows=5, max_waiting=10_000)
    for client, n in requests:
        sequences = of_client(client, n)
        n_before = s.n_before(sequences)
        s.add(sequences)
        own = set(sequences)
        assert sum(one not in own for one in s.waiting[: s.waiting.index(sequences[-1])]) == n_before
        s.admit()


def test_clients_that_have_their_burst_again_are_forgotten() -> None:
    s = scheduler(max_rows=MAX_CLIENTS, max_waiting=10 * MAX_CLIENTS, prefill_padded_tokens=10**6)
    for i in range(MAX_CLIENTS):
        s.add(of_client(str(i), 1))
    s.admit()
    s.add(of_client("last", 1))
    assert [*s._due] == ["last"]


def test_a_large_request_of_a_client_with_much_work_keeps_its_order() -> None:
    """What came after the first sentences overtook them, and the request seemed to wait for less than it did."""
    s = scheduler(max_waiting=10_000)
    for _ in range(3):
        s.add(of_client("flood", BURST - 10))
    large = of_client("flood", 2 * BURST)
    s.add(large)
    turns = [sequence.turn for sequence in large]
    assert turns == sorted(turns)
    assert s.n_before(of_client("flood", 1)) <= s.n_before(of_client("flood", 2 * BURST))
