"""Slots: words that a model is known to copy, used as stand-ins for kept spans.

A slot is one token of the source and one token of the target, so the kept span goes where that token is, whatever its
spelling there.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from service.text.tokenization import Tokenizer

MAX_SLOTS = 6
"""Maximum number of slots in a sentence. Alignment places all other kept spans."""
MAX_TRIES = 3
"""Maximum number of slots that are tried for a span: beside other characters a word may become several tokens."""


class Slot(NamedTuple):
    """A word, its source token, and the target token that a model writes for it."""

    word: str
    source_id: int
    target_id: int


def slots_of(pairs: Iterable[tuple[int, int]], tokenizer: Tokenizer) -> tuple[Slot, ...]:
    """Return the slots of a model, the most reliable first."""
    return tuple(Slot(tokenizer.decode([[source]])[0].strip(), source, target) for source, target in pairs)


@dataclass
class SlotsOfText:
    """The slots of the kept spans of a text, by the number of the span. Words of the text itself cannot be slots."""

    slots: Sequence[Slot]
    text: str
    _tries: dict[int, int] = field(default_factory=dict)
    _chosen: dict[int, Slot | None] = field(default_factory=dict)
    _n_given: Counter[bool] = field(default_factory=Counter)

    def word(self, span: int, is_number: bool) -> str:
        """Return the slot's word for a span; "" if the span has no slot."""
        if span not in self._chosen:
            self._chosen[span] = self._next(is_number)
        slot = self._chosen[span]
        return slot.word if slot else ""

    def of(self, span: int) -> Slot | None:
        return self._chosen.get(span)

    def try_others(self, spans: Mapping[int, bool]) -> None:
        """Give other slots to spans (True: a number) whose slots are not read as their own token."""
        for span, is_number in spans.items():
            self._tries[span] = self._tries.get(span, 0) + 1
            self._chosen[span] = self._next(is_number) if self._tries[span] < MAX_TRIES else None

    def give_up(self, spans: Iterable[int]) -> None:
        """Leave these spans without slots."""
        self._chosen.update(dict.fromkeys(spans))

    @cached_property
    def _pools(self) -> dict[bool, list[Slot]]:
        """Usable slots for numbers (True), and for all other spans (False)."""
        text = self.text.casefold()
        usable = [slot for slot in self.slots if slot.word.casefold() not in text]
        names = [slot for slot in usable if not slot.word.isdigit()]
        return {True: [slot for slot in usable if slot.word.isdigit()] or names, False: names}

    def _next(self, is_number: bool) -> Slot | None:
        pool = self._pools[is_number]
        if not pool:
            return None
        self._n_given[is_number] += 1
        return pool[(self._n_given[is_number] - 1) % len(pool)]
