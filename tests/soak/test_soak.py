"""A short storm with faults, and an oracle that sees what is wrong."""

import subprocess
import sys
from random import Random

import pytest

from tests.running_service import ROOT
from tests.soak.counts import differences
from tests.soak.faults import killed
from tests.soak.http import Answer, Message
from tests.soak.ledger import Ledger
from tests.soak.leftovers import Census
from tests.soak.oracle import Oracle, Window, comparable
from tests.soak.requests import Needs, Request

TRANSLATION = Request("a text", "native", "/translate", Message("POST", "/translate"))
STATIC = Request("a page", "native", "/", Message("GET", "/"), Needs.SERVER)
SERIES = 'attend_requests_total{dialect="native",route="/translate",status="200"}'


def answer(body: str, status: int = 200, content_type: str = "application/json") -> Answer:
    return Answer(status, {"content-type": content_type}, body.encode())


def problem(code: str, status: int) -> Answer:
    return answer(f'{{"code": "{code}"}}', status, "application/problem+json")


CALM = answer('{"text": "le chien", "score": -0.5, "request_id": "1"}')
BROKEN = problem("broken", 503)


@pytest.fixture
def oracle() -> Oracle:
    return Oracle(calm={TRANSLATION: comparable(CALM), STATIC: comparable(answer("{}"))})


@pytest.mark.parametrize(
    ("found", "is_right"),
    [
        (answer('{"text": "le chien", "score": -0.50001, "request_id": "2"}'), True),
        (answer('{"text": "le chat", "score": -0.5, "request_id": "2"}'), False),
        (answer('{"text": "le chien", "score": -0.6, "request_id": "2"}'), False),
        (answer('{"text": "le chien", "request_id": "2"}'), False),
        (BROKEN, False),
    ],
)
def test_an_answer_is_that_of_calm(oracle: Oracle, found: Answer, is_right: bool) -> None:
    assert (oracle.complaint(TRANSLATION, found, 10, 11) is None) == is_right


def test_an_error_is_right_if_a_fault_may_cause_it_for_this_request_at_this_time(oracle: Oracle) -> None:
    oracle.windows.append(Window(killed("worker", Random(0)), began=10, ended=20))
    assert oracle.excuses(TRANSLATION, BROKEN, 9, 11)
    assert oracle.excuses(TRANSLATION, BROKEN, 19, 30)
    assert not oracle.excuses(TRANSLATION, BROKEN, 5, 9)
    assert not oracle.excuses(TRANSLATION, BROKEN, 21, 30)
    assert not oracle.excuses(TRANSLATION, problem("internal_error", 500), 9, 11)
    assert not oracle.excuses(STATIC, BROKEN, 9, 11), "it needs no worker"
    assert not oracle.excuses_loss(9, 11), "a worker costs no connection"


@pytest.mark.parametrize(
    ("n_counted", "n_dead", "is_right"),
    [(5, 0, True), (4, 0, False), (4, 1, True), (3, 1, False), (7, 0, True), (8, 0, False)],
)
def test_metrics_add_up_to_what_was_sent(n_counted: int, n_dead: int, is_right: bool) -> None:
    ledger = Ledger()
    ledger.answered["native", "/translate", 200] = 5
    ledger.unanswered["native", "/translate"] = 2
    assert (differences({SERIES: 100}, {SERIES: 100 + n_counted}, ledger, n_dead) == []) == is_right


def test_what_was_not_there_in_calm_is_left_over() -> None:
    calm = Census({"files: run": 8, "processes: worker": 2, "descriptors: server": 30})
    later = Census({"files: run": 10, "processes: worker": 1, "descriptors: server": 33, "rows: attend_jobs": 1})
    assert later.beyond(calm) == {"files: run": (10, 8), "rows: attend_jobs": (1, 0)}


@pytest.mark.process
@pytest.mark.slow  # the soak itself, which takes about twenty seconds
@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked at as Linux shows them")
def test_a_storm_with_faults_costs_nothing_but_what_the_faults_cost() -> None:
    command = [sys.executable, "-m", "tests.soak", "--short", "--minutes", "0.08"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"
