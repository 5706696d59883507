"""Programs that use DeepL's interface: one by DeepL's client, others by bodies that they write themselves."""

import json
import re
from pathlib import Path
from typing import Any

import deepl
import httpx
import pytest
from deepl_i18n import cli

KEY = "a-key:fx"
SETTINGS = {"api_keys": KEY}
TRANSLATORS = {"from-english": (3, "en", "de fr")}
ENGLISH = {
    "home": {
        "title": "the house",
        "dogs": "{{count}} dogs & cats run",
        "hello": "the cat of {name} has %d <b>dogs</b>.",
    },
    "brand": "Attend is a house.",
}


def test_deepl_i18n_translates_files_with_placeholders_and_glossaries(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(deepl.Translator, "_DEEPL_SERVER_URL_FREE", address)
    monkeypatch.setenv("DEEPL_API_KEY", KEY)
    monkeypatch.chdir(tmp_path)
    Path("out").mkdir()
    config = {
        "source_lang": "EN",
        "output_languages": ["DE", "FR"],
        "glossary": "glossary.json",
        "formality": "prefer_more",
        "context": "a page",
        "targets": {"app": {"input_path": "en.json", "output_dir": "out"}},
    }
    glossary = {"doNotTranslate": ["Attend"], "terms": {"house": {"de": "Bude", "fr": "baraque"}}}
    for name, content in (("config", config), ("glossary", glossary), ("en", ENGLISH)):
        Path(f"{name}.json").write_text(json.dumps(content))
    assert cli.main(["translate", "app"]) in (0, None)
    assert cli.main(["check", "app"]) in (0, None)
    assert cli.main(["usage"]) in (0, None)
    assert "no problems found" in capsys.readouterr().out
    for code, house in (("de", "Bude"), ("fr", "baraque")):
        found = json.loads(Path(f"out/{code}.json").read_text())
        assert house in found["home"]["title"]
        assert {"Attend", house} <= {*re.findall(r"\w+", found["brand"])}
        assert all(kept in found["home"]["hello"] for kept in ("{name}", "%d", "<b>", "</b>"))
    listed = httpx.get(f"{address}/v3/glossaries", headers={"Authorization": f"DeepL-Auth-Key {KEY}"})
    assert listed.json() == {"glossaries": []}  # it has deleted them


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (  # Weblate
            {
                "json": {
                    "text": ['the cat <x id="8"></x> sees &lt;a&gt;', '<x id="0"></x>'],
                    "source_lang": "EN",
                    "target_lang": "DE",
                    "formality": "default",
                    "tag_handling": "xml",
                    "ignore_tags": ["x"],
                    "context": "a page",
                }
            },
            ['<x id="8"></x>', '<x id="0"></x>'],
        ),
        (  # django-rosetta, which escapes nothing
            {
                "data": {
                    "tag_handling": "xml",
                    "ignore_tags": "var",
                    "target_lang": "DE",
                    "text": 'the dog of <var type="s">name</var> & <var type="d">n</var> cats run',
                }
            },
            ['<var type="s">name</var>', '<var type="d">n</var>'],
        ),
        (  # wagtail-localize
            {
                "data": {
                    "text": ["the <b>dog</b> runs", 'a <a id="a1">cat</a> sees'],
                    "tag_handling": "xml",
                    "source_lang": "EN",
                    "target_lang": "FR",
                }
            },
            ["<b>", "</b>", '<a id="a1">', "</a>"],
        ),
    ],
)
def test_bodies_of_other_programs_are_read(address: str, sent: Any, kept: list[str]) -> None:
    headers = {"Authorization": f"DeepL-Auth-Key {KEY}"}
    answer = httpx.post(f"{address}/v2/translate", headers=headers, **sent).raise_for_status().json()
    text = " ".join(translation["text"] for translation in answer["translations"])
    assert [text.count(tag) for tag in kept] == [1] * len(kept)
