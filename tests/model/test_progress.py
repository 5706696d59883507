"""Progress of commands: a line for each step, a bar in a terminal, nothing if nobody asked."""

import io
import os
import signal

import pytest
from rich.console import Console

from model.progress import advance, each, progress_shown, step


def work() -> list[str]:
    step("reading weights", total=2)
    advance(2)
    return list(each(["a", "b"], "choosing scales of layer"))


def test_nothing_is_shown_unless_a_command_asks_for_it(capfd: pytest.CaptureFixture[str]) -> None:
    assert work() == ["a", "b"]
    assert capfd.readouterr() == ("", "")


def test_where_there_is_no_terminal_each_step_is_one_line_on_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    with progress_shown():
        work()
    work()
    assert capfd.readouterr() == ("", "reading weights\nchoosing scales of layer\n")


def test_a_terminal_shows_the_part_of_a_step() -> None:
    shown = io.StringIO()
    with progress_shown(Console(file=shown, force_terminal=True, width=100)):
        for _ in each(["a", "b"], "choosing scales of [bold] layer"):
            pass
    assert "choosing scales of [bold] layer 2 of 2" in shown.getvalue()


def test_a_failure_ends_the_display() -> None:
    with pytest.raises(ValueError, match="wrong"), progress_shown(Console(file=io.StringIO(), force_terminal=True)):
        raise ValueError("wrong")
    work()


def test_a_command_that_is_terminated_cleans_up() -> None:
    cleaned = []

    def work_until_terminated() -> None:
        with progress_shown(Console(file=io.StringIO())):
            try:
                os.kill(os.getpid(), signal.SIGTERM)
            finally:
                cleaned.append("deleted")

    with pytest.raises(SystemExit) as ended:
        work_until_terminated()
    assert ended.value.code == 128 + signal.SIGTERM
    assert cleaned
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
