"""How sure translations are: of words, of whole texts, and of passages of documents."""

import json
import math
import re
from functools import partial
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from manifest.schema import Confidence
from service.base.errors import InvalidFields, LimitExceeded, UnsupportedOption
from service.engine.search import Hypothesis, Search
from tests.service.conftest import Client, Serve, post, problem
from tests.service.http.test_documents import finished, status
from tests.service.tiny_artifacts import TinyTranslator, language

pytestmark = pytest.mark.anyio

MAP = Confidence(points=((-1.2, 0.1), (-0.9, 0.5), (-0.3, 0.9)), error=2.0, sentences=100)
SENTENCES = ["the red dog runs.", "a cat sees the horse.", "the dog sees.", "the man rides a horse on the beach."]
MARKED = {
    "html": "<p>the <b>red dog</b> runs &amp; sees. <img alt='a'> a <code>x &lt; 1</code> cat</p><p title='a'>man",
    "xml": "<doc><p>the <x>red dog</x> runs &amp; sees.</p><q/><p>a cat</p></doc>",
    "markdown": "# the **red dog**\n\n- a *cat* sees [the man](http://a.b) `x` runs.\n",
}
PLACED = "the **red dog** runs. See https://example.org and {name}! 42. x&y"


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """English into French and French into German with a calibration, English into Russian without one."""
    root = tmp_path_factory.mktemp("calibrated")
    for name, seed, calibration in (("en-fr", 3, MAP), ("fr-de", 7, MAP), ("en-ru", 11, None)):
        source, target = name.split("-")
        changes: dict[str, Any] = {"sources": [language(source)], "targets": [language(target)]}
        if calibration is not None:
            changes["confidence"] = calibration.model_dump()
        TinyTranslator(seed).save(root / name, name, **changes)
    return root


async def sure(client: Client, text: Any, target: str = "fr", **options: Any) -> list[dict[str, Any]]:
    body = {"text": text, "source": "en", "target": target, "confidence": True} | options
    translations: list[dict[str, Any]] = (await post(client, "/translate", **body))["translations"]
    return translations


@pytest.mark.parametrize("beam_size", [1, 2, 4])
async def test_words_cover_the_translation_and_their_probabilities_make_its_score(
    client: Client, beam_size: int
) -> None:
    for translation in await sure(client, [*SENTENCES, " ".join(SENTENCES)], beam_size=beam_size):
        text, words = translation["text"], translation["words"]
        assert [text[slice(*word["span"])] for word in words] == [word["text"] for word in words]
        assert "".join(word["text"] for word in words) == re.sub(r"\s", "", text)
        total = sum(math.log(word["probability"]) for word in words)
        assert total == pytest.approx(translation["score"] * translation["target_tokens"], rel=1e-4)
        assert all(0 < word["probability"] <= 1 for word in words)


async def test_the_confidence_is_that_of_the_least_sure_sentence(client: Client) -> None:
    *alone, whole = await sure(client, [*SENTENCES, " ".join(SENTENCES)])
    for translation in alone:
        is_whole = translation["finish_reason"] == "eos"
        expected = MAP.of(translation["score"]) if is_whole else 0
        assert translation["confidence"] == pytest.approx(expected, rel=1e-4)
    assert whole["confidence"] == min(translation["confidence"] for translation in alone)
    assert len({translation["confidence"] for translation in alone}) > 1


async def test_it_is_the_same_alone_and_in_a_crowd_and_changes_nothing_else(client: Client) -> None:
    together = await sure(client, SENTENCES)
    assert together == [translation for text in SENTENCES for translation in await sure(client, text)]
    plain = await sure(client, SENTENCES, confidence=False)
    for translation in together:
        del translation["confidence"], translation["words"]
    assert together == plain


async def test_a_text_that_stays_as_it_is_has_no_words_and_is_sure(client: Client) -> None:
    (translation,) = await sure(client, "42 😀")
    assert (translation["confidence"], translation["words"]) == (1, [])


@pytest.mark.parametrize("form", MARKED)
async def test_words_are_found_among_tags_and_marks(client: Client, form: str) -> None:
    (translation,) = await sure(client, MARKED[form], format=form)
    text, words = translation["text"], translation["words"]
    assert words
    places = [word["span"] for word in words]
    assert [position for place in places for position in place] == sorted(p for place in places for p in place)
    for word, (start, end) in zip(words, places, strict=True):
        assert re.sub(r"<[^>]*>|[*\\]|\]\(.*?\)|\[", "", unescape(text[start:end])) == word["text"]
    assert 0 <= translation["confidence"] <= 1


async def test_words_are_found_beside_what_is_kept(client: Client) -> None:
    (translation,) = await sure(client, PLACED)
    for word in translation["words"]:
        assert translation["text"][slice(*word["span"])].replace("*", "") == word["text"].replace("*", "")


async def test_a_model_that_was_not_calibrated_tells_of_words_alone(client: Client) -> None:
    (translation,) = await sure(client, SENTENCES[0], "ru")
    assert "confidence" not in translation
    assert translation["words"]


async def test_through_a_third_language_both_must_be_good(client: Client) -> None:
    for text in SENTENCES:
        (first,), (through,) = await sure(client, text), await sure(client, text, "de")
        (second,) = await sure(client, first["text"], "de", source="fr", split_sentences=False)
        assert through["words"] == second["words"]
        assert through["confidence"] == pytest.approx(first["confidence"] * second["confidence"], rel=1e-4)


async def test_a_stream_ends_with_the_same_words(client: Client) -> None:
    body = {"text": " ".join(SENTENCES), "source": "en", "target": "fr", "confidence": True}
    streamed = await client.post("/translate", json=body, headers={"Accept": "application/x-ndjson"})
    *_, last = streamed.text.splitlines()
    assert json.loads(last)["translations"] == await sure(client, body["text"])


async def test_too_many_words_are_refused(serve: Serve) -> None:
    async with serve(max_answer_numbers=100) as client:
        body = {"text": SENTENCES[3], "source": "en", "target": "fr", "confidence": True}
        assert "`confidence`" in problem(await client.post("/translate", json=body), LimitExceeded)["detail"]


def test_a_search_that_is_not_scored_is_sent_as_before() -> None:
    found = [Hypothesis([7, 3], -0.5, "eos")]
    plain, scored = (Search(9, finished=found, scored=is_scored) for is_scored in (False, True))
    assert len(plain.values()) == 9
    assert Search.of(plain.values()) == plain
    assert Search.of(scored.values()) == scored


def po(*messages: str) -> bytes:
    head = 'msgid ""\nmsgstr ""\n"Language: fr\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
    return "\n".join([head, *(f'#, fuzzy, c-format\nmsgid "{message}"\nmsgstr ""\n' for message in messages)]).encode()


def xliff(*sources: str) -> bytes:
    units = "".join(f'<trans-unit id="{source}"><source>{source}</source></trans-unit>' for source in sources)
    return f'<xliff version="1.2"><file source-language="en"><body>{units}</body></file></xliff>'.encode()


def xliff_2(*sources: str) -> bytes:
    units = "".join(f'<unit id="{source}"><segment><source>{source}</source></segment></unit>' for source in sources)
    return f'<xliff version="2.1" srcLang="en" trgLang="fr"><file id="f">{units}</file></xliff>'.encode()


def catalog(*keys: str) -> bytes:
    return json.dumps({"sourceLanguage": "en", "strings": {key: {} for key in keys}, "version": "1.0"}).encode()


FILES = [
    ("a.po", po, '{}c-format\nmsgid "{}"', ("#, ", "#, fuzzy, ")),
    ("a.xlf", xliff, '{1}</source><target state="{0}"', ("translated", "needs-review-translation")),
    ("a.xlf", xliff_2, 'state="{}"><source>{}<', ("translated", "initial")),
]


async def sent(client: Client, name: str, data: bytes, **fields: str) -> Any:
    fields = {"source": "en", "target": "fr"} | fields
    return await client.post("/translate/document", files={"file": (name, data)}, data=fields)


@pytest.mark.parametrize(("name", "made", "shown", "states"), FILES, ids=["po", "xliff-1", "xliff-2"])
async def test_only_unsure_translations_are_for_review(
    client: Client, name: str, made: Any, shown: str, states: tuple[str, str]
) -> None:
    confidences = {text: one["confidence"] for text, one in zip(SENTENCES, await sure(client, SENTENCES), strict=True)}
    limit = sorted(confidences.values())[2]
    written = (await sent(client, name, made(*SENTENCES), fuzzy_below=str(limit), wait="true")).text
    assert {value < limit for value in confidences.values()} == {True, False}
    for text, value in confidences.items():
        assert shown.format(states[value < limit], text) in written


async def test_a_string_catalog_tells_which_translations_need_a_review(client: Client) -> None:
    confidences = [translation["confidence"] for translation in await sure(client, SENTENCES)]
    limit = sorted(confidences)[2]
    answer = await sent(client, "a.xcstrings", catalog(*SENTENCES), fuzzy_below=str(limit), wait="true")
    units = [answer.json()["strings"][text]["localizations"]["fr"]["stringUnit"] for text in SENTENCES]
    assert [unit["state"] == "needs_review" for unit in units] == [value < limit for value in confidences]


async def test_a_document_lists_its_least_sure_passages(client: Client) -> None:
    translations = await sure(client, SENTENCES)
    expected = sorted(
        [(t["confidence"], text, t["text"]) for t, text in zip(translations, SENTENCES, strict=True)],
        key=lambda item: item[0],
    )
    card = await finished(client, (await sent(client, "a.po", po(*SENTENCES), confidence="true")).json())
    listed = [(item["confidence"], item["text"], item["translation"]) for item in card["least_sure"]]
    assert [item[0] for item in listed] == pytest.approx([item[0] for item in expected], abs=1e-4)
    assert {item[1:] for item in listed} == {item[1:] for item in expected}
    plain = await finished(client, (await sent(client, "a.po", po(*SENTENCES))).json())
    assert "least_sure" not in plain
    assert (await status(client, plain | {"key": "no"})).status_code == 404


asked = partial(sent, name="a.po", data=po(*SENTENCES))


async def test_fuzzy_below_is_refused_where_it_would_do_nothing(client: Client) -> None:
    for wrong in ("1.5", "-0.1", "x", "true"):
        assert problem(await asked(client, fuzzy_below=wrong), InvalidFields)["errors"][0]["loc"] == ["fuzzy_below"]
    told = problem(await asked(client, name="a.txt", data=b"the dog", fuzzy_below="0.5"), UnsupportedOption)
    assert ".po, .xlf, .xcstrings" in told["detail"]
    told = problem(await asked(client, target="ru", fuzzy_below="0.5"), UnsupportedOption)
    assert "en-ru has none" in told["detail"]
    assert (await asked(client, fuzzy_below="0.5", wait="true")).status_code == 200
