"""The shipped artifacts behind a real server process, as `make serve` starts it: one for all tests of a process."""

import gc
from collections.abc import Iterator

import httpx
import hypothesis
import pytest

from tests.running_service import running_service

hypothesis.settings.register_profile("attend", deadline=None)  # a busy machine is no failure
hypothesis.settings.load_profile("attend")


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
