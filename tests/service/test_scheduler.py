from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import QueueFull
from service.scheduler import Scheduler, Sequence


def scheduler(slots: int = 4, max_waiting: int = 100, prefill_padded_tokens: int = 100) -> Scheduler[None]:
    return Scheduler(slots, max_waiting, prefill_padded_tokens)


def of_lengths(*lengths: int) -> list[Sequence[None]]:
    return [Sequence([1] * length, None) for length in lengths]


def test_admission_takes_the_waiting_in_order_while_slots_are_free() -> None:
    s = scheduler(slots=2)
    first, second, third = of_lengths(3, 3, 3)
    s.add([first, second, third])
    s.start(s.admit())
    assert s.running == [first, second]
    assert list(s.waiting) == [third]
    assert s.admit() == []


def test_admission_stops_at_the_budget_of_padded_tokens() -> None:
    s = scheduler(prefill_padded_tokens=20)
    s.add(of_lengths(2, 10, 2))  # 1 x 2, 2 x 10 = 20, 3 x 10 = 30
    assert [len(sequence.source_ids) for sequence in s.admit()] == [2, 10]


def test_a_source_longer_than_the_budget_is_admitted_alone() -> None:
    s = scheduler(prefill_padded_tokens=20)
    s.add(of_lengths(50, 1))
    assert [len(sequence.source_ids) for sequence in s.admit()] == [50]


def test_a_full_queue_refuses_with_its_numbers_and_takes_nothing() -> None:
    s = scheduler(max_waiting=2)
    s.add(of_lengths(1, 1, 1))
    with pytest.raises(QueueFull, match="3 sequences wait, the limit is 2"):
        s.add(of_lengths(1))
    assert len(s.waiting) == 3


def test_withdrawing_forgets_only_those_named() -> None:
    s = scheduler()
    kept, gone = of_lengths(1, 1)
    s.add([kept, gone])
    s.withdraw([gone])
    assert list(s.waiting) == [kept]


@given(st.integers(0, 8).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, max(0, n - 1))))))
def test_moves_keep_the_rows_of_the_remaining_compact(case: tuple[int, set[int]]) -> None:
    n, leaving_slots = case
    s = scheduler(slots=8)
    running = of_lengths(*[1] * n)
    s.start(running)
    rows = dict(enumerate(running))  # what a cache holds, row by row

    for move in s.evict([running[slot] for slot in leaving_slots if slot < n]):
        rows[move.target] = rows[move.source]

    assert set(s.running) == {sequence for slot, sequence in enumerate(running) if slot not in leaving_slots}
    assert [rows[slot] for slot in range(len(s.running))] == s.running


@given(st.lists(st.integers(1, 30), max_size=40), st.integers(1, 5), st.integers(1, 60))
def test_everybody_who_waits_is_admitted_once_and_in_order(lengths: list[int], slots: int, budget: int) -> None:
    s = scheduler(slots=slots, prefill_padded_tokens=budget)
    everybody = of_lengths(*lengths)
    s.add(everybody)
    served: list[Sequence[None]] = []
    for _ in count():
        admitted = s.admit()
        if not admitted:
            break
        s.start(admitted)
        served += admitted
        s.evict(admitted)
    assert served == everybody
