"""Progress of a long command on standard error: a bar in a terminal, elsewhere one line for each step.

Code that works says what it does with `step`, `advance` and `each`; nothing is shown unless a command asks for it with
`progress_shown`.
"""

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

T = TypeVar("T")


class Display:
    """Shows one step at a time on a console."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.bar: Progress | None = None
        self.task = TaskID(0)
        if console.is_terminal:
            text = TextColumn("{task.description}", markup=False)
            columns = (SpinnerColumn(), text, BarColumn(), TimeElapsedColumn())
            self.bar = Progress(*columns, console=console, transient=True)
            self.task = self.bar.add_task("", total=None)

    def step(self, name: str, total: float | None) -> None:
        """Show the next step; the one before it has ended."""
        if self.bar is None:
            self.console.print(name, markup=False, highlight=False, soft_wrap=True)
        else:
            self.bar.reset(self.task, description=name, total=total)

    def advance(self, amount: float, name: str | None) -> None:
        """Show that a part of the step is done; `name` says more about the next part."""
        if self.bar is not None:
            self.bar.update(self.task, advance=amount, description=name)


_display: ContextVar[Display | None] = ContextVar("display", default=None)


@contextmanager
def progress_shown(console: Console | None = None) -> Iterator[None]:
    """Show what the code inside says that it does, by default on standard error.

    SIGTERM ends that code as Ctrl-C does, so that it deletes what it has begun to write.
    """
    display = Display(console or Console(stderr=True))
    token, former = _display.set(display), signal.signal(signal.SIGTERM, _exit)
    try:
        with display.bar or nullcontext():
            yield
    finally:
        signal.signal(signal.SIGTERM, former)
        _display.reset(token)


def _exit(number: int, _: object) -> None:
    sys.exit(128 + number)


def step(name: str, total: float | None = None) -> None:
    """Say what is done from now on, and how much of it there is (bytes, layers), if that is known."""
    if (display := _display.get()) is not None:
        display.step(name, total)


def advance(amount: float = 1, name: str | None = None) -> None:
    """Say that so much of the step is done."""
    if (display := _display.get()) is not None:
        display.advance(amount, name)


def each(items: Sequence[T], name: str) -> Iterator[T]:
    """Yield the items of a step; "choosing scales of layer" is shown as "choosing scales of layer 7 of 96"."""
    step(name, total=len(items))
    for i, item in enumerate(items):
        advance(i > 0, f"{name} {i + 1} of {len(items)}")
        yield item
