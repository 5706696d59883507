"""The languages of the shipped models, told from each other through a real server."""

import re

import httpx
import pytest

pytestmark = pytest.mark.process

SENTENCES = {
    "en": "Two dogs play in the snow.",
    "fr": "Deux chiens jouent dans la neige.",
    "de": "Zwei Hunde spielen im Schnee.",
    "ru": "Где мой паспорт?",
    "ja": "駅はどこですか。",
}
SHORT = {"en": "Good night!", "fr": "Bonne nuit !", "de": "Guten Tag", "ru": "Спасибо!", "ja": "東京"}


@pytest.mark.parametrize("texts", [SENTENCES, SHORT], ids=["sentences", "short"])
def test_languages_are_told_apart(server: httpx.Client, texts: dict[str, str]) -> None:
    answer = server.post("/detect", json={"text": [*texts.values()]}).raise_for_status().json()
    assert [detection["languages"][0]["language"] for detection in answer["detections"]] == [*texts]


def test_texts_of_many_languages_in_one_request_become_english(server: httpx.Client) -> None:
    texts = [*SENTENCES.values(), "https://example.org/снег", "😀 42"]
    answer = server.post("/translate", json={"text": texts, "source": "auto", "target": "en"}).raise_for_status().json()
    found = answer["translations"]
    assert [one.get("detected", {}).get("language") for one in found] == [*SENTENCES, None, None]
    assert [one.get("model") for one in found[:5]] == [None, *(f"translate-{code}-en" for code in list(SENTENCES)[1:])]
    assert [found[i]["text"] for i in (0, 5, 6)] == [texts[i] for i in (0, 5, 6)]
    words = [{"two", "dogs", "snow"}, {"two", "dogs", "snow"}, {"where", "passport"}, {"where", "station"}]
    for expected, one in zip(words, found[1:5], strict=True):
        assert expected <= set(re.findall(r"\w+", one["text"].lower()))


def test_english_is_known_and_becomes_each_language(server: httpx.Client) -> None:
    for target in ("fr", "de", "ru", "ja"):
        asked = {"text": [SENTENCES["en"], SENTENCES[target]], "source": "auto", "target": target}
        english, same = server.post("/translate", json=asked).raise_for_status().json()["translations"]
        named = {"text": SENTENCES["en"], "source": "en", "target": target}
        [alone] = server.post("/translate", json=named).raise_for_status().json()["translations"]
        assert (english["text"], english["model"]) == (alone["text"], f"translate-en-{target}")
        assert (same["text"], same["detected"]["language"]) == (SENTENCES[target], target)
