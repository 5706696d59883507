import json
from typing import Any

import pytest

from service.base.errors import InvalidDocument
from service.documents.contents import ReadOptions
from service.documents.localization import string_catalog
from tests.growth import check_linear
from tests.service.documents.translating import Opened, translated


def unit(text: str, state: str = "translated") -> dict[str, Any]:
    return {"stringUnit": {"state": state, "value": text}}


def plural(**forms: str) -> dict[str, Any]:
    return {"variations": {"plural": {category: unit(text) for category, text in forms.items()}}}


STRINGS: dict[str, Any] = {
    "": {},
    "%lld dogs": {"localizations": {"en": plural(one="a dog", other="%lld dogs")}},
    "Hello": {"comment": "a greeting", "localizations": {"fr": unit("Bonjour"), "zh-Hans": unit("x")}},
    "New": {"localizations": {"fr": unit("", "new")}},
    "Version": {"shouldTranslate": False},
    "key": {"localizations": {"en": {"variations": {"device": {"mac": unit("click"), "other": unit("tap")}}}}},
    "plain": {},
    "sub": {
        "localizations": {
            "en": unit("%#@dogs@ run")
            | {"substitutions": {"dogs": {"formatSpecifier": "lld", **plural(one="a dog", other="%arg dogs")}}}
        }
    },
}


def catalog(indent: int | None = 2, strings: dict[str, Any] = STRINGS) -> bytes:
    value = {"sourceLanguage": "en", "strings": strings, "version": "1.0"}
    text = json.dumps(value, ensure_ascii=False, indent=indent, separators=(",", " : "))
    return text.replace("{}", "{\n\n    }").encode()


def to(target: str, only_missing: bool = False) -> ReadOptions:
    return ReadOptions(source="en", target=target, only_missing=only_missing)


@pytest.mark.parametrize("indent", [2, None])
def test_translations_are_added_as_xcode_writes_them(indent: int | None) -> None:
    new = translated(Opened(string_catalog.rewrite, catalog(indent), to("fr")))
    expected = json.loads(catalog())
    french = {
        "%lld dogs": plural(many="%lld DOGS", one="A DOG", other="%lld DOGS"),
        "Hello": unit("HELLO"),
        "New": unit("NEW"),
        "key": {"variations": {"device": {"mac": unit("CLICK"), "other": unit("TAP")}}},
        "plain": unit("PLAIN"),
        "sub": unit("%#@DOGS@ RUN")
        | {
            "substitutions": {
                "dogs": {"formatSpecifier": "lld", **plural(many="%arg DOGS", one="A DOG", other="%arg DOGS")}
            }
        },
    }
    for key, localization in french.items():
        reviewed = json.loads(json.dumps(localization).replace('"translated"', '"needs_review"'))
        expected["strings"][key].setdefault("localizations", {})["fr"] = reviewed
    assert json.loads(new) == expected
    if indent:
        assert new == catalog(strings=expected["strings"])


@pytest.mark.parametrize(
    ("text", "translation", "written"),
    [
        ("%lld files in %@", "%@ で %lld ファイル", "%2$@ で %1$lld ファイル"),
        ("%#@files@ in %@", "%@ で %#@files@", "%@ で %#@files@"),
        ("%arg files in %@", "%@ で %arg ファイル", "%@ で %arg ファイル"),
    ],
)
def test_conversions_in_another_order_get_numbers(text: str, translation: str, written: str) -> None:
    for localization in (unit(text), plural(other=text)):
        strings = {"a": {"localizations": {"en": localization}}}
        contents = Opened(string_catalog.rewrite, catalog(strings=strings), to("ja"))
        assert f'"{written}"' in contents.write([translation] * len(contents.texts)).decode()


def test_translated_texts_can_be_left_out() -> None:
    contents = Opened(string_catalog.rewrite, catalog(), to("fr", only_missing=True))
    assert "Hello" not in contents.texts
    assert "New" in contents.texts
    new = json.loads(translated(contents))["strings"]
    assert new["Hello"] == STRINGS["Hello"]


def test_without_a_translation_a_file_comes_out_byte_for_byte() -> None:
    for target in ("fr", "ru", "zh-Hans", "en"):
        contents = Opened(string_catalog.rewrite, catalog(), to(target))
        assert contents.write(contents.texts) == catalog()


def test_a_large_catalog_is_read_and_written_in_time() -> None:
    localizations = {"localizations": {"de": unit("ein Hund")}}

    def translate(n: int) -> None:
        data = catalog(None, {f"dog {i}": localizations for i in range(n)}).replace(b" : ", b": ")
        new = translated(Opened(string_catalog.rewrite, data, to("fr")))
        assert data.count(b"localizations") == new.count(b'"fr": {')

    check_linear(translate, 2_000)


def test_a_language_is_found_in_any_form() -> None:
    strings = {"a": {"localizations": {"zh-Hans": unit("x")}}}
    new = json.loads(translated(Opened(string_catalog.rewrite, catalog(strings=strings), to("zh_CN"))))["strings"]
    assert new["a"]["localizations"] == {"zh-Hans": unit("A", "needs_review")}


@pytest.mark.parametrize(
    "data",
    [
        b"[]",
        b"{}",
        b"[" * 20_000,
        b'{"sourceLanguage": "en", "strings": []}',
        b'{"sourceLanguage": "en", "strings": {"a": 1}}',
        b'{"sourceLanguage": "en", "strings": {"a": {"localizations": 5}}}',
        b'{"sourceLanguage": "en", "strings": {"a": {"localizations": {"en": {"stringUnit": {"value": 5}}}}}}',
        catalog(strings={"a": {"localizations": {"en": {"variations": {"plural": {"one": 5}}}}}}),
    ],
)
def test_another_file_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidDocument):
        Opened(string_catalog.rewrite, data, to("fr"))
