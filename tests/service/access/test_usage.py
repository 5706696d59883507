"""Characters of names, which servers count together in a database, and keep while it is down."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest

from service.access import usage
from service.access.usage import Account, Usage, spending
from service.base.errors import NotStored, QuotaExceeded
from service.storage import database
from service.storage.database import Database
from tests.postgres import PostgreSQL

UsageOf = Callable[..., Usage]

NOVEMBER, DECEMBER = 1_795_000_000.0, 1_797_000_000.0


class Clock:
    def __init__(self) -> None:
        self.now = NOVEMBER

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def usage_of(clock: Clock) -> Iterator[UsageOf]:
    """usage_of(place) is what a server knows of the usage in a database."""
    with ExitStack() as stack:

        def made(place: Path | str, is_needed: bool = True) -> Usage:
            return Usage(stack.enter_context(closing(Database(place))), lambda: is_needed, clock)

        yield made


def spend(of: Usage, n: int, limit: int | None = 100, name: str = "site") -> None:
    of.spend(name, n, limit)


def test_servers_count_together_by_name_and_month(place: Path | str, usage_of: UsageOf, clock: Clock) -> None:
    one, other = usage_of(place), usage_of(place)
    spend(one, 60)
    spend(one, 5, name="app")
    one.flush()
    spend(other, 30)
    assert (one.used("site"), other.used("site")) == (60, 30)
    other.flush()
    one.flush()
    assert (one.used("site"), other.used("site"), other.used("app")) == (90, 90, 5)
    for full in (one, other, usage_of(place)):
        full.flush()
        with pytest.raises(QuotaExceeded, match="The key site has used 90 of its 100 characters of this month; this "):
            spend(full, 11)
    spend(one, 10)
    spend(one, 10**12, limit=None)
    one.flush()
    clock.now = DECEMBER
    assert one.used("site") == 0
    spend(one, 100)
    one.flush()
    assert one.used("site") == 100
    clock.now = NOVEMBER
    one.flush()
    assert one.used("site") == 100 + 10**12


def test_a_failed_request_does_not_count(place: Path | str, usage_of: UsageOf) -> None:
    one = usage_of(place)
    account = Account("site", 10, one)
    with suppress(KeyboardInterrupt), spending(account, 10):
        one.flush()
        assert one.used("site") == 10
        raise KeyboardInterrupt
    assert (account.spent, account.used) == (0, 0)
    one.flush()
    assert account.used == 0
    with suppress(KeyboardInterrupt), spending(account, 10):
        account.has_answer = True  # a stream, of which a part was sent
        raise KeyboardInterrupt
    assert (account.spent, account.used) == (10, 10)
    with spending(None, 10):
        pass


def test_without_names_no_database_is_made(tmp_path: Path, usage_of: UsageOf) -> None:
    usage_of(tmp_path / "data", is_needed=False).flush()
    usage_of(tmp_path / "data").flush()
    assert not (tmp_path / "data").exists()


@pytest.fixture
def stopped(postgresql: PostgreSQL) -> Iterator[PostgreSQL]:
    yield postgresql
    if not postgresql.runs:
        postgresql.start()


@pytest.mark.process
def test_counts_are_kept_until_the_database_is_back(
    stopped: PostgreSQL, usage_of: UsageOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "RETRY_S", 0.0)
    address = stopped.address()
    one, other = usage_of(address), usage_of(address)
    spend(one, 40)
    one.flush()
    stopped.stop()
    spend(one, 50)
    for _ in range(2):
        with pytest.raises(NotStored):
            one.flush()
    assert one.used("site") == 90
    with pytest.raises(QuotaExceeded):
        spend(one, 11)
    stopped.start()
    one.flush()
    other.flush()
    assert other.used("site") == 90


@pytest.mark.anyio
async def test_the_last_counts_are_written_at_the_end(tmp_path: Path, usage_of: UsageOf) -> None:
    one = usage_of(tmp_path)
    one.start()
    spend(one, 40)
    await one.stop()
    after = usage_of(tmp_path)
    await after.refresh()
    assert after.used("site") == 40


@pytest.mark.anyio
async def test_counts_that_are_lost_are_told(
    tmp_path: Path, usage_of: UsageOf, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(usage, "END_S", 0.1)
    (tmp_path / "file").touch()
    one = usage_of(tmp_path / "file" / "data")
    spend(one, 40)
    await one.stop()
    assert "40 characters of usage could not be written and are lost" in caplog.text
