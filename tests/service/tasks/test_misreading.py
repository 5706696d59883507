"""How often a text is read until each of its slots is what the model reads."""

from functools import partial
from typing import Any

import pytest

from service.artifact import Artifact
from service.engine.beam_search import Search
from service.schemas.requests import TranslateRequest
from service.tasks import translation
from service.tasks.translation import Translator
from service.text.languages import Direction
from service.text.placeholders import Protected, protect
from service.text.slots import Slot
from service.text.terms import Terms
from service.text.tokenization import Tokenizer


def test_a_line_of_thousands_is_read_a_few_times(
    translator_artifact: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stood behind a sentence with too many came into it, over and over: seconds for a line."""
    tokenizer = Tokenizer(translator_artifact.path("tokenizer.json"))
    pools: Any = None
    [[source_id, *_]] = tokenizer.encode(["dog"])
    slots = (Slot("dog", source_id, source_id),)
    translator = Translator(translator_artifact.manifest, "cpu", tokenizer, pools, pools, pools, 1, 1, slots)
    protected = []

    def counted(*given: Any) -> Protected:
        protected.append(protect(*given))
        return protected[-1]

    monkeypatch.setattr(translation, "protect", counted)
    text = "a cat " + "{a} " * 2000
    translator._manuscript(
        text, TranslateRequest(text=[text]), partial(Search, 9), Direction("en", "fr"), Terms([], [], {})
    )
    assert len(protected) < 8
