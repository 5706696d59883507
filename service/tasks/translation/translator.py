"""A translation model; leg.py takes texts through it."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from manifest.schema import NO_LANGUAGE, Manifest
from service.base.errors import InvalidFields
from service.engine.search import Search
from service.kept.slots import Slot
from service.passes.attention import AttentionPass
from service.pool.pool import Pool
from service.text.languages import MANY, Direction, TranslatorLanguages
from service.text.tokenization import Tokenizer


@dataclass(frozen=True, eq=False)
class Translator:
    """A model with its engines. An answer has at most `max_numbers` numbers."""

    manifest: Manifest
    provider: Literal["cpu", "cuda"]
    tokenizer: Tokenizer
    greedy: Pool[Search]
    beam: Pool[Search]
    attention_pool: Pool[AttentionPass]
    max_numbers: int
    slots: tuple[Slot, ...] = ()

    @cached_property
    def languages(self) -> TranslatorLanguages:
        return TranslatorLanguages(self.manifest.sources, self.manifest.targets)

    def prompted(self, name: str) -> Direction:
        """Return the way of a text with a prompt before it. Raises InvalidFields: the model has no such prompt."""
        prompts = self.manifest.prompts
        if name not in prompts:
            available = ", ".join(prompts) or "none"
            message = f"must be a prompt of {self.manifest.name}, not {name!r}; available: {available}"
            raise InvalidFields([(("prompt",), message)])
        return Direction(MANY, NO_LANGUAGE, tuple(self.tokenizer.prefix(prompts[name])))
