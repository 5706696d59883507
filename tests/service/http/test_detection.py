"""Sources that nobody names: each text goes to the model for its language, and what is in the target stays."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from service.base.errors import (
    InferenceFailed,
    InvalidFields,
    LanguageNotDetected,
    RequestError,
    TargetRequired,
    TextTooLong,
    TooManyTexts,
    UnknownModel,
    UnsupportedLanguagePair,
    UnsupportedOption,
)
from service.pool.pool import Pool
from tests.service.conftest import Client, Serve, post, problem
from tests.service.tiny_artifacts import save_translators
from tests.service.tiny_classifier import TinyClassifier

pytestmark = pytest.mark.anyio

ENGLISH = "the dog runs on the beach"
FRENCH = "le chien court sur la plage"
GERMAN = "der Hund rennt am Strand"
RUSSIAN = "собака бежит по пляжу"
SPANISH = "el perro corre por la playa todos los días"


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory: pytest.TempPathFactory, tiny_classifier: TinyClassifier) -> Path:
    """Translators of three languages into English, and one of English."""
    root = tmp_path_factory.mktemp("into_english")
    tiny_classifier.save(root / "reviews")
    into = {f"{source}-en": (3, source, "en") for source in ("fr", "de", "ru")}
    return save_translators(root, into | {"en-fr": (3, "en", "fr")})


translated = partial(post, path="/translate")


@pytest.mark.parametrize("source", [{"source": "auto"}, {}])
async def test_each_text_of_a_list_goes_to_the_model_for_its_language(client: Client, source: dict[str, str]) -> None:
    texts = [RUSSIAN, FRENCH, "42 😀", ENGLISH, GERMAN, FRENCH.upper(), " \n"]
    answer = await translated(client, text=texts, target="en", **source)
    alone = {code: await translated(client, text=text, source=code, target="en")
             for code, text in (("ru", RUSSIAN), ("fr", FRENCH), ("de", GERMAN))}  # fmt: skip
    assert (answer["source"], answer["target"], answer.get("model")) == ("auto", "en", None)
    found = answer["translations"]
    models = [one.get("model") for one in found]
    assert models == ["ru-en", "fr-en", None, None, "de-en", "fr-en", None]
    languages = [one.get("detected", {}).get("language") for one in found]
    assert languages == ["ru", "fr", None, "en", "de", "fr", None]
    assert all(one["detected"]["confidence"] > 0.5 for one in found if "detected" in one)
    assert [found[i]["text"] for i in (2, 3, 6)] == [texts[i] for i in (2, 3, 6)]
    for i, code in ((0, "ru"), (1, "fr"), (4, "de")):
        assert {**alone[code]["translations"][0], "model": f"{code}-en", "detected": found[i]["detected"]} == found[i]
    assert answer["usage"]["source_tokens"] == sum(one["source_tokens"] for one in found) > 0


async def test_nothing_is_detected_where_one_direction_fits(client: Client) -> None:
    answer = await translated(client, text=FRENCH, target="fr")
    named = await translated(client, text=FRENCH, model="de-en")
    assert (answer["model"], answer["source"]) == ("en-fr", "en")
    assert (named["model"], named["source"]) == ("de-en", "de")
    assert "detected" not in answer["translations"][0]


@pytest.mark.parametrize(("source", "target"), [("fr", "fr"), ("FR-ca", "fra"), ("nb", "no"), ("sw", "sw")])
async def test_a_source_that_is_the_target_comes_back(client: Client, source: str, target: str) -> None:
    body = {"text": ["la  plage ", "<b>"], "source": source, "target": target, "beam_size": 4, "alternatives": 2}
    answer = await translated(client, **body)
    problem(await client.post("/translate", json=body | {"model": "none"}), UnknownModel)
    assert [translation["text"] for translation in answer["translations"]] == body["text"]
    assert answer["usage"] == {"characters": sum(map(len, body["text"])), "source_tokens": 0, "target_tokens": 0}
    assert "model" not in answer


@pytest.mark.parametrize(("source", "target"), [("xx", "xx"), ("fr", "de"), ("zh", "zh-Hant")])
async def test_two_languages_without_a_model_are_refused_as_before(client: Client, source: str, target: str) -> None:
    response = await client.post("/translate", json={"text": "a", "source": source, "target": target})
    assert f"from {source} to {target}; available: de-en" in problem(response, UnsupportedLanguagePair)["detail"]


@pytest.mark.parametrize(
    ("body", "error", "values"),
    [
        (
            {"text": SPANISH, "target": "en"},
            LanguageNotDetected,
            ["in Spanish (es)", "to English", "`source`", "de, fr, ru"],
        ),
        (
            {"text": ["a dog", "Hola, ¿cómo estás?"], "target": "en"},
            LanguageNotDetected,
            ["Text 1 of 2", "Spanish (es)"],
        ),
        ({"text": "Grazie mille", "target": "fr"}, LanguageNotDetected, ["in Italian (it)", "to French"]),
        ({"text": "ᏣᎳᎩ", "target": "en"}, LanguageNotDetected, ["letters", "to English", "`source`", "de, fr, ru"]),
        (
            {"text": RUSSIAN, "target": "en", "model": "de-en"},
            LanguageNotDetected,
            ["in Russian (ru)", "to English", "`source`", "de"],
        ),
        ({"text": FRENCH}, TargetRequired, ["`target`", "en, fr"]),
        (
            {"text": FRENCH, "target": "sw"},
            UnsupportedLanguagePair,
            ["to sw", "de-en (de-en), en-fr (en-fr), fr-en (fr-en), ru-en (ru-en)"],
        ),
    ],
)
async def test_an_unserved_language_is_refused_with_a_sentence(
    client: Client, body: dict[str, Any], error: type[RequestError], values: list[str]
) -> None:
    response = await client.post("/translate", json={"source": "auto", **body})
    detail = problem(response, error)["detail"]
    assert [value for value in values if value not in detail] == []


async def test_when_one_model_fails_the_others_are_given_up(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    given_up = asyncio.Event()

    async def failing(pool: Pool[Any], *_: object, **__: object) -> Any:
        if pool.name.startswith("ru-en"):
            raise RuntimeError("a bug")
        try:
            await asyncio.Event().wait()
        finally:
            given_up.set()

    monkeypatch.setattr(Pool, "run", failing)
    response = await client.post("/translate", json={"text": [FRENCH, RUSSIAN], "target": "en"})
    async with asyncio.timeout(60):
        await given_up.wait()
    problem(response, InferenceFailed)


async def test_languages_are_told_with_their_confidence(client: Client) -> None:
    body = {"text": [FRENCH, RUSSIAN, "https://example.org", SPANISH]}
    answer = (await client.post("/detect", json=body)).raise_for_status().json()
    [of_one] = (await client.post("/detect", json={"text": FRENCH})).raise_for_status().json()["detections"]
    html = {"text": f"<p lang=the>{FRENCH}</p>", "format": "html"}
    [in_html] = (await client.post("/detect", json=html)).raise_for_status().json()["detections"]
    of_german = {"text": FRENCH, "model": "de-en"}
    [with_model] = (await client.post("/detect", json=of_german)).raise_for_status().json()["detections"]
    french, russian, address, spanish = (detection["languages"] for detection in answer["detections"])
    assert of_one["languages"] == in_html["languages"] == french
    assert (french[0]["language"], russian[0]["language"], address) == ("fr", "ru", [])
    assert [one["confidence"] for one in french] == sorted((one["confidence"] for one in french), reverse=True)
    assert french[0]["confidence"] > 0.9
    assert {one["language"] for one in (*spanish, *with_model["languages"])} <= {"en", "fr", "de", "ru"}
    assert all(one["confidence"] < 0.5 for one in (*spanish, *with_model["languages"]))


async def test_kept_xml_is_not_looked_at(client: Client) -> None:
    body = {"text": f"<doc><q>{ENGLISH * 3}</q> <p>{FRENCH}</p></doc>", "format": "xml", "target": "en"}
    languages = [
        (await translated(client, **body, tags=rules))["translations"][0]["detected"]["language"]
        for rules in ({}, {"keep": ["q"]})
    ]
    problem(
        await client.post("/translate", json=body | {"source": "fr", "format": "markdown", "tags": {}}),
        UnsupportedOption,
    )
    too_many = {"source": "fr", "tags": {"keep": ["a"] * 101}}
    problem(await client.post("/translate", json=body | too_many), InvalidFields)
    assert languages == ["en", "fr"]


@pytest.mark.parametrize(
    ("body", "error", "part"),
    [
        ({"text": "a" * 51}, TextTooLong, "51 characters; the limit is 50"),
        ({"text": ["a"] * 4}, TooManyTexts, "4 texts; the limit is 3"),
        ({"text": ""}, InvalidFields, "`text`"),
        ({"text": "a", "target": "fr"}, InvalidFields, "`target`"),
        ({"text": "a", "model": "tiny-sentiment"}, UnknownModel, "tiny-sentiment"),
    ],
)
async def test_detection_has_the_limits_of_the_others(
    serve: Serve, artifacts: Path, body: dict[str, Any], error: type[RequestError], part: str
) -> None:
    async with serve(artifacts=artifacts, max_text_characters=50, max_texts=3) as client:
        response = await client.post("/detect", json=body)
    assert part in problem(response, error)["detail"]
