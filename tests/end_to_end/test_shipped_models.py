"""What a user of the shipped models meets: sentences of our own, through a real server."""

# ruff: noqa: RUF001  Russian is one of the languages.

import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unicodedata import normalize

import httpx
import pytest

from tests.running_service import ROOT

pytestmark = pytest.mark.process

ARTIFACTS = ROOT / "artifacts"

SENTENCES = [
    "A man is riding a horse on the beach.",
    "Two dogs play in the snow.",
    "I don't know.",
    "Where is the station?",
    "She has been working here for three years, and she still likes it.",
    "A young girl in a red dress is standing in front of a large building, holding a small brown dog in her arms.",
    "Thank you very much!",
    "He is reading a book.",
]


@pytest.mark.parametrize(
    ("text", "source", "target", "words"),
    [
        ("A man is riding a horse on the beach.", "en", "fr", ["homme", "cheval", "plage"]),
        ("Two dogs play in the snow.", "en", "fr", ["deux", "chiens", "neige"]),
        ("Bread", "en", "fr", ["pain"]),  # with its capital the model takes it for a name
        ("Bread", "en", "de", ["brot"]),
        ("Smith", "en", "fr", ["smith"]),
        ("Where is the station?", "en", "fr", ["où", "gare"]),
        ("He is reading a book.", "en", "fr", ["il", "livre"]),  # "il lit" and "il est en train de lire" are both right
        ("Un homme monte à cheval sur la plage.", "fr", "en", ["man", "horse", "beach"]),
        ("Deux chiens jouent dans la neige.", "fr", "en", ["two", "dogs", "snow"]),
        ("Marie a rencontré Zoltan Grzegorz en 1987.", "fr", "en", ["mary", "met", "zoltan", "grzegorz", "1987"]),
        ("Two dogs play in the snow.", "en", "de", ["zwei", "hunde", "schnee"]),
        ("Zwei Hunde spielen im Schnee.", "de", "en", ["two", "dogs", "snow"]),
        ("Wo ist der Bahnhof?", "de", "en", ["where", "station"]),
        ("Где мой паспорт?", "ru", "en", ["where", "my", "passport"]),
        ("Моя сестра живёт в Москве.", "ru", "en", ["my", "sister", "lives", "moscow"]),
        ("My sister lives in London.", "en", "ru", ["моя", "сестра", "живёт", "лондоне"]),
        ("I have a black dog.", "en", "ru", ["меня", "чёрная", "собака"]),
        ("駅はどこですか。", "ja", "en", ["where", "station"]),
        ("私の妹は東京に住んでいます。", "ja", "en", ["my", "sister", "lives", "tokyo"]),
    ],
)
def test_a_sentence_is_translated(server: httpx.Client, text: str, source: str, target: str, words: list[str]) -> None:
    body = {"text": text, "source": source, "target": target}
    answer = server.post("/translate", json=body).raise_for_status().json()
    [translation] = answer["translations"]
    assert (answer["source"], answer["target"]) == (source, target)
    assert translation["finish_reason"] == "eos"
    found = re.findall(r"\w+", translation["text"].lower())
    assert [word for word in words if word not in found] == []


@pytest.mark.parametrize(
    ("strange", "plain", "source", "target"),
    [
        ("\ufeffA dog\u00a0runs\u200b.", "A dog runs.", "en", "fr"),
        ("The ﬁsh is here…", "The fish is here...", "en", "de"),
        (normalize("NFD", "Où est l'école ?"), "Où est l'école ?", "fr", "en"),
        ("Das Kranken\u00adhaus ist alt.", "Das Krankenhaus ist alt.", "de", "en"),
        ("Ста\u0301рый за\u0301мок стоит на горе.", "Старый замок стоит на горе.", "ru", "en"),
        (normalize("NFD", "子どもたちは公園で遊んでいます。"), "子どもたちは公園で遊んでいます。", "ja", "en"),
    ],
)
def test_what_nobody_sees_changes_no_answer(
    server: httpx.Client, strange: str, plain: str, source: str, target: str
) -> None:
    asked = {"text": [strange, plain], "source": source, "target": target}
    found = [one["text"] for one in server.post("/translate", json=asked).raise_for_status().json()["translations"]]
    assert found[0] == found[1]
    body = {"text": [strange, plain], "model": f"translate-{source}-{target}"}
    embedded = server.post("/embed", json=body).raise_for_status().json()
    assert embedded["embeddings"][0] == embedded["embeddings"][1]
    predicted = server.post("/classify", json={"text": [strange, plain]}).raise_for_status().json()["predictions"]
    assert predicted[0] == predicted[1]


@pytest.mark.parametrize(
    ("source", "target"),
    [("en", "fr"), ("fr", "en"), ("en", "de"), ("de", "en"), ("en", "ru"), ("ru", "en"), ("en", "ja"), ("ja", "en")],
)
def test_long_numbers_and_codes_come_out_whole(server: httpx.Client, source: str, target: str) -> None:
    numbers = ["01 23 45 67 89", "192.168.1.1", "22500", "2033-05-12", "1234567", "A1B2C3", "`npm install`"]
    words = {
        "en": "Tom has {}.",
        "fr": "Tom a {}.",
        "de": "Tom hat {}.",
        "ru": "У Тома есть {}.",
        "ja": "トムは{}を持っています。",
    }
    body = {"text": [words[source].format(number) for number in numbers], "source": source, "target": target}
    found = [one["text"] for one in server.post("/translate", json=body).raise_for_status().json()["translations"]]
    assert [number for number, text in zip(numbers, found, strict=True) if number not in text] == []


@pytest.mark.parametrize("text", ["1990", "100%", "12:30", "=====", "* * *", "?", "½", "1.\n2.\n", "(" * 4000])
def test_a_text_without_letters_comes_back_as_it_is(server: httpx.Client, text: str) -> None:
    body = {"text": text, "source": "en", "target": "fr"}
    assert server.post("/translate", json=body).raise_for_status().json()["translations"][0]["text"] == text


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("I could watch this film every week.", "positive"),
        ("A wonderful film, funny and moving from start to finish.", "positive"),
        ("Boring, badly acted and far too long. Avoid it.", "negative"),
        ("The worst film I have seen this year.", "negative"),
    ],
)
def test_a_text_is_labelled(server: httpx.Client, text: str, label: str) -> None:
    [prediction] = server.post("/classify", json={"text": text}).raise_for_status().json()["predictions"]
    assert prediction["label"] == label
    assert sum(prediction["scores"].values()) == pytest.approx(1)


def test_marks_of_a_word_processor_and_wide_letters_change_no_label(server: httpx.Client) -> None:
    written = [
        "I didn\u2019t like it.",
        "A \u201cmasterpiece\u201d indeed.",
        "\uff27\uff32\uff25\uff21\uff34\uff01",
        "so\u2009dull",
    ]
    typed = ["I didn't like it.", 'A "masterpiece" indeed.', "GREAT!", "so dull"]
    found, expected = (
        server.post("/classify", json={"text": texts}).raise_for_status().json()["predictions"]
        for texts in (written, typed)
    )
    assert found == expected


def test_sixty_four_clients_at_once_get_the_answers_of_one_at_a_time_to_the_last_bit(server: httpx.Client) -> None:
    """Scores too: whatever lengths and beams share a step, each row is computed as if it were alone."""
    requests = [
        {
            "text": [f"{SENTENCES[i % 8]} {SENTENCES[i % 7]}", SENTENCES[i % 5]][: 1 + i % 2],
            "target": "fr",
            "beam_size": 1 + i % 5,
        }
        for i in range(64)
    ]

    def ask(request: dict[str, object]) -> Any:
        return server.post("/translate", json=request).raise_for_status().json()["translations"]

    alone = [ask(request) for request in requests]
    with ThreadPoolExecutor(64) as clients:
        together = list(clients.map(ask, requests))
    assert together == alone


def test_white_space_lines_and_unknown_characters_survive(server: httpx.Client) -> None:
    text = "  A dog runs.\n\n\tTwo cats sleep.  \n😀\n"
    [translation] = (
        server.post("/translate", json={"text": text, "target": "fr"}).raise_for_status().json()["translations"]
    )
    assert [len(line) > 0 for line in translation["text"].split("\n")] == [True, False, True, True, False]
    assert translation["text"].startswith("  ")
    for segment in translation["segments"]:
        start, end = segment["source"]
        assert text[start:end].strip() == text[start:end] != ""


def test_models_tell_their_scores_and_metrics_count(server: httpx.Client) -> None:
    models = {model["name"]: model for model in server.get("/models").raise_for_status().json()["models"]}
    assert sorted(models) == sorted(path.parent.name for path in ROOT.glob("artifacts/*/manifest.json"))
    for name, model in models.items():
        scores = json.loads((ARTIFACTS / name / "evaluation.json").read_text(encoding="utf-8"))
        scores.pop("confidence", None)  # a map, which is no score
        assert model["evaluation"] == scores != {}
    server.post("/translate", json={"text": "Hi.", "target": "fr"}).raise_for_status()
    assert 'attend_requests_total{dialect="native",route="/translate",status="200"}' in server.get("/metrics").text
