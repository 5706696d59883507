"""Replicas that share a database of PostgreSQL: what one stores, others have; while it is down, models still serve."""

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from service.base.errors import NotStored
from service.jobs import tables, worker
from service.jobs.store import JobStore
from service.storage import database, database_threads
from service.storage.database import Database
from tests.postgres import PostgreSQL
from tests.service.conftest import Client, Serve, post, problem
from tests.service.http.test_documents import TEXT, finished, posted, result, sent, status
from tests.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.process]

ENTRIES = {"dictionaries": [{"source": "en", "target": "fr", "entries": {"dog": "clebs"}}]}
SENTENCE = {"text": "the dog runs", "source": "en", "target": "fr"}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "REPORT_S", 0.01)
    monkeypatch.setattr(worker, "CHECK_S", 0.05)
    monkeypatch.setattr(database, "RETRY_S", 0.0)


@pytest.fixture
def stopping(postgresql: PostgreSQL) -> Iterator[PostgreSQL]:
    """One that a test may stop."""
    yield postgresql
    if not postgresql.runs:
        postgresql.start()


async def test_a_replica_has_what_another_one_stores(serve: Serve, postgresql: PostgreSQL) -> None:
    address = postgresql.address()
    async with serve(database=address) as one, serve(database=address) as other:
        made = (await one.post("/glossaries", json={"name": "Animals", **ENTRIES})).raise_for_status().json()
        assert (await other.get("/glossaries")).json()["glossaries"] == [made]
        found = await post(other, "/translate", **SENTENCE, glossary_id=made["id"])
        assert "clebs" in found["translations"][0]["text"]
        card = await sent(one, "a.txt", TEXT)
        assert (await finished(other, card))["status"] == "done"
        assert (await result(other, card)).status_code == 200


async def test_a_database_that_is_down_takes_only_what_it_keeps(serve: Serve, stopping: PostgreSQL) -> None:
    async with serve(database=stopping.address()) as client:
        card = await sent(client, "a.txt", TEXT)
        await finished(client, card)
        expected = await post(client, "/translate", **SENTENCE)
        stopping.stop()
        for refused in (
            await client.get("/glossaries"),
            await client.post("/glossaries", json={"name": "Animals", **ENTRIES}),
            await client.post("/translate", json={**SENTENCE, "glossary_id": "0" * 36}),
            await status(client, card),
            await result(client, card),
            await posted(client, "a.txt", TEXT),
            await posted(client, "a.txt", TEXT, wait="true"),
        ):
            assert str(stopping.directory) not in problem(refused, NotStored)["detail"]
            assert int(refused.headers["Retry-After"]) > 0
        assert (await post(client, "/translate", **SENTENCE))["translations"] == expected["translations"]
        assert (await client.get("/health/ready")).status_code == 200
        stopping.start()
        assert (await result(client, card)).status_code == 200
        assert (await finished(client, await sent(client, "a.txt", TEXT)))["status"] == "done"


async def test_servers_fail_and_the_database_restarts_and_each_document_is_translated_once(
    serve: Serve, stopping: PostgreSQL, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish, finished_jobs = JobStore.finish, list[str]()

    def finishing(self: JobStore, job_id: str, owner: str, translation: bytes, least_sure: str | None) -> None:
        finish(self, job_id, owner, translation, least_sure)
        finished_jobs.append(job_id)

    monkeypatch.setattr(JobStore, "finish", finishing)
    address = stopping.address()
    dead = JobStore(Database(address), 3600, 100)
    for number in range(2):
        dead.add(b"the dog", f"{number}.txt", "txt", ("en", "fr"), "{}", 7, 60)
        assert dead.claim("dead") is not None
    async with serve(database=address) as one, serve(database=address) as other:
        cards = [await sent(client, f"{i}.txt", TEXT) for i in range(6) for client in (one, other)]
        await until(lambda: len(finished_jobs) >= 4)
        stopping.stop()
        stopping.start()
        for card in cards:
            assert (await finished(one, card))["status"] == "done"
        await until(lambda: len(finished_jobs) >= len(cards) + 2)
        await until(lambda: not n_unfinished(dead))
    assert len(finished_jobs) == len(set(finished_jobs))
    dead._database.close()


def n_unfinished(store: JobStore) -> int:
    with store._database.reading() as connection:
        unfinished = tables.JOBS.c.finished_at.is_(None)
        return connection.scalar(sa.select(sa.func.count()).where(unfinished)) or 0


async def test_a_database_that_hangs_holds_up_only_those_who_ask_it(
    serve: Serve, postgresql: PostgreSQL, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serve(database=postgresql.address()) as client:
        await glossaries(client)
        monkeypatch.setattr(database_threads, "TIMEOUT_S", 0.1)
        with postgresql.paused():
            for _ in range(8):
                problem(await client.get("/glossaries"), NotStored)
            assert (await client.post("/translate", json=SENTENCE)).status_code == 200
        monkeypatch.undo()
        await glossaries(client)


async def glossaries(client: Client) -> None:
    assert (await client.get("/glossaries")).json() == {"glossaries": []}
