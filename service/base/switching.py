"""How often the threads of a process give Python's lock to one another."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

USUAL_SWITCH_S, SWITCH_S = sys.getswitchinterval(), 0.0005
"""Seconds after which a thread gives the lock to another one, usually and while threads do long work: a request needs
the lock several times, and would take twice as long."""

_n_users = 0


@contextmanager
def switching_often() -> Iterator[None]:
    """Let the event loop get the lock soon, while a thread does long work. Only used by the event loop."""
    global _n_users
    _n_users += 1
    sys.setswitchinterval(SWITCH_S)
    try:
        yield
    finally:
        _n_users -= 1
        if not _n_users:
            sys.setswitchinterval(USUAL_SWITCH_S)
