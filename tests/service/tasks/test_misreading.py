"""How often a text is read until each of its slots is what the model reads."""

from functools import partial
from typing import Any

import pytest

from service.artifact import Artifact
from service.engine.beam_search import Search
from service.formats import plain
from service.tasks import reading
from service.tasks.reading import Reader
from service.text.languages import Direction
from service.text.placeholders import Protected, protect
from service.text.slots import Slot
from service.text.terms import NO_TERMS
from service.text.tokenization import Tokenizer


def test_a_line_of_thousands_is_read_a_few_times(
    translator_artifact: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stood behind a sentence with too many came into it, over and over: seconds for a line."""
    tokenizer = Tokenizer(translator_artifact.path("tokenizer.json"))
    [[source_id, *_]] = tokenizer.encode(["dog"])
    slots = (Slot("dog", source_id, source_id),)
    reader = Reader(tokenizer, slots, 100, Direction("en", "fr"), partial(Search, 9), True, NO_TERMS)
    protected = []

    def counted(*given: Any) -> Protected:
        protected.append(protect(*given))
        return protected[-1]

    monkeypatch.setattr(reading, "protect", counted)
    reader.manuscript(plain.read("a cat " + "{a} " * 2000))
    assert len(protected) < 8
