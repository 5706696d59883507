"""A document in parts: each text once, few at a time, and a full queue is waited for."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from service.base.errors import Broken, DeadlinePassed, QueueFull, Silent, TooLarge, UnprocessableRequest, WorkerEnded
from service.base.settings import Settings
from service.glossaries.store import Glossaries
from service.jobs import translation
from service.jobs.job import Job
from service.jobs.reading import Texts
from service.jobs.translation import MOST_TRIES, PARTS_AT_ONCE, Translating, refuse_long_texts
from service.models import dispatch
from service.schemas.answers import TranslateResponse, Translation, TranslationUsage
from service.schemas.requests import TranslateRequest

pytestmark = pytest.mark.anyio

JOB = Job(
    "i", "a.txt", "txt", "en", "fr", '{"beam_size": 2, "glossary_id": "g"}', "translating", 0, 0, 0, 0, 0, None, None
)


class Models:
    """In place of what serves: writes texts in capitals, and keeps the requests."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.requests: list[TranslateRequest] = []
        self.running = self.most_running = 0
        self.refusals: list[Exception] = []
        monkeypatch.setattr(dispatch, "translate", self._translate)

    def use(self) -> "Models":
        return self

    def __enter__(self) -> "Models":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    async def _translate(self, _: Any, request: TranslateRequest, *__: Any, **___: Any) -> TranslateResponse:
        self.requests.append(request)
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await asyncio.sleep(0)
        finally:
            self.running -= 1
        if self.refusals:
            raise self.refusals.pop()
        texts = [Translation(text=text.upper(), score=0, finish_reason="eos", source_tokens=0, target_tokens=0)
                 for text in request.text]  # fmt: skip
        usage = TranslationUsage(source_tokens=0, target_tokens=0, characters=0)
        return TranslateResponse(source="en", target="fr", translations=texts, usage=usage)


async def translated(
    models: Models, texts: list[str], timeout_s: float = 60, told: list[int] | None = None
) -> list[str]:
    contents = Texts("txt", "html", texts)
    translating = Translating(models, Glossaries(Path("nowhere")), Settings(max_texts=8))  # type: ignore[arg-type]
    ends_at = asyncio.get_running_loop().time() + timeout_s
    return await translating.texts(contents, JOB, ends_at, [].append if told is None else told.append)


async def test_each_text_is_translated_once_in_small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    models, told = Models(monkeypatch), []
    texts = [f"{number % 30} {'x' * 900}" for number in range(60)]
    assert await translated(models, texts, told=told) == [text.upper() for text in texts]
    asked = [text for request in models.requests for text in request.text]
    assert sorted(asked) == sorted(set(texts))
    assert all(sum(map(len, request.text)) <= 4000 for request in models.requests)
    assert models.most_running == PARTS_AT_ONCE
    assert told == sorted(told)
    assert told[-1] == sum(map(len, set(texts)))
    first = models.requests[0]
    assert (first.format, first.source, first.target, first.beam_size, first.glossary_id) == (
        "html",
        "en",
        "fr",
        2,
        "g",
    )


async def test_short_texts_are_as_many_as_a_request_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    models = Models(monkeypatch)
    await translated(models, [*map(str, range(20))])
    assert [len(request.text) for request in models.requests] == [8, 8, 4]


async def test_what_passes_is_waited_for_and_other_failures_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    models = Models(monkeypatch)
    models.refusals = [QueueFull("full", retry_after_s=0), Silent("silent", retry_after_s=0)] * 3
    assert await translated(models, ["a"]) == ["A"]
    models.refusals = [Broken("it cannot be loaded", retry_after_s=0)] * (MOST_TRIES - 1)
    assert await translated(models, ["a"]) == ["A"]
    for refusals in (
        [Broken("broken", retry_after_s=0)] * 2 * MOST_TRIES,
        [UnprocessableRequest("a reason")],
        [WorkerEnded("it may have been this")],
    ):
        models.refusals = [*refusals]
        with pytest.raises(type(refusals[0])):
            await translated(models, ["a", *["b" * 3999] * 2])
    models.refusals = [QueueFull("full", retry_after_s=0)] * 1000
    with pytest.raises(DeadlinePassed, match="the deadline passed before all of the document was translated"):
        await translated(models, ["a"], timeout_s=0.001)


def test_a_paragraph_may_be_as_long_as_a_text() -> None:
    refuse_long_texts(Texts("txt", "text", []), 3)
    refuse_long_texts(Texts("txt", "text", ["abc", "d"]), 3)
    with pytest.raises(TooLarge, match="a paragraph of the document has 4 characters, the limit is 3"):
        refuse_long_texts(Texts("txt", "text", ["abc", "abcd"]), 3)


async def test_the_language_of_a_document_is_that_of_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[TranslateRequest] = []

    async def languages_of(_: Any, request: TranslateRequest, __: float) -> tuple[str, str]:
        asked.append(request)
        return "fr", "en"

    monkeypatch.setattr(translation, "languages_of", languages_of)
    translating = Translating(Models(monkeypatch), Glossaries(Path("nowhere")), Settings())  # type: ignore[arg-type]
    request = TranslateRequest(text=["-"], source="auto", target="en")
    for texts, form in ((["le chien"] * 10_000, "html"), (["le chien"], "text"), ([], "text")):
        contents = Texts("txt", form, texts)  # type: ignore[arg-type]
        assert await translating.languages(contents, request, 60) == ("fr", "en")
    [of_html], [of_text], [of_none] = (one.text for one in asked)
    assert of_html.startswith("<p>le chien</p>\n\n<p>le chien</p>")
    assert len(of_html) < 10_000
    assert (of_text, of_none) == ("le chien", " ")
