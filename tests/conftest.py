"""The shipped artifacts behind a real server process, as `make serve` starts it: one for all tests of a process."""

from collections.abc import Iterator

import httpx
import hypothesis
import pytest

from tests.running_service import running_service

hypothesis.settings.register_profile("attend", deadline=None)  # a busy machine is no failure
hypothesis.settings.load_profile("attend")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of `python -m service` on a port that the system chose."""
    with running_service(tmp_path_factory.mktemp("server") / "log", {"ATTEND_PROVIDER": "cpu"}) as client:
        yield client
