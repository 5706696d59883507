"""What all tests share: checks of their marks and skips, and the shipped artifacts behind a real server process, as
`make serve` starts it.

There is one server for all tests of a process.
"""

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import hypothesis
import pytest

from tests.running_service import running_service

hypothesis.settings.register_profile("attend", deadline=None)  # a busy machine is no failure
hypothesis.settings.load_profile("attend")

INSTALLED_IN_CI = ("Chromium", "helm", "PostgreSQL", "prometheus", "promtool", "redis-server")
"""Programs that CI has to install; the reason of a skip names the one that is missing."""
STARTERS = ("tests.", "service.pool.remote_loader")
"""Modules whose processes need the mark `process`."""
running: list[pytest.Item] = []
"""The test that runs now."""
start_process = subprocess.Popen.__init__


def start_if_marked(process: "subprocess.Popen[Any]", *args: Any, **options: Any) -> None:
    """Start a process; where `make test-fast` leaves out tests with the mark `process`, fail one that does so without.

    What counts are processes that tests start themselves, and loaders. Others, such as the reader of documents, are
    started soon.
    """
    frame = sys._getframe(1)
    while frame.f_globals["__name__"] == "subprocess" and frame.f_back is not None:
        frame = frame.f_back
    counts = frame.f_globals["__name__"].startswith(STARTERS)
    is_fast = bool(running) and "not process" in running[0].config.option.markexpr
    if counts and is_fast and running[0].get_closest_marker("process") is None:
        pytest.fail(f"{running[0].nodeid} starts a process, and has no mark: @pytest.mark.process")
    start_process(process, *args, **options)


subprocess.Popen.__init__ = start_if_marked  # type: ignore[method-assign]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    running[:] = [item]
    try:
        return (yield)
    finally:
        running.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    """Fail a test that is skipped in CI although CI has to install what it needs."""
    report: Any = yield
    if report.skipped and "CI" in os.environ and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2]
        if any(program in reason for program in INSTALLED_IN_CI):
            report.outcome, report.longrepr = "failed", f"CI must run this test, and installs what it needs. {reason}"
    return report


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
