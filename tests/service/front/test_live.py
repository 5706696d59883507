"""What is concluded stays, whatever comes, and the cost of an update does not grow with the text."""

import asyncio
from typing import Any, cast

import pytest

from service.base.errors import InvalidFields, TextTooLong, UnsupportedOption
from service.front.live import LiveText
from service.front.models import Models
from service.schemas.answers import Segment, TranslateResponse, Translation, TranslationUsage
from service.schemas.live import LiveAnswer, LiveUpdate
from service.schemas.requests import TranslateRequest
from service.tasks.context import Context

pytestmark = pytest.mark.anyio
OPTIONS = {"source": "en", "target": "fr"}


class FakeModels:
    """Translates as it is told, and notes what it was asked."""

    def __init__(self, **translations: str) -> None:
        self.translations = translations
        self.asked: list[TranslateRequest] = []
        self.refused_prefixes = False

    async def translate(self, request: TranslateRequest, _: Context) -> TranslateResponse:
        self.asked.append(request)
        [text], [prefix] = request.text, request.target_prefix or [None]
        if prefix is not None and self.refused_prefixes:
            raise UnsupportedOption("`target_prefix` needs texts without marks")
        await asyncio.sleep(0)
        target = self.translations.get(text.strip(), text.upper())
        if prefix is not None and not target.startswith(prefix):
            target = prefix + target[len(prefix) :]
        ends = [i + 2 for i in range(len(text)) if text.startswith(". ", i) and text[i + 2 :].strip()]
        bounds = [*zip([0, *ends], [*ends, len(text)], strict=True)]
        segments = [Segment(source=bound, target=bound) for bound in bounds] if ends else None
        translation = Translation(
            text=target, score=0, finish_reason="eos", source_tokens=1, target_tokens=1, segments=segments
        )
        usage = TranslationUsage(characters=1, source_tokens=1, target_tokens=1)
        return TranslateResponse(source="en", target="fr", translations=[translation], usage=usage)


class Session:
    def __init__(self, **translations: str) -> None:
        self.models = FakeModels(**translations)
        self.text = LiveText(cast(Models, self.models), max_characters=1000)
        self.n = 0

    async def say(self, text: str, final: bool = False, **options: Any) -> LiveAnswer:
        self.n += 1
        return await self.text.update(LiveUpdate(text=text, final=final, **options), self.n, Context())


async def test_words_are_shown_when_two_translations_agree_and_the_last_ones_are_not_concluded() -> None:
    session = Session()
    answers = [
        await session.say(text) for text in ("a ", "a dog ", "a dog runs ", "a dog runs in ", "a dog runs in it ")
    ]
    assert [(answer.concluded, answer.tentative) for answer in answers] == [
        ("", ""),
        ("", "A "),
        ("", "A DOG "),
        ("A ", "DOG RUNS "),
        ("A DOG ", "RUNS IN "),
    ]
    assert [request.target_prefix for request in session.models.asked] == [None, None, None, None, ["A "]]


async def test_what_is_concluded_is_never_changed() -> None:
    session = Session(**{"a dog runs": "UN CHIEN COURT ", "a dog runs fast": "IL EST RAPIDE ICI "})
    former = ""
    for text in ("a ", "a dog ", "a dog runs ", "a dog runs fast ", "a cat ", "a dog ran to ", "a dog runs fast. It "):
        answer = await session.say(text)
        assert answer.concluded.startswith(former)
        former = answer.concluded
    answer = await session.say("a dog runs fast. It was", final=True)
    assert answer.concluded.startswith(former)
    assert (answer.tentative, answer.final) == ("", True)


async def test_a_word_that_is_not_finished_is_not_read_until_the_text_is_final() -> None:
    session = Session()
    for text in ("a dog r", "a dog ru", "a dog run"):
        await session.say(text)
    assert [request.text for request in session.models.asked] == [["a dog "]]
    assert (await session.say("a dog run", final=True)).concluded == "A DOG RUN"


async def test_complete_sentences_are_concluded_whole_and_not_read_again() -> None:
    session = Session()
    for text in ("One dog", "One dog runs", "One dog runs. ", "One dog runs. Two "):
        answer = await session.say(text)
    assert (answer.concluded, answer.tentative) == ("ONE DOG RUNS. ", "")
    whole = session.models.asked[-1]
    assert (whole.text, whole.beam_size) == (["One dog runs. Two "], None)
    await session.say("One dog runs. Two cats ")
    assert (session.models.asked[-1].text, session.models.asked[-1].beam_size) == (["Two cats "], 1)
    answer = await session.say("One dog runs. Two cats sleep.", final=True)
    assert answer.concluded == "ONE DOG RUNS. TWO CATS SLEEP."


async def test_a_text_must_go_on_from_its_concluded_sentences() -> None:
    session = Session()
    await session.say("One dog runs. Two ")
    with pytest.raises(InvalidFields, match="must begin with the sentences that are concluded"):
        await session.say("A dog runs. Two cats ")
    assert (await session.say("One dog runs. Two cats ")).concluded == "ONE DOG RUNS. "
    assert (await session.say("A dog runs. Two ", **OPTIONS)).concluded == "A DOG RUNS. "


async def test_a_new_text_begins_after_a_final_one_with_the_same_options() -> None:
    session = Session()
    await session.say("a dog", final=True, **OPTIONS, beam_size=3)
    assert (await session.say("the cat ")).concluded == ""
    assert session.models.asked[-1].beam_size == 3
    assert session.models.asked[-1].target == "fr"


async def test_an_update_that_is_cancelled_or_fails_changes_nothing() -> None:
    session, other = Session(), Session()
    for text in ("a ", "a dog ", "a dog runs "):
        work = asyncio.create_task(session.say(f"{text}here and "))
        await asyncio.sleep(0)
        work.cancel()
        with pytest.raises(TextTooLong):
            await session.say("a" * 1001)
        answer, expected = await session.say(text), await other.say(text)
        assert (answer.concluded, answer.tentative) == (expected.concluded, expected.tentative)


async def test_a_text_that_cannot_be_begun_goes_on_behind_the_concluded_words() -> None:
    session = Session()
    for text in ("a ", "a dog ", "a dog **runs ", "a dog **runs in "):
        await session.say(text)
    session.models.refused_prefixes = True
    session.models.translations = {"a dog **runs in** it": "LE CHIEN **COURT**"}
    assert (await session.say("a dog **runs in** it", final=True)).concluded == "A CHIEN **COURT**"


@pytest.mark.parametrize("options", [{"memory_id": "m"}, {"confidence": True}])
async def test_options_that_need_a_whole_text_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedOption, match="while a text is written"):
        await Session().say("a dog ", **options)
