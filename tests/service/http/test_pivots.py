"""Two models where none has the direction: each sentence comes out as they give it one after the other."""

import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from service.base.errors import (
    DeadlinePassed,
    Draining,
    InvalidFields,
    RequestError,
    UnsupportedLanguagePair,
    UnsupportedOption,
)
from service.markup.passages import ParsedText
from service.schemas.answers import Alignment, Links, Segment, ShownToken
from service.tasks.translation.alignment import compose
from service.tasks.translation.leg import Leg
from service.tasks.translation.pivot import _segments
from tests.service.conftest import Client, post, problem
from tests.service.tiny_artifacts import save_translators
from tests.service.tiny_classifier import TinyClassifier

pytestmark = pytest.mark.anyio

SENTENCES = ["the red dog runs.", "a cat sees the horse.", "the dog sees."]


@pytest.fixture(scope="module")
def through_english(tmp_path_factory: pytest.TempPathFactory, tiny_classifier: TinyClassifier) -> Path:
    """French and Russian into English, English into German."""
    root = tmp_path_factory.mktemp("through_english")
    tiny_classifier.save(root / "reviews")
    return save_translators(root, {"fr-en": (3, "fr", "en"), "ru-en": (7, "ru", "en"), "en-de": (11, "en", "de")})


@pytest.fixture(scope="module")
def artifacts(through_english: Path) -> Path:
    return through_english


asked = partial(post, path="/translate")


async def one_after_the_other(client: Client, sentence: str, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    first = await asked(client, text=sentence, source="fr", target="en")
    (into,) = first["translations"]
    second = await asked(client, text=into["text"], source="en", target="de", split_sentences=False, **options)
    return into, second["translations"][0]


async def test_each_sentence_goes_through_both(client: Client) -> None:
    answer = await asked(client, text=" ".join(SENTENCES), source="fr", target="de")
    legs = [await one_after_the_other(client, sentence) for sentence in SENTENCES]
    many = await asked(client, text=[*SENTENCES, " ".join(SENTENCES)], source="fr", target="de")
    (translation,) = answer["translations"]
    assert translation["text"] == " ".join(second["text"] for _, second in legs)
    assert translation["source_tokens"] == sum(leg["source_tokens"] for both in legs for leg in both)
    assert translation["target_tokens"] == sum(leg["target_tokens"] for both in legs for leg in both)
    tokens = [sum(both[n]["target_tokens"] for both in legs) for n in (0, 1)]
    scores = [sum(both[n]["score"] * both[n]["target_tokens"] for both in legs) / tokens[n] for n in (0, 1)]
    assert translation["score"] == pytest.approx(sum(scores), rel=1e-4)
    assert answer["pivot"] == {"language": "en", "models": ["fr-en", "en-de"]}
    assert (answer.get("model"), answer["source"], answer["target"]) == (None, "fr", "de")
    assert answer["usage"]["characters"] == len(" ".join(SENTENCES))
    for segment, sentence, (_, second) in zip(translation["segments"], SENTENCES, legs, strict=True):
        (start, end), (into, to) = segment["source"], segment["target"]
        assert " ".join(SENTENCES)[start:end] == sentence
        assert translation["text"][into:to] == second["text"]
    assert many["translations"][-1] == translation
    assert [one["text"] for one in many["translations"][:-1]] == [second["text"] for _, second in legs]


async def test_alternatives_and_length_are_those_of_the_second(client: Client) -> None:
    options: dict[str, Any] = {"beam_size": 4, "alternatives": 3, "max_target_tokens": 5}
    answer = await asked(client, text=SENTENCES[0], source="fr", target="de", **options)
    into = (await asked(client, text=SENTENCES[0], source="fr", target="en", beam_size=4))["translations"][0]
    second = await asked(client, text=into["text"], source="en", target="de", split_sentences=False, **options)
    (translation,), (expected,) = answer["translations"], second["translations"]
    assert translation["text"] == expected["text"]
    assert [one["text"] for one in translation["alternatives"]] == [one["text"] for one in expected["alternatives"]]
    for one, other in zip(translation["alternatives"], expected["alternatives"], strict=True):
        assert one["score"] == pytest.approx(other["score"] + into["score"], rel=1e-4)


@pytest.mark.parametrize(
    "body",
    [
        {
            "text": "<p>The <b>dog</b> of {name}.</p><ul><li>A <i>cat</i> &amp; <code>x()</code></li></ul>",
            "format": "html",
        },
        {
            "text": "<p title='{name}'>The <b title='A dog'>cat</b>.</p><ul><li title='Attend'></li></ul>",
            "format": "html",
        },
        {
            "text": "<B><p>The <b>dog</b> of {name}.</p><code>x()</code><p>A <i>cat</i> &amp; <x>Attend</x></p></B>",
            "format": "xml",
            "tags": {"keep": ["code", "x"]},
        },
        {"text": "# The **dog**\n\nA `cat` and [Attend](https://example.org) of {name}.\n", "format": "markdown"},
        {"text": "The **dog** of {name}. See Attend at https://example.org!\n\n- a _cat_ 42 😀"},
    ],
)
async def test_tags_kept_spans_and_terms_survive_both(client: Client, body: dict[str, Any]) -> None:
    kept = {"dog": "Köter"}
    answer = await asked(client, source="fr", target="de", glossary=kept, keep=["Attend"], **body)
    direct = await asked(client, source="fr", target="en", glossary=kept, keep=["Attend"], **body)
    text, whole = answer["translations"][0]["text"], direct["translations"][0]["text"]
    pieces = ("Köter", "{name}", "https://example.org", "Attend", "😀", "<p", "</p>", "<B>", "</B>", "<li", "</li>",
              "<code>x()</code>", "# ", "`cat`", "- ")  # fmt: skip
    for piece in (*pieces, "<b", "</b>", "<i>", "</i>", "**", "_"):
        assert text.count(piece) == body["text"].replace("dog", "Köter").count(piece) == whole.count(piece), piece


async def test_html_is_marked_as_in_the_language_of_the_whole_translation(client: Client) -> None:
    html = "<p lang=fr><b lang=en>the</b> chien<p xml:lang=fr>le chat"
    whole = await asked(client, source="fr", target="de", text=html, format="html")
    direct = await asked(client, source="fr", target="en", text=html, format="html")
    assert re.findall("lang=..", whole["translations"][0]["text"]) == ["lang=de", "lang=en", "lang=de"]
    assert re.findall("lang=..", direct["translations"][0]["text"]) == ["lang=en"] * 3


async def test_sources_that_nobody_names_may_go_through_a_pivot(client: Client) -> None:
    texts = ["le chien court sur la plage", "the dog runs on the beach", "собака бежит по пляжу", "42"]
    answer = await asked(client, text=texts, source="auto", target="de")
    alone = [
        await asked(client, text=text, source=source, target="de")
        for text, source in zip(texts, ("fr", "en", "ru"), strict=False)
    ]
    found = answer["translations"]
    assert [one.get("detected", {}).get("language") for one in found] == ["fr", "en", "ru", None]
    assert [one.get("model") for one in found] == [None, "en-de", None, None]
    assert [one.get("pivot", {}).get("models") for one in found] == [["fr-en", "en-de"], None, ["ru-en", "en-de"], None]
    assert [one["text"] for one in found[:3]] == [one["translations"][0]["text"] for one in alone]


@pytest.mark.parametrize(
    ("body", "error", "part"),
    [
        ({"pivot": False}, UnsupportedLanguagePair, "from fr to de; .* `pivot` .* en"),
        ({"model": "fr-en"}, UnsupportedLanguagePair, "fr-en .* from fr to de"),
        ({"attention": True}, UnsupportedOption, "`attention` .*fr-en and en-de, through en"),
        ({"alternatives": 4}, InvalidFields, "`alternatives` .* `beam_size`"),
        ({"source": "es"}, UnsupportedLanguagePair, "from es to de"),
        ({"target": "ja"}, UnsupportedLanguagePair, "from fr to ja"),
    ],
)
async def test_what_cannot_be_is_refused(
    client: Client, body: dict[str, Any], error: type[RequestError], part: str
) -> None:
    response = await client.post("/translate", json={"text": "a", "source": "fr", "target": "de"} | body)
    assert re.search(part, problem(response, error)["detail"])


async def test_one_deadline_holds_for_both(client: Client) -> None:
    body = {"text": ["the dog " * 200] * 40, "source": "fr", "target": "de", "timeout_s": 0.001}
    problem(await client.post("/translate", json=body), DeadlinePassed)


async def test_a_service_that_drains_between_the_legs_goes_on_with_the_second(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    drain, translated = client._transport.app.state.serving.drain, Leg.translated_texts  # type: ignore[attr-defined]

    async def after_a_drain(self: Leg) -> list[ParsedText]:
        drain()
        return await translated(self)

    monkeypatch.setattr(Leg, "translated_texts", after_a_drain)
    assert await asked(client, text=SENTENCES[0], source="fr", target="de")
    problem(await client.post("/translate", json={"text": "a", "source": "fr", "target": "de"}), Draining)


async def test_languages_are_listed_with_what_can_be_had(client: Client) -> None:
    found = (await client.get("/languages")).raise_for_status().json()["languages"]
    assert found == [
        {"language": "de", "name": "German", "targets": [], "through_pivot": []},
        {"language": "en", "name": "English", "targets": ["de"], "through_pivot": []},
        {"language": "fr", "name": "French", "targets": ["en"], "through_pivot": ["de"]},
        {"language": "ru", "name": "Russian", "targets": ["en"], "through_pivot": ["de"]},
    ]


def links(source: str, target: str, pairs: str) -> Links:
    def tokens(text: str) -> list[ShownToken]:
        starts = [text.index(word) for word in text.split()]
        return [
            ShownToken(token=text[start:].split()[0], span=(start, start + len(text[start:].split()[0])))
            for start in starts
        ]

    return Links(source=tokens(source), target=tokens(target), pairs=pairs, spans=[])


def test_an_alignment_is_that_of_both() -> None:
    """Though they cut the text between them into other tokens."""
    first = links("le chien", "the do g", "0-0 1-1 1-2")
    first.target[1].span, first.target[2].span = (4, 6), (6, 7)
    second = links("the dog", "der Hund", "0-0 1-1")
    both = compose(*(Alignment(**dict(one), words=one) for one in (first, second)))
    assert both.pairs == "0-0 1-1"
    assert both.spans == [((0, 2), (0, 3)), ((3, 8), (4, 8))]


def test_segments_that_the_second_leg_reads_as_one_are_one() -> None:
    first = [Segment(source=(n, n + 1), target=(10 * n, 10 * n + 10)) for n in range(4)]
    second = [Segment(source=place, target=place) for place in ((0, 10), (10, 30), (30, 35), (35, 40))]
    expected = [((0, 1), (0, 10)), ((1, 3), (10, 30)), ((3, 4), (30, 40))]
    assert [(one.source, one.target) for one in _segments(first, second)] == expected
