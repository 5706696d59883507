import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.base.errors import InvalidDocument
from service.documents.contents import ReadOptions
from service.documents.localization import json_messages
from tests.service.documents.translating import Opened, translated

MESSAGES = r"""{
  "title" : "Two dogs", "n": [1, true, null, "a \"red\" bus", ""],
  "caf\u00e9": {"a\/b": "one\/two", "half": "\ud83d", "e\u0301": "caf\u00e9"}
}
"""
PLURALS = """{
  "dog_one": "a dog",
  "dog_other": "{{count}} dogs",
  "no_one": "nobody",
  "no_other": "no other",
  "place_ordinal_one": "{{count}}st", "place_ordinal_other": "{{count}}th",
  "cat": {"one": "a cat", "other": "cats"}
}"""
VALUES = st.recursive(
    st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=15,
)


def to(target: str, source: str = "en") -> ReadOptions:
    return ReadOptions(source=source, target=target)


def test_values_are_translated_and_everything_else_stays() -> None:
    new = translated(Opened(json_messages.rewrite, MESSAGES.encode(), to("fr"))).decode()
    expected = MESSAGES.replace("Two dogs", "TWO DOGS").replace(r"a \"red\" bus", r"A \"RED\" BUS")
    assert new == expected.replace(r"one\/two", r"ONE\/TWO").replace(r': "caf\u00e9"', r': "CAF\u00c9"')


@given(VALUES, st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]), st.booleans())
def test_without_a_translation_a_file_comes_out_byte_for_byte(value: Any, encoding: str, is_ascii: bool) -> None:
    data = json.dumps(value, ensure_ascii=is_ascii).encode(encoding)
    contents = Opened(json_messages.rewrite, data, to("ru"))
    assert all(contents.texts)
    assert contents.write(contents.texts) == data


@given(VALUES)
def test_a_translation_has_the_same_names_and_numbers(value: Any) -> None:
    def outline(tree: Any) -> Any:
        if isinstance(tree, dict):
            return {name: outline(inner) for name, inner in tree.items()}
        return [outline(inner) for inner in tree] if isinstance(tree, list) else tree if isinstance(tree, int) else ""

    contents = Opened(json_messages.rewrite, json.dumps(value).encode(), to("de"))
    assert outline(json.loads(contents.write([f'"{text}\\' for text in contents.texts]))) == outline(value)


@pytest.mark.parametrize(
    ("target", "dogs", "places", "cats"),
    [
        ("de", ["dog_one", "dog_other"], ["one", "other"], ["one", "other"]),
        ("ru", ["dog_one", "dog_few", "dog_many", "dog_other"], ["other"], ["one", "few", "many", "other"]),
        ("ja", ["dog_other"], ["other"], ["other"]),
    ],
)
def test_plurals_get_the_forms_of_the_target(target: str, dogs: list[str], places: list[str], cats: list[str]) -> None:
    text = translated(Opened(json_messages.rewrite, PLURALS.encode(), to(target))).decode()
    new = json.loads(text)
    assert [name for name in new if name.startswith("dog")] == dogs
    assert [name.rpartition("_")[2] for name in new if name.startswith("place")] == (
        places if target != "de" else ["other"]
    )
    assert [*new["cat"]] == cats
    assert (new["no_one"], new["no_other"]) == ("NOBODY", "NO OTHER")
    assert new["dog_other"].lower() == "{{count}} dogs"
    assert text.count("\n") == PLURALS.count("\n") + len(dogs) - 2


def test_the_language_of_a_file_becomes_the_target() -> None:
    data = b'{"en-GB": {"a": "dog"}}'
    assert translated(Opened(json_messages.rewrite, data, to("de"))) == b'{"de": {"a": "DOG"}}'
    assert translated(Opened(json_messages.rewrite, data, to("de", "fr"))) == b'{"en-GB": {"a": "DOG"}}'
    assert translated(Opened(json_messages.rewrite, b'{"en": "dog"}', to("de"))) == b'{"en": "DOG"}'
    versioned = b'{"version": "1.0", "en": {"a": "dog"}, "n": 1, "ru": {"a": "dog"}}'
    expected = b'{"version": "1.0", "de": {"a": "DOG"}, "n": 1, "ru": {"a": "dog"}}'
    assert translated(Opened(json_messages.rewrite, versioned, to("de"))) == expected
    names = b'{"id": {"a": "dog"}, "title": {"b": "cat"}}'
    assert translated(Opened(json_messages.rewrite, names, to("de", "id"))) == names.replace(b"dog", b"DOG").replace(
        b"cat", b"CAT"
    )


def test_only_the_source_of_several_languages_is_translated() -> None:
    data = b'{"en": {"a": "dog"}, "fr": {"a": "chien"}}'
    assert translated(Opened(json_messages.rewrite, data, to("de"))) == data.replace(b'"en', b'"de').replace(
        b"dog", b"DOG"
    )
    with pytest.raises(InvalidDocument, match="texts in fr already"):
        Opened(json_messages.rewrite, data, to("fr"))


def test_forms_that_are_not_together_stay_as_they_are() -> None:
    data = b'{"dog_other": "{{count}} dogs", "x": 1, "dog_one": "a dog", "one": "b", "z": {"one": 1, "other": "%d"}}'
    new = json.loads(translated(Opened(json_messages.rewrite, data, to("ru"))))
    assert [*new] == ["dog_other", "x", "dog_one", "one", "z"]
    assert [*new["z"]] == ["one", "other"]


@pytest.mark.parametrize("value", ["mainMenu", "MainMenu", "app.title", "Dogs::Cat", "en-US", "2027-01-31T10:00:00Z"])
def test_an_identifier_stays(value: str) -> None:
    assert Opened(json_messages.rewrite, f'{{"a": "{value}", "b": "{value} runs"}}'.encode()).texts == [f"{value} runs"]


@pytest.mark.parametrize("value", ["OK", "Settings", "E-mail", "and/or", "Done.", "DOGS", "10:30"])
def test_a_word_is_a_text(value: str) -> None:
    assert Opened(json_messages.rewrite, f'["{value}"]'.encode()).texts == [value]


ARB = """{
  "@@locale": "en_US", "@@context": "the app",
  "hello": "Hello, {name}!", "@hello": {"description": "a greeting", "placeholders": {"name": {"type": "String"}}},
  "dogs": "You have {n, plural, =0{no dogs} other{{n} dogs}}."
}"""


def test_messages_of_flutter_keep_their_metadata() -> None:
    contents = Opened(json_messages.rewrite_arb, ARB.encode(), to("pt-BR"))
    branches = "=0 {You have no dogs.} one {You have {n} dogs.} many {You have {n} dogs.} other {You have {n} dogs.}"
    assert contents.texts == ["Hello, {name}!", f"{{n, plural, {branches}}}"]
    new = json.loads(contents.write(["Olá, {name}!", "x"]))
    assert new == json.loads(ARB) | {"@@locale": "pt_BR", "hello": "Olá, {name}!", "dogs": "x"}
    assert contents.write(contents.texts) == ARB.encode()


@pytest.mark.parametrize("data", [b"", b"{'a': 1}", b"[" * 20_000, b'"caf\xe9"', b"9" * 5_000, b'{"a": "b"} x'])
def test_a_file_that_is_not_json_is_refused(data: bytes) -> None:
    for rewrite in (json_messages.rewrite, json_messages.rewrite_arb):
        with pytest.raises(InvalidDocument):
            Opened(rewrite, data)
