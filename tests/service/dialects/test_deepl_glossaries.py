"""DeepL's client stores glossaries on a real server, and uses them."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import deepl
import httpx
import pytest
from deepl.api_data import MultilingualGlossaryDictionaryEntries, MultilingualGlossaryInfo

ANIMALS = {"dog": "Köter", "the cat": "die Katze", "A%=&": "B&=%"}
TRANSLATORS = {"from": (3, "en", "de pb"), "into": (3, "de", "en")}
BACK = {"Köter": "dog"}
NOBODY = "96ab91fd-e715-41a1-adeb-5d701f84a483"


@pytest.fixture
def client(client: deepl.DeepLClient) -> Iterator[deepl.DeepLClient]:
    """A client whose glossaries are deleted after each test."""
    yield client
    for glossary in client.list_multilingual_glossaries():
        client.delete_multilingual_glossary(glossary)


def dictionary(source: str, target: str, entries: dict[str, str]) -> MultilingualGlossaryDictionaryEntries:
    return MultilingualGlossaryDictionaryEntries(source, target, entries)


def pairs(glossary: MultilingualGlossaryInfo) -> list[tuple[str, str, int]]:
    return [(one.source_lang, one.target_lang, one.entry_count) for one in glossary.dictionaries]


def test_a_glossary_of_one_pair_is_stored_listed_used_and_deleted(client: deepl.DeepLClient) -> None:
    made = client.create_glossary("Animals", "en", "de", ANIMALS)
    assert (made.name, made.ready, made.source_lang, made.target_lang) == ("Animals", True, "EN", "DE")
    assert made.entry_count == 3
    assert abs(made.creation_time - datetime.now(UTC)) < timedelta(minutes=1)
    (listed,), got = client.list_glossaries(), client.get_glossary(made.glossary_id)
    assert vars(listed) == vars(got) == vars(made)
    assert client.get_glossary_entries(made) == ANIMALS
    assert "Köter" in str(client.translate_text_with_glossary("the dog runs", made))
    client.delete_glossary(made)
    for call in (client.get_glossary, client.get_glossary_entries, client.delete_glossary):
        with pytest.raises(deepl.GlossaryNotFoundException, match="No glossary"):
            call(made.glossary_id)
    assert client.list_glossaries() == []


def test_a_glossary_of_several_pairs_is_changed_and_used(client: deepl.DeepLClient) -> None:
    made = client.create_multilingual_glossary("A", [dictionary("EN", "DE", ANIMALS), dictionary("de", "en", BACK)])
    assert pairs(made) == [("EN", "DE", 3), ("DE", "EN", 1)]
    assert client.update_multilingual_glossary_name(made, "Beasts").name == "Beasts"
    updated = client.update_multilingual_glossary_dictionary(made, dictionary("EN", "DE", {"dog": "Hund", "a": "b"}))
    assert pairs(updated) == [("EN", "DE", 4), ("DE", "EN", 1)]
    replaced = client.replace_multilingual_glossary_dictionary(made, dictionary("EN", "PT", {"dog": "cachorro"}))
    assert (replaced.source_lang, replaced.target_lang, replaced.entry_count) == ("EN", "PT", 1)
    found = client.get_multilingual_glossary_entries(made, "EN", "PT-BR").dictionaries
    assert [(one.source_lang, one.target_lang, one.entries) for one in found] == [("en", "pt", "dog\tcachorro")]
    for source, target, term in (("EN", "DE", "Hund"), ("EN", "PT-BR", "cachorro"), ("DE", "EN-GB", "dog")):
        text = "ein Köter" if source == "DE" else "the dog"
        found = client.translate_text(text, source_lang=source, target_lang=target, glossary=made.glossary_id)
        assert term in str(found)
    client.delete_multilingual_glossary_dictionary(made, source_lang="EN", target_lang="DE")
    got = client.get_multilingual_glossary(made.glossary_id)
    assert pairs(got) == [("DE", "EN", 1), ("EN", "PT", 1)]
    assert [glossary.name for glossary in client.list_multilingual_glossaries()] == ["Beasts"]
    assert client.list_glossaries() == []
    with pytest.raises(deepl.GlossaryNotFoundException, match=r"2 dictionaries.*/v3/glossaries"):
        client.get_glossary(made.glossary_id)
    with pytest.raises(deepl.GlossaryNotFoundException, match="no dictionary from EN to DE"):
        client.delete_multilingual_glossary_dictionary(made, source_lang="EN", target_lang="DE")


def test_csv_is_read_as_well(client: deepl.DeepLClient) -> None:
    csv = 'dog,"Köter, der",en,de\n"the ""cat""",Katze,en,de\n'
    expected = {"dog": "Köter, der", 'the "cat"': "Katze"}
    made = client.create_glossary_from_csv("Animals", "EN-GB", "de", csv)
    assert client.get_glossary_entries(made) == expected
    other = client.create_multilingual_glossary_from_csv("Animals", "en", "de", csv)
    assert pairs(other) == [("EN", "DE", 2)]


def test_glossaries_are_those_of_the_native_routes(client: deepl.DeepLClient, address: str) -> None:
    body = {"name": "Ours", "dictionaries": [{"source": "en", "target": "de-DE", "entries": {"dog": "Hund"}}]}
    card = httpx.post(f"{address}/glossaries", json=body).raise_for_status().json()
    (listed,) = client.list_glossaries()
    assert (listed.glossary_id, listed.name, listed.target_lang) == (card["id"], "Ours", "DE")


def test_pairs_are_all_that_are_translated(client: deepl.DeepLClient) -> None:
    found = [(pair.source_lang, pair.target_lang) for pair in client.get_glossary_languages()]
    assert found == [("de", "en"), ("de", "pt"), ("en", "de"), ("en", "pt")]


@pytest.mark.parametrize("sent", ["json", "data"])
def test_a_form_is_read_as_well(client: deepl.DeepLClient, address: str, sent: str) -> None:
    fields = {"name": "A", "source_lang": "en", "target_lang": "DE", "entries": "dog\tHund\n", "entries_format": "TSV"}
    made: Any = httpx.post(f"{address}/v2/glossaries", **{sent: fields})  # type: ignore[arg-type]
    assert made.status_code == 201
    entries = httpx.get(f"{address}/v2/glossaries/{made.json()['glossary_id']}/entries")
    assert (entries.text, entries.headers["content-type"]) == ("dog\tHund", "text/tab-separated-values; charset=utf-8")


@pytest.mark.parametrize("field", ["dictionaries[{}].{}", "dictionaries[{}][{}]"])
def test_a_form_may_have_several_dictionaries(client: deepl.DeepLClient, address: str, field: str) -> None:
    """Clients in other languages number the dictionaries so."""
    fields = {"name": "A"}
    for i, (source, target) in enumerate((("en", "de"), ("de", "en"))):
        given = {"source_lang": source, "target_lang": target, "entries": "dog\tHund", "entries_format": "tsv"}
        fields |= {field.format(i, name): value for name, value in given.items()}
    made = httpx.post(f"{address}/v3/glossaries", data=fields)
    assert made.status_code == 201
    (listed,) = client.list_multilingual_glossaries()
    assert pairs(listed) == [("EN", "DE", 1), ("DE", "EN", 1)]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"target_lang": "XX"}, "Value for 'target_lang' not supported."),
        ({"source_lang": "PT"}, "Value for 'source_lang' not supported."),
        ({"target_lang": "EN"}, "both are en"),
        ({"entries": "dog"}, "line 1 must have 2 columns"),
        ({"entries": ""}, "`entries` must not be empty"),
        ({"entries": "dog\ta\ndog\tb"}, "line 2 repeats the term 'dog'"),
        ({"entries_format": "xlsx"}, "Value for 'entries_format' not supported."),
        ({"name": " "}, "Value for 'name' not supported."),
        ({"name": "\ud83d"}, "Value for 'name' not supported."),
        ({"entries": "dog\t\ud83d"}, "line 1: the translation"),
        ({"entries": None}, "Value for 'entries' not supported."),
    ],
)
def test_invalid_glossaries_are_refused(address: str, given: dict[str, str], message: str) -> None:
    fields = {"source_lang": "en", "target_lang": "de", "entries": "dog\tHund"} | given
    name = fields.pop("name", "A")
    for response in (
        httpx.post(f"{address}/v2/glossaries", content=json.dumps({"name": name, **fields})),
        httpx.post(f"{address}/v3/glossaries", content=json.dumps({"name": name, "dictionaries": [fields]})),
    ):
        assert response.status_code == 400
        assert message in response.json()["message"]
    nothing = httpx.patch(f"{address}/v3/glossaries/{NOBODY}", json={})
    assert (nothing.status_code, nothing.json().keys()) == (400, {"message"})
    twice = {"name": "A", "dictionaries": [{"source_lang": "en", "target_lang": "de", "entries": "a\tb"}] * 2}
    refused = httpx.post(f"{address}/v3/glossaries", json=twice)
    assert refused.status_code == 400
    assert "en to de" in refused.json()["message"]


def test_unknown_glossaries_are_not_found(client: deepl.DeepLClient) -> None:
    for glossary_id in (NOBODY, "nothing"):
        for call in (
            client.get_glossary,
            client.delete_multilingual_glossary,
            lambda one: client.update_multilingual_glossary_name(one, "A"),
            lambda one: client.replace_multilingual_glossary_dictionary(one, dictionary("EN", "DE", ANIMALS)),
            lambda one: client.get_multilingual_glossary_entries(one, "EN", "DE"),
        ):
            with pytest.raises(deepl.GlossaryNotFoundException, match=glossary_id):
                call(glossary_id)


def test_translations_name_a_glossary_that_has_their_languages(client: deepl.DeepLClient, address: str) -> None:
    made = client.create_glossary("Animals", "en", "de", ANIMALS)
    with pytest.raises(deepl.DeepLException, match="Not found, message: No glossary") as raised:
        client.translate_text("a", source_lang="en", target_lang="de", glossary=NOBODY)
    assert raised.value.http_status_code == 404
    other = client.create_glossary("Others", "en", "de", {"dog": "Hund", "cat": "Mieze"})
    options: Any = {"source_lang": "en", "target_lang": "de"}
    for ids, terms in (([made, other], {"Köter", "Mieze"}), ([other.glossary_id, made], {"Hund", "Mieze"})):
        found = str(client.translate_text("the dog sees a cat", glossary_ids=ids, **options))
        assert {*re.findall(r"\w+", found)} & {"Köter", "Hund", "Mieze"} == terms
    with pytest.raises(deepl.DeepLException, match="No glossary"):
        client.translate_text("a", glossary_ids=[made, NOBODY], **options)
    with pytest.raises(deepl.DeepLException, match="'Animals' has no dictionary from en to pt-BR"):
        client.translate_text("a", source_lang="en", target_lang="pt-BR", glossary=made.glossary_id)
    body = {"text": ["the dog"], "target_lang": "de", "glossary_ids": made.glossary_id}
    refused = httpx.post(f"{address}/v2/translate", json=body)
    assert refused.status_code == 400
    assert refused.json() == {"message": "Use of a glossary requires the source_lang parameter to be specified."}
    answer = httpx.post(f"{address}/v2/translate", json=body | {"source_lang": "EN"}).raise_for_status().json()
    assert "Köter" in answer["translations"][0]["text"]
    many = httpx.post(f"{address}/v2/translate", json=body | {"source_lang": "EN", "glossary_ids": ["a"] * 6})
    assert many.status_code == 400
    assert "6 glossaries; the limit is 5" in many.json()["message"]
