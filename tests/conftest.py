"""What all tests share: their marks, and the shipped artifacts behind a real server process, as `make serve` starts it.

There is one server for all tests of a process.
"""

import gc
import inspect
import subprocess
from collections.abc import Iterator
from functools import cache
from types import CodeType, FunctionType

import httpx
import hypothesis
import pytest

from service.pool.remote_loader import RemoteLoader
from tests.running_service import running_service

hypothesis.settings.register_profile("attend", deadline=None)  # a busy machine is no failure
hypothesis.settings.load_profile("attend")


PROCESS_STARTERS = (subprocess, RemoteLoader)
"""What the tests' own code starts processes with."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of the browser, and those that start processes themselves, in a fixture or in a helper."""
    for item in items:
        assert isinstance(item, pytest.Function)
        if item.nodeid.startswith("tests/browser/"):
            item.add_marker("browser")
        fixtures = [one.func for name in item.fixturenames for one in item._fixtureinfo.name2fixturedefs.get(name, ())]
        if any(map(starts_processes, [item.function, *fixtures])):
            item.add_marker("process")


@cache
def starts_processes(function: object) -> bool:
    """Whether a function of the tests uses what starts processes, itself or through other functions of the tests."""
    pending, seen = [function], set()
    while pending:
        function = inspect.unwrap(pending.pop())  # type: ignore[arg-type]
        if isinstance(function, FunctionType) and function.__module__.startswith("tests.") and function not in seen:
            seen.add(function)
            used = [function.__globals__.get(name) for name in names_in(function.__code__)]
            if any(one is starter for one in used for starter in PROCESS_STARTERS):
                return True
            pending += used
    return False


def names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_in(constant)


def pytest_collection_finish() -> None:
    """Have the garbage collector leave alone what a whole run needs: modules of torch and thousands of tests.

    Tracing makes so many objects that it would look through all of them every few seconds.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of `python -m service` on a port that the system chose."""
    with running_service(tmp_path_factory.mktemp("server") / "log", {"ATTEND_PROVIDER": "cpu"}) as client:
        yield client
