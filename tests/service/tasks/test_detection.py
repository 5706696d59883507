import threading
from typing import Any

import pytest

from service.schemas.requests import Format
from service.tasks import detection
from service.tasks.detection import MAX_READ_CHARACTERS, detect_languages

pytestmark = pytest.mark.anyio

FRENCH = "La vieille maison sur la colline est merveilleuse."


async def language(text: str, form: Format = "text") -> str | None:
    [languages] = await detect_languages([text], form, ("en", "fr", "de"), 60)
    return languages[0].language if languages else None


@pytest.mark.parametrize(
    "text",
    ["https://example.org/the/old/house", "{name} %s", "john@example.org", "HTTP_ERROR", "<br/>", "12:30 :smile:"],
)
async def test_text_that_every_translation_keeps_is_in_no_language(text: str) -> None:
    assert await language(text) is None


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (f"https://the.house.example.org/with/the/old/garden {FRENCH}", "text"),
        (f"<style>body {{ the old house on the hill }}</style><p class='the old house'>{FRENCH}</p>", "html"),
        (f"<!-- the old house --><doc><p n='the old house on the hill'>{FRENCH}</p></doc>", "xml"),
        (f"```\nthe old house on the hill is wonderful\n```\n\n**{FRENCH}**", "markdown"),
    ],
)
async def test_only_translated_text_is_read(text: str, form: Format) -> None:
    assert await language(text, form) == "fr"


async def test_words_are_found_behind_much_that_is_none() -> None:
    assert await language("1234 " * MAX_READ_CHARACTERS + FRENCH) == "fr"


async def test_only_the_beginning_of_a_long_text_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = []

    def identified(text: str, _: Any) -> list[Any]:
        looked_at.append(text)
        return []

    monkeypatch.setattr(detection, "identify", identified)
    await language(FRENCH * 1_000)
    assert [len(text) for text in looked_at] == [MAX_READ_CHARACTERS]


@pytest.mark.parametrize(("texts", "is_loaded"), [(["a dog"] * 10, True), ([FRENCH * 10], True), (["a dog"], False)])
async def test_long_detection_does_not_hold_the_event_loop(
    monkeypatch: pytest.MonkeyPatch, texts: list[str], is_loaded: bool
) -> None:
    """Neither many texts, nor a long one, nor the first, for which the model is read."""
    threads = []

    def identified(*_: Any) -> list[Any]:
        threads.append(threading.current_thread())
        return []

    monkeypatch.setattr(detection, "identify", identified)
    monkeypatch.setattr(detection, "is_loaded", lambda: is_loaded)
    await detect_languages(texts, "text", ("en",), 60)
    assert len(threads) == len(texts)
    assert threading.main_thread() not in threads
