"""Numbers, names of programs and dashes come out of a translation as they went in, with the shipped models."""

import json
import re
from typing import Any

import httpx
import pytest

pytestmark = pytest.mark.process

LOST = [
    ("The bill is $344.75.", ["en-de"], r"344[.,]75"),
    ("He was born on 8.8.1995.", ["en-fr", "en-de", "en-ru"], r"8\.8\.1995"),
    ("The town has 193,544 people.", ["en-de", "en-fr", "en-ja"], r"193[.,\s]?544"),
    ("Her number is 7 744.", ["en-fr", "en-de", "en-ru", "ru-fr"], r"7[.,\s]?744"),
    ("The train leaves at 06:33:39.", ["en-ru"], r"06:33:39"),
    ("The river is 12 m deep.", ["en-ja"], r"12 ?(?:m|メートル)"),
    ("The tank holds 30 m3 of water.", ["en-fr"], r"30[\s\u202f]?m3(?!\d)"),
    (
        "Le train de 15 h 30 coûte 1 250,50 € le 3 mai 2021.",
        ["fr-en"],
        r"15:30 .*1.250[.,]50 .*(?:May 3,? 2021|3 May 2021)",
    ),
    ("It lasted from 1914\u20131918.", ["en-de"], "1914[-\u2013]1918"),
    ("Seiten 3\u20134", ["de-en"], "3[-\u2013]4"),
    ("Platform K\u20117 is closed.", ["en-fr", "en-de", "en-ru"], "K[-\u2011]7"),
    ("The value of itemCount is too big.", ["en-fr", "en-de"], r"itemCount"),
    (
        "The class HttpClient is new in JavaScript.",
        ["en-ru", "en-ja"],
        r"HttpClient.*JavaScript|JavaScript.*HttpClient",
    ),
    ("From Jan 5 to Feb 3.", ["en-fr", "en-de", "en-ru"], r"(?i)5\.? [jя].* 3\.? [fф]"),
    ("It was £3.2 million.", ["en-de", "en-fr"], r"3,2\sM.*£"),
    ("3万2500人が来た。", ["ja-en"], r"32,500"),
    ("Use OrderService or userName in MainWindow.", ["en-fr"], r"OrderService.*userName.*MainWindow"),
]
"""Sentences, and what each translation has; it has no other digits."""


def translated(client: httpx.Client, direction: str, text: str, **options: Any) -> dict[str, Any]:
    body = {"text": text, "source": direction[:2], "target": direction[3:], **options}
    [answer] = client.post("/translate", json=body).raise_for_status().json()["translations"]
    found: dict[str, Any] = answer
    return found


@pytest.mark.parametrize(
    ("text", "direction", "expected"), [(text, one, expected) for text, many, expected in LOST for one in many]
)
def test_nothing_is_lost_in_a_sentence(server: httpx.Client, text: str, direction: str, expected: str) -> None:
    found = translated(server, direction, text)["text"]
    assert len(re.findall(expected, found)) == 1, found
    assert len(re.findall(r"\d", found)) == len(re.findall(r"\d", text)), found


@pytest.mark.parametrize("direction", ["en-fr", "en-de", "en-ru", "en-ja"])
@pytest.mark.parametrize("text", ["It opens at 9am.", "It starts at 3:30pm.", "the 2nd edition", "on Mar 3rd, 2024"])
def test_nothing_english_stays_behind_a_number(server: httpx.Client, text: str, direction: str) -> None:
    assert not re.search(r"\d ?(?:[ap]m|nd|rd)|Mar\b", translated(server, direction, text)["text"])


@pytest.mark.parametrize(
    ("text", "direction", "begins"),
    [
        ("Step 1: Open the box.", "en-fr", "Étape 1"),
        ("Step 1: Open the box.", "en-de", "Schritt 1"),
        ("Will: Where are you?", "en-fr", "Will"),
        ("Rob: Where are you?", "en-de", "Rob"),
    ],
)
def test_labels_with_a_number_are_translated_and_names_of_speakers_are_no_words(
    server: httpx.Client, text: str, direction: str, begins: str
) -> None:
    assert re.match(rf"{begins} ?:", translated(server, direction, text)["text"])


@pytest.mark.parametrize("direction", ["en-fr", "en-de", "en-ru"])
@pytest.mark.parametrize(
    ("text", "spaced"),
    [
        ("Open the door/window.", "Open the door / window."),
        ("red,green", "red, green"),
        ("The dog\u2014the old one\u2014sleeps.", "The dog \u2014 the old one \u2014 sleeps."),
        ("Color:red", "Color: red"),
        ("-It sleeps.", "- It sleeps."),
    ],
)
def test_a_word_that_touches_a_sign_is_translated_as_with_blanks(
    server: httpx.Client, direction: str, text: str, spaced: str
) -> None:
    beside = r"\s*([-/,:\u2013\u2014])\s*"
    expected = re.sub(beside, r"\1", translated(server, direction, spaced)["text"])
    assert translated(server, direction, text)["text"] == expected


def test_what_stands_behind_a_sign_is_found_where_it_is(server: httpx.Client) -> None:
    text = "Open the door/window and write {name} there."
    answer = translated(server, "en-fr", text, alignment=True, confidence=True)
    assert answer["text"].count("{name}") == 1
    assert all(answer["text"][slice(*word["span"])] == word["text"] for word in answer["words"])
    shown = [answer["text"][slice(*word["span"])] for word in answer["alignment"]["words"]["target"]]
    assert "{name}" in shown
    assert not any(word.startswith(" ") or word.endswith(" ") for word in shown)


def test_addresses_in_a_list_stay_on_their_lines(server: httpx.Client) -> None:
    lines = ["-https://a.com/x", "-bob@example.org"]
    answer = translated(server, "en-de", "\n".join(["See these pages.", *lines, "Then go on.", lines[0]]))
    _, *kept, _, last = answer["text"].split("\n")
    assert (kept, last) == (lines, lines[0])


def test_amounts_with_a_currency_have_one_form_in_a_column(server: httpx.Client) -> None:
    amounts = [f"${300 + 10 * i}.75 USD" for i in range(12)]
    cells = "".join(f"<tr><td>Price</td><td>{amount}</td></tr>" for amount in amounts)
    found = translated(server, "en-de", f"<table>{cells}</table>", format="html")["text"]
    assert re.findall(r"<td>([^<]*USD)</td>", found) == [amount.replace(".", ",") for amount in amounts]


def test_a_sentence_among_others_is_mended(server: httpx.Client) -> None:
    text = "<p>A dog runs. <b>Her number</b> is 7 744. Two cats sleep.</p>"
    found = translated(server, "en-fr", text, format="html")["text"]
    assert "7 744" in found
    alone = translated(server, "en-fr", "<p>A dog runs. Two cats sleep.</p>", format="html")["text"]
    first, last = alone.removeprefix("<p>").removesuffix("</p>").split(". ")
    assert first in found
    assert last in found


def test_pieces_of_a_stream_are_mended_too(server: httpx.Client) -> None:
    body = {"text": "A dog runs. The bill is $344.75. Her number is 7 744.", "source": "en", "target": "de"}
    lines = server.post("/translate", json=body, headers={"Accept": "application/x-ndjson"}).text.splitlines()
    *pieces, answer = map(json.loads, lines)
    whole = "".join(piece["piece"] for piece in pieces)
    assert whole == answer["translations"][0]["text"] == translated(server, "en-de", body["text"])["text"]
    assert re.search(r"344,75.*7 744", whole)


def test_checks_tell_what_was_mended(server: httpx.Client) -> None:
    text = "The bill is $344.75. The value of itemCount is too big."
    found = translated(server, "en-de", text, checks=True)
    assert found["checks"] == [
        {"kind": "number", "source": "$344.75", "mended": True},
        {"kind": "name", "source": "itemCount", "mended": True},
    ]
    assert "checks" not in translated(server, "en-de", text)
    assert translated(server, "en-de", "A dog runs.", checks=True)["checks"] == []


def test_checks_tell_of_an_end_that_was_cut(server: httpx.Client) -> None:
    text = "A dog runs (fast) on the long beach."
    found = translated(server, "en-fr", text, checks=True, max_target_tokens=3)["checks"]
    assert found == [{"kind": kind, "source": text, "mended": False} for kind in ("brackets", "end")]
