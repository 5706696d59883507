"""A document in parts: each text once, few at a time, and a full queue is waited for."""

import asyncio

import pytest

from service.access.ownership import ANYBODY, Requester
from service.base.errors import (
    Broken,
    DeadlinePassed,
    QueueFull,
    Silent,
    TextTooLong,
    UnprocessableRequest,
    WorkerEnded,
)
from service.base.settings import Settings
from service.jobs import translation
from service.jobs.job import Job
from service.jobs.reading import DocumentTexts
from service.jobs.translation import MAX_RUNNING_PORTIONS, MAX_TRIES, DocumentTranslator, refuse_long_texts
from service.schemas.answers import TranslateResponse, Translation, TranslationUsage
from service.schemas.requests import TranslateRequest
from service.tasks.context import Context

pytestmark = pytest.mark.anyio

OPTIONS = '{"beam_size": 2, "glossary_id": "g"}'
JOB = Job("i", "a.txt", "txt", "en", "fr", OPTIONS, "translating", 0, 0, 0, 0, 0, None, None, None, None, 0)


class Models:
    """In place of what serves: writes texts in capitals, and keeps the requests."""

    def __init__(self) -> None:
        self.requests: list[TranslateRequest] = []
        self.running = self.most_running = 0
        self.refusals: list[Exception] = []

    async def translate(self, request: TranslateRequest, _: Context) -> TranslateResponse:
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
    contents = DocumentTexts("txt", "html", texts)
    translating = DocumentTranslator(models, Settings(max_texts=8))  # type: ignore[arg-type]
    ends_at = asyncio.get_running_loop().time() + timeout_s
    told = [] if told is None else told
    return (await translating.texts(contents, JOB.request, ends_at, told.append)).texts


async def test_each_text_is_translated_once_in_small_parts() -> None:
    models, told = Models(), []
    texts = [f"{number % 30} {'x' * 900}" for number in range(60)]
    assert await translated(models, texts, told=told) == [text.upper() for text in texts]
    asked = [text for request in models.requests for text in request.text]
    assert sorted(asked) == sorted(set(texts))
    assert all(sum(map(len, request.text)) <= 4000 for request in models.requests)
    assert models.most_running == MAX_RUNNING_PORTIONS
    assert told == sorted(told)
    assert told[-1] == sum(map(len, set(texts)))
    first = models.requests[0]
    asked_for = (first.format, first.source, first.target, first.beam_size, first.glossary_id)
    assert asked_for == ("html", "en", "fr", 2, "g")


async def test_short_texts_are_as_many_as_a_request_may_have() -> None:
    models = Models()
    await translated(models, [*map(str, range(20))])
    assert [len(request.text) for request in models.requests] == [8, 8, 4]


async def test_passing_failures_are_waited_for_and_others_are_not() -> None:
    models = Models()
    models.refusals = [QueueFull("full", retry_after_s=0), Silent("silent", retry_after_s=0)] * 3
    assert await translated(models, ["a"]) == ["A"]
    models.refusals = [Broken("it cannot be loaded", retry_after_s=0)] * (MAX_TRIES - 1)
    assert await translated(models, ["a"]) == ["A"]
    for refusals in (
        [Broken("broken", retry_after_s=0)] * 2 * MAX_TRIES,
        [UnprocessableRequest("a reason")],
        [WorkerEnded("it may have been this")],
    ):
        models.refusals = [*refusals]
        with pytest.raises(type(refusals[0])):
            await translated(models, ["a", *["b" * 3999] * 2])
    models.refusals = [QueueFull("full", retry_after_s=0)] * 1000
    with pytest.raises(DeadlinePassed):
        await translated(models, ["a"], timeout_s=0.001)


async def test_a_part_waits_neither_as_long_as_predicted_nor_beyond_its_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    models = Models()
    async with asyncio.timeout(20):
        models.refusals = [QueueFull("full", retry_after_s=3600)]
        with pytest.raises(DeadlinePassed):
            await translated(models, ["a"], timeout_s=0.001)
        monkeypatch.setattr(translation, "MAX_PAUSE_S", 0)
        models.refusals = [QueueFull("full", retry_after_s=3600)]
        assert await translated(models, ["a"]) == ["A"]


def test_a_paragraph_may_be_as_long_as_a_text() -> None:
    refuse_long_texts(DocumentTexts("txt", "text", []), 3)
    refuse_long_texts(DocumentTexts("txt", "text", ["abc", "d"]), 3)
    refuse_long_texts(DocumentTexts("docx", "html", ['<b id="0">a</b><b id="1">b</b>c']), 3)
    with pytest.raises(TextTooLong, match=r"4 .* 3"):
        refuse_long_texts(DocumentTexts("txt", "text", ["abc", "abcd"]), 3)


async def test_the_language_of_a_document_is_that_of_its_beginning() -> None:
    asked: list[TranslateRequest] = []

    class Detecting(Models):
        async def languages(self, request: TranslateRequest, _: float, __: Requester) -> tuple[str, str]:
            asked.append(request)
            return "fr", "en"

    translating = DocumentTranslator(Detecting(), Settings())  # type: ignore[arg-type]
    request = TranslateRequest(text=["-"], source="auto", target="en")
    for texts, form in ((["le chien"] * 10_000, "html"), (["le chien"], "text"), ([], "text")):
        contents = DocumentTexts("txt", form, texts)  # type: ignore[arg-type]
        assert await translating.languages(contents, request, 60, ANYBODY) == ("fr", "en")
    [of_html], [of_text], [of_none] = (one.text for one in asked)
    assert of_html.startswith("<p>le chien</p>\n\n<p>le chien</p>")
    assert len(of_html) < 10_000
    assert (of_text, of_none) == ("le chien", " ")
