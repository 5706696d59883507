"""How often a text is read until each of its slots is what the model reads."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from service.base.artifact import Artifact
from service.engine.search import Search
from service.glossaries.terms import Terms
from service.kept.placeholders import Protected, protect
from service.kept.slots import Slot
from service.markup import plain
from service.tasks.translation import reading
from service.tasks.translation.reading import PreparedText, Reader
from service.text.languages import Direction
from service.text.spans import Span
from service.text.tokenization import Tokenizer


def reader_of(artifact: Artifact, *terms: Terms) -> Reader:
    tokenizer = Tokenizer(artifact.path("tokenizer.json"))
    [[source_id, *_]] = tokenizer.encode(["dog"])
    slots = (Slot("dog", source_id, source_id),)
    return Reader(tokenizer, slots, 100, Direction("en", "fr"), partial(Search, 9), True, *terms)


def sentences_of(prepared: PreparedText) -> list[str]:
    return [sentence.span.of(passage.protected.text) for passage in prepared.passages for sentence in passage.sentences]


def test_sentences_that_something_kept_goes_across_are_one(translator_artifact: Artifact) -> None:
    """Those of a first leg, whose translations are an address together: each would have all of it."""
    text = "see https://a.org/the man. a cat"
    read = plain.parse(text)
    sentences = [Span(0, 18), Span(18, 26), Span(27, 32)]
    known = replace(read, parts=[replace(parsed, sentences=sentences) for parsed in read.passages])
    assert sentences_of(reader_of(translator_artifact).prepare(known)) == ["see dog man.", "a cat"]


def test_a_sentence_ends_behind_a_term_where_it_does_in_the_text(translator_artifact: Artifact) -> None:
    prepared = reader_of(translator_artifact, Terms(["U.S."])).prepare(plain.parse("see the U.S. It is big"))
    assert sentences_of(prepared) == ["see the dog", "It is big"]


def test_a_line_of_thousands_is_read_few_times(translator_artifact: Artifact, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stood behind a sentence with too many came into it, over and over: seconds for a line."""
    protected = []

    def counted(*given: Any) -> Protected:
        protected.append(protect(*given))
        return protected[-1]

    monkeypatch.setattr(reading, "protect", counted)
    reader_of(translator_artifact).prepare(plain.parse("a cat " + "{a} " * 2000))
    assert len(protected) < 8
