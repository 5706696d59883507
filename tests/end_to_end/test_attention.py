"""What the shipped models show of themselves, through a real server."""

from typing import Any
from unicodedata import normalize

import httpx
import numpy as np
import pytest

pytestmark = pytest.mark.process

ALIGNED = [
    ("A man is riding a horse on the beach.", "man-homme horse-cheval beach-plage"),
    ("Two dogs play in the white snow.", "Two-Deux dogs-chiens white-blanche snow-neige"),
    ("Where is the station?", "Where-Où station-gare"),
    ("The little girl is reading a red book.", "girl-fille reading-lit red-rouge book-livre"),
    ("My father bought a new car yesterday.", "father-père new-nouvelle car-voiture yesterday-hier"),
    ("Three women are dancing in the street.", "Three-Trois women-femmes dancing-dansent street-rue"),
    ("The old house has a green door.", "house-maison green-verte door-porte"),
    ("I drink coffee every morning.", "coffee-café every-chaque morning-matin morning-matins"),
    ("Tom speaks French very well.", "Tom-Tom speaks-parle French-français well-bien"),
    ("A black cat is sleeping under the table.", "black-noir cat-chat table-table"),
    ("The children are playing football in the park.", "children-enfants football-football football-foot park-parc"),
    ("She has a blue bag and black shoes.", "bag-sac blue-bleu black-noires shoes-chaussures"),
]
"""Obvious words, by hand; a pair counts where the translation has the French word."""


def ask(server: httpx.Client, path: str, **body: Any) -> Any:
    if path == "/translate":
        body = {"source": "en", "target": "fr"} | body
    answer = server.post(path, json=body).raise_for_status().json()
    return (answer.get("translations") or answer["predictions"])[0]


def test_obvious_words_are_aligned(server: httpx.Client) -> None:
    right, missed = 0, []
    for text, pairs in ALIGNED:
        words = ask(server, "/translate", text=text, alignment=True)["alignment"]["words"]
        linked = set()
        for pair in words["pairs"].split():
            source, target = map(int, pair.split("-"))
            linked.add((words["source"][source]["token"], words["target"][target]["token"]))
        there = {word["token"] for word in words["target"]}
        for pair in pairs.split():
            source_word, target_word = pair.split("-")
            if target_word in there:
                right += (source_word, target_word) in linked
                missed += [] if (source_word, target_word) in linked else [f"{text}: {pair}"]
    assert right + len(missed) >= 25, "too few of the expected words were written to tell"
    assert right / (right + len(missed)) >= 0.9, missed


@pytest.mark.parametrize("text", ["🎉 Bravo, cafe\u0301!", "A so\u00adft \uff44og", "A\u00a0dog  runs. \n\n Two\tdogs"])
def test_spans_are_of_the_text_as_it_was_sent(server: httpx.Client, text: str) -> None:
    translation = ask(server, "/translate", text=text, attention={"heads": "mean", "layers": "last"}, alignment=True)
    attention = translation["attention"]
    for tokens, whole in ((attention["source"], text), (attention["target"], translation["text"])):
        covered = {i for token in tokens for i in range(*token["span"])}
        assert "".join(whole[i] for i in range(len(whole)) if i not in covered).strip() in ("", "🎉", "\u00ad")
        for token in tokens:
            shown = token["token"].removeprefix("▁")
            if not shown.startswith(("<", "▁")):
                assert shown.strip() in normalize("NFKC", whole[slice(*token["span"])].replace("\u00ad", ""))


def test_what_is_not_translated_has_the_span_of_the_whole_and_the_tokens_of_what_stands_for_it(
    server: httpx.Client,
) -> None:
    text = "日本語 and English"
    translation = ask(server, "/translate", text=text, attention={"heads": "mean", "layers": "last"}, alignment=True)
    for tokens, whole in (
        (translation["attention"]["source"], text),
        (translation["attention"]["target"], translation["text"]),
    ):
        start = whole.index("日本語")
        inside = [token for token in tokens if start <= token["span"][0] < start + 3]
        assert {tuple(token["span"]) for token in inside} == {(start, start + 3)}
        assert "日" not in "".join(token["token"] for token in inside)


@pytest.mark.parametrize("text", ["A masterpiece.", "Boring. " * 130, "Not bad, but 🙄 too long."])
def test_evidence_covers_the_text_and_its_logits_are_those_of_the_answer(server: httpx.Client, text: str) -> None:
    prediction = ask(server, "/classify", text=text, evidence=True, timeout_s=120)
    evidence = prediction["evidence"]
    covered = {i for token in evidence["tokens"] for i in range(*token["span"])}
    assert "".join(text[i] for i in range(len(text)) if i not in covered).strip() == ""
    scores = np.exp(list(evidence["logits"].values()))
    assert dict(zip(evidence["logits"], scores / scores.sum(), strict=True)) == pytest.approx(prediction["scores"])


def test_markup_and_what_is_no_language_come_out_as_they_went_in(server: httpx.Client) -> None:
    text = (
        '<p class="a">The <b>red car</b> and the <a href="/x?a=1&amp;b=2" title=\'"\'>old house</a> 🎉</p>'
        "<pre>  a &lt; b </pre>"
        "<p>Write to bob@example.org, see https://example.org/a?b=c or run <code>make  it</code>.</p>"
    )
    translated = ask(server, "/translate", text=text, format="html")["text"]
    for part in (
        '<p class="a">',
        '<a href="/x?a=1&amp;b=2" title=\'"\'>',
        "<pre>  a &lt; b </pre>",
        "<code>make  it</code>",
        "bob@example.org",
        "https://example.org/a?b=c",
        "🎉",
    ):
        assert translated.count(part) == text.count(part), (part, translated)
    assert translated.index("<b>") < translated.index("voiture") < translated.index("</b>")
    assert translated.index("<a ") < translated.index("maison") < translated.index("</a>")
