"""The characters that keys with names use in a month, which all servers count together in the database."""

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.base.errors import NotStored, QuotaExceeded
from service.storage.database import Database
from service.storage.database_threads import in_thread
from service.storage.sql import sa, tables_of

if TYPE_CHECKING:
    from service.access import tables
else:
    tables = tables_of("service.access")

logger = logging.getLogger(__name__)

FLUSH_S = 2.0
"""Seconds between two times at which counts are written, and those of other servers are read."""
LOCKED_S = 1.0
"""Seconds for which a flush waits for another one, which may hang because the database does."""
REFRESH_S = 2.0
"""Seconds for which a client that asks for its usage waits for the database."""
END_S = 5.0
"""Seconds in which the last counts must be written."""


class Usage:
    """What this process knows of all usage. It counts by itself while the database is down, and writes that later.

    Args:
        is_needed: tells whether usage is asked for: if not, other servers' counts are not read.
        clock: seconds since 1970. A month is one of UTC.
    """

    def __init__(
        self, database: Database, is_needed: Callable[[], bool], clock: Callable[[], float] = time.time
    ) -> None:
        self._database = database
        self._is_needed = is_needed
        self._clock = clock
        self._flushing = threading.Lock()
        self._counting = threading.Lock()
        self._stored: dict[tuple[str, str], int] = {}
        self._new: Counter[tuple[str, str]] = Counter()
        """Characters that are not written yet, by name and month."""
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to write and read counts, as a task of the running event loop."""
        self._task = asyncio.create_task(self._keep())

    async def stop(self) -> None:
        """Write the last counts."""
        if self._task is not None:
            self._task.cancel()
        if any(self._new.values()):
            await self._try_to_flush(END_S)
        if left := sum(self._new.values()):
            logger.error("%d characters of usage could not be written and are lost", left)

    async def refresh(self) -> None:
        """Read what other servers have counted, if the database answers."""
        await self._try_to_flush(REFRESH_S)

    def used(self, name: str) -> int:
        """Return how many characters a name has used in this month."""
        return self._used(name, self._month())

    def spend(self, name: str, n: int, limit: int | None) -> str:
        """Count characters, and return the month in which they count. Raises QuotaExceeded: they are too many."""
        month = self._month()
        with self._counting:
            used = self._used(name, month)
            if limit is not None and used + n > limit:
                raise QuotaExceeded(
                    f"The key {name} has used {used} of its {limit} characters of this month; this request needs {n}"
                )
            self._new[name, month] += n
        return month

    def give_back(self, name: str, n: int, month: str) -> None:
        """Count characters of a month no more."""
        with self._counting:
            self._new[name, month] -= n

    def flush(self, locked_s: float = LOCKED_S) -> None:
        """Write new counts and read those of this month. Raises NotStored: the new counts stay new."""
        if not self._flushing.acquire(timeout=locked_s):
            return
        try:
            with self._counting:
                new = {key: n for key, n in self._new.items() if n}
            if not new and not (self._is_needed() and self._database.exists):
                return
            stored = tables.USAGE
            of_month = sa.select(stored.c.name, stored.c.month, stored.c.characters).where(
                stored.c.month == self._month()
            )
            with self._database.writing() if new else self._database.reading() as connection:
                for (name, month), n in new.items():
                    mine = sa.and_(stored.c.name == name, stored.c.month == month)
                    added = sa.update(stored).where(mine).values(characters=stored.c.characters + n)
                    if connection.execute(added).rowcount == 0:
                        connection.execute(sa.insert(stored).values(name=name, month=month, characters=n))
                counts = {(name, month): n for name, month, n in connection.execute(of_month)}
            with self._counting:
                self._stored = counts
                self._new.subtract(new)
                self._new = Counter({key: n for key, n in self._new.items() if n})
        finally:
            self._flushing.release()

    async def _keep(self) -> None:
        while True:
            try:
                await in_thread(self.flush)
            except NotStored:  # the log has it
                pass
            except Exception:
                logger.exception("usage could not be written")
            await asyncio.sleep(FLUSH_S)

    async def _try_to_flush(self, timeout_s: float) -> None:
        with suppress(NotStored, TimeoutError):
            async with asyncio.timeout(timeout_s):
                await in_thread(self.flush, timeout_s)

    def _used(self, name: str, month: str) -> int:
        return self._stored.get((name, month), 0) + self._new[name, month]

    def _month(self) -> str:
        return time.strftime("%Y-%m", time.gmtime(self._clock()))


@dataclass
class Account:
    """The client of one request, if its key has a name.

    Attributes:
        limit: characters that it may use in a month; None: any number.
        spent: characters that this request has used.
        has_answer: whether a part of the answer was sent, so that its characters are owed whatever happens then.
    """

    name: str
    limit: int | None
    usage: Usage
    spent: int = 0
    has_answer: bool = False

    @property
    def used(self) -> int:
        """Characters of this month."""
        return self.usage.used(self.name)


@contextmanager
def spending(account: Account | None, n: int) -> Iterator[None]:
    """Count characters of a client, unless an error is raised within before any part of the answer was sent. Raises
    QuotaExceeded: the client may not use so many."""
    if account is None:
        yield
        return
    month = account.usage.spend(account.name, n, account.limit)
    account.spent += n
    try:
        yield
    except BaseException:
        if not account.has_answer:
            account.usage.give_back(account.name, n, month)
            account.spent -= n
        raise
