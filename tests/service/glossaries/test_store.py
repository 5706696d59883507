import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from service.access.ownership import ANYBODY
from service.base.errors import GlossaryMismatch, InvalidGlossary, LimitExceeded, UnknownGlossary
from service.glossaries import store
from service.glossaries.store import Dictionary, Glossaries, Glossary
from service.glossaries.terms import TermTable
from service.storage.database import Database

pytestmark = pytest.mark.anyio

ANIMALS = {"dog": "clebs", "cat": "matou"}


@pytest.fixture
def glossaries(place: Path | str) -> Iterator[Glossaries]:
    with of_another_server(place) as opened:
        yield opened


@contextmanager
def of_another_server(place: Path | str) -> Iterator[Glossaries]:
    database = Database(place)
    yield Glossaries(database)
    database.close()


def test_nothing_is_written_before_a_glossary_is(tmp_path: Path) -> None:
    Glossaries(Database(tmp_path / "data"))
    assert not (tmp_path / "data").exists()


def test_a_glossary_and_its_entries_are_of_one_moment(
    glossaries: Glossaries, place: Path | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another server deletes a glossary while this one reads."""
    first = glossaries.create(ANYBODY, "Animals", {("en", "fr"): ANIMALS})
    second = glossaries.create(ANYBODY, "More", {("en", "fr"): ANIMALS})
    other = Glossaries(Database(place))
    get = Glossaries._get

    def deleting(self: Glossaries, *arguments: Any, **options: Any) -> Glossary:
        if self is glossaries and other.all(ANYBODY):
            other.delete(ANYBODY, first.id)
            other.delete(ANYBODY, second.id)
        return get(self, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Glossaries, "_get", deleting)
        assert glossaries.all(ANYBODY) == [first, second]
    assert glossaries.all(ANYBODY) == []
    other._database.close()


def test_a_glossary_is_found_by_others_as_it_was_made(glossaries: Glossaries, place: Path | str) -> None:
    made = glossaries.create(ANYBODY, "Animals", {("en", "fr"): ANIMALS, ("fr", "en"): {"chien": "dog"}})
    assert made.name == "Animals"
    assert abs(made.created_at - datetime.now(UTC)) < timedelta(minutes=1)
    assert made.dictionaries == (Dictionary("en", "fr", 2), Dictionary("fr", "en", 1))
    other = Glossaries(Database(place))
    assert other.get(ANYBODY, made.id) == made
    assert other.all(ANYBODY) == [made]
    assert other.entries(ANYBODY, made.id, "EN", "fr-FR") == ANIMALS
    other.delete(ANYBODY, made.id)
    other._database.close()
    assert glossaries.all(ANYBODY) == []
    for call in (glossaries.get, glossaries.delete):
        with pytest.raises(UnknownGlossary, match=made.id):
            call(ANYBODY, made.id)


def test_names_and_terms_may_have_any_character(glossaries: Glossaries) -> None:
    made = glossaries.create(ANYBODY, "a\0b é 💚", {("en", "fr"): {"a\0": "é 💚"}})
    assert glossaries.get(ANYBODY, made.id).name == "a\N{REPLACEMENT CHARACTER}b é 💚"
    assert glossaries.entries(ANYBODY, made.id, "en", "fr") == {"a\0": "é 💚"}


def test_an_update_adds_entries_and_a_put_replaces_them(glossaries: Glossaries) -> None:
    made = glossaries.create(ANYBODY, "Animals", {("en", "fr"): ANIMALS})
    updated = glossaries.update(
        ANYBODY, made.id, "Beasts", {("en", "fr"): {"dog": "chien", "cow": "vache"}, ("en", "de"): {"a": "b"}}
    )
    assert (updated.name, updated.created_at) == ("Beasts", made.created_at)
    assert updated.dictionaries == (Dictionary("en", "fr", 3), Dictionary("en", "de", 1))
    assert glossaries.entries(ANYBODY, made.id, "en", "fr") == {"dog": "chien", "cat": "matou", "cow": "vache"}
    assert glossaries.put(ANYBODY, made.id, "en", "fr", {"x": "y"}) == Dictionary("en", "fr", 1)
    assert glossaries.entries(ANYBODY, made.id, "en", "fr") == {"x": "y"}
    glossaries.delete_dictionary(ANYBODY, made.id, "en", "de")
    assert glossaries.get(ANYBODY, made.id).dictionaries == (Dictionary("en", "fr", 1),)
    for call in (glossaries.entries, glossaries.delete_dictionary):
        with pytest.raises(UnknownGlossary, match=r"'Beasts' .*en to de.*en to fr"):
            call(ANYBODY, made.id, "en", "de")


def test_a_table_is_made_once_for_requests_at_the_same_time_and_in_no_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(tmp_path)
    glossaries, reading, n_open, made = Glossaries(database), database.reading, 0, 0
    glossary = glossaries.create(ANYBODY, "Animals", {("en", "fr"): {"dog": "chien"}})

    def made_table(*arguments: Any) -> TermTable:
        nonlocal made
        made += 1
        assert n_open == 0
        return TermTable(*arguments)

    @contextmanager
    def reading_beside_another_request() -> Iterator[Any]:
        nonlocal n_open
        n_open += 1
        with reading() as connection:
            yield connection
        if n_open == 1 and made:
            glossaries._table(ANYBODY, glossary.id, "en", "fr")
        n_open -= 1

    monkeypatch.setattr(store, "TermTable", made_table)
    monkeypatch.setattr(database, "reading", reading_beside_another_request)
    for _ in range(2):
        glossaries._table(ANYBODY, glossary.id, "en", "fr")
    assert made == 1
    database.close()


def test_a_change_that_is_refused_changes_nothing(glossaries: Glossaries, monkeypatch: pytest.MonkeyPatch) -> None:
    made = glossaries.create(ANYBODY, "Animals", {("en", "fr"): ANIMALS})
    with pytest.raises(InvalidGlossary, match="both are en"):
        glossaries.update(ANYBODY, made.id, "Beasts", {("en", "fr"): {"a": "b"}, ("en", "EN"): {"a": "b"}})
    with pytest.raises(InvalidGlossary, match="from en to fr"):
        glossaries.create(ANYBODY, "Two", {("en", "fr"): {"a": "b"}, ("EN", "FR"): {"a": "b"}})
    monkeypatch.setattr(store, "MAX_ENTRIES", 2)
    with pytest.raises(InvalidGlossary, match="3 entries; the limit is 2"):
        glossaries.update(ANYBODY, made.id, "Beasts", {("en", "fr"): {"a": "b"}})
    monkeypatch.setattr(store, "MAX_DICTIONARIES", 1)
    with pytest.raises(InvalidGlossary, match="1 dictionaries"):
        glossaries.put(ANYBODY, made.id, "en", "de", {"a": "b"})
    monkeypatch.setattr(store, "MAX_GLOSSARIES", 1)
    with pytest.raises(LimitExceeded, match="1 glossaries"):
        glossaries.create(ANYBODY, "Two", {})
    assert glossaries.all(ANYBODY) == [made]
    assert glossaries.entries(ANYBODY, made.id, "en", "fr") == ANIMALS


async def test_terms_belong_to_the_languages_and_are_the_newest(glossaries: Glossaries, place: Path | str) -> None:
    made = glossaries.create(
        ANYBODY, "Animals", {("en", "fr"): ANIMALS, ("en", "pt"): {"dog": "cão"}, ("en", "pt-BR"): {"dog": "x"}}
    )

    async def written(source: str, target: str) -> list[str | None]:
        return [kept.written for kept in (await glossaries.table(ANYBODY, made.id, source, target)).find("dog")]

    assert await written("en-GB", "fr") == ["clebs"]
    assert await written("en", "pt-BR") == ["x"]
    assert await written("en", "pt") == ["cão"]
    assert await glossaries.table(ANYBODY, made.id, "en", "fr") is await glossaries.table(ANYBODY, made.id, "en", "fr")
    other = Glossaries(Database(place))
    other.put(ANYBODY, made.id, "en", "fr", {"dog": "chien"})
    other._database.close()
    assert await written("en", "fr") == ["chien"]
    with pytest.raises(GlossaryMismatch, match=r"en to ja.* en to fr, en to pt, en to pt-BR$"):
        await glossaries.table(ANYBODY, made.id, "en", "ja")
    with pytest.raises(UnknownGlossary):
        await glossaries.table(ANYBODY, "none", "en", "fr")


async def test_tables_do_not_pile_up(glossaries: Glossaries, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MAX_CACHED_TABLES", 2)
    made = [glossaries.create(ANYBODY, str(i), {("en", "fr"): ANIMALS}).id for i in range(3)]
    first = await glossaries.table(ANYBODY, made[0], "en", "fr")
    for glossary in (made[1], made[0], made[2]):
        await glossaries.table(ANYBODY, glossary, "en", "fr")
    assert await glossaries.table(ANYBODY, made[0], "en", "fr") is first
    assert len(glossaries._tables) == 2


def test_writers_at_the_same_time_lose_nothing(glossaries: Glossaries, place: Path | str) -> None:
    made = glossaries.create(ANYBODY, "Animals", {})
    failures: list[BaseException] = []

    def write(number: int) -> None:
        own = Glossaries(Database(place))
        try:
            for i in range(10):
                own.update(ANYBODY, made.id, None, {("en", "fr"): {f"{number} {i}": "x"}})
        except BaseException as error:
            failures.append(error)
        own._database.close()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert glossaries.get(ANYBODY, made.id).dictionaries == (Dictionary("en", "fr", 40),)
