"""Which models are asked to be unloaded, and when another one may be loaded."""

import os

import pytest

from service.worker.budget import MEMORY_FACTOR, Budget


@pytest.fixture
def budget() -> Budget:
    """100 bytes for six models of 27 bytes: a, c and e belong to the first worker, b, d and f to the second."""
    return Budget(100, 2, dict.fromkeys("abcdef", 10))


def load(budget: Budget, worker: int, *models: str, measured: int = 30) -> None:
    """Load models and use them, in this order."""
    for model in models:
        assert budget.reserve(model)
        budget.end_loading(model, measured)
        budget.set_growth(worker, None)
        budget.note_use(model)


def test_each_model_has_one_worker(budget: Budget) -> None:
    assert [budget.models(worker) for worker in (0, 1)] == [["a", "c", "e"], ["b", "d", "f"]]


def test_where_there_is_no_room_those_are_asked_that_were_not_used_for_the_longest_time(budget: Budget) -> None:
    load(budget, 1, "b", "d")
    load(budget, 0, "a")
    budget.note_use("b")
    assert not budget.reserve("c")
    assert [budget.models_to_unload(worker) for worker in (0, 1)] == [[], ["d"]]
    assert not budget.reserve("c"), "it is not unloaded yet, and no other one is asked"
    assert [budget.models_to_unload(worker) for worker in (0, 1)] == [[], ["d"]]
    budget.end_unloading("d")
    budget.set_growth(1, None)
    assert budget.reserve("c")


def test_a_model_with_requests_is_kept_and_the_next_one_is_asked(budget: Budget) -> None:
    load(budget, 0, "a", "c", "e")
    assert not budget.reserve("b")
    assert budget.models_to_unload(0) == ["a"]
    budget.keep("a")
    assert not budget.reserve("b")
    assert budget.models_to_unload(0) == ["c"]


def test_a_worker_is_woken_when_it_is_asked_to_unload(budget: Budget) -> None:
    load(budget, 0, "a", "c", "e")
    with pytest.raises(BlockingIOError):
        os.read(budget.wakeup_fd(0), 1)
    budget.reserve("b")
    assert os.read(budget.wakeup_fd(0), 1)
    with pytest.raises(BlockingIOError):
        os.read(budget.wakeup_fd(1), 1)


def test_a_model_counts_while_it_is_being_loaded(budget: Budget) -> None:
    assert [budget.reserve(model) for model in "abcd"] == [True, True, True, False]


def test_a_worker_that_has_grown_beyond_the_budget_has_models_unloaded(budget: Budget) -> None:
    load(budget, 0, "a", "c")
    budget.set_growth(0, 125)
    assert budget.models_to_unload(0) == ["a"]


def test_any_model_may_be_loaded_while_no_other_one_is(budget: Budget) -> None:
    budget.set_growth(0, 1000)
    assert budget.reserve("b")
    assert not budget.reserve("d")


def test_a_model_counts_as_measured_but_as_its_files_at_least(budget: Budget) -> None:
    assert budget.size("a") == int(MEMORY_FACTOR * 10)
    for measured, size in ((40, 40), (3, 10)):
        load(budget, 0, "a", measured=measured)
        assert budget.size("a") == size
        budget.end_unloading("a")


def test_a_new_process_has_loaded_nothing(budget: Budget) -> None:
    load(budget, 0, "a", "c", "e")
    assert not budget.reserve("b")
    budget.reset(0)
    assert budget.models_to_unload(0) == []
    assert all(budget.reserve(model) for model in "bdf")
