"""Slots: words that a model is known to carry through, in the place of what must come out unchanged.

A slot's word is one token of the source and becomes one token of the target. So what it stands for goes where that
token is, however the word is spelled there.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from service.text.tokenization import Tokenizer

MAX_SLOTS = 6
"""The limit of slots in a sentence. What else must come out unchanged goes where alignment says."""

MAX_TRIES = 3
"""The limit of slots that are tried for one span: a word may be no single token beside what is around it."""


class Slot(NamedTuple):
    """A word, its token, and the token that a model makes of it."""

    word: str
    source_id: int
    target_id: int


def slots_of(pairs: Iterable[tuple[int, int]], tokenizer: Tokenizer) -> tuple[Slot, ...]:
    """Return the slots of a model, the surest first."""
    return tuple(Slot(tokenizer.decode([[source]])[0].strip(), source, target) for source, target in pairs)


@dataclass
class SlotsOfText:
    """The slot of each kept span of a text, by the number of the span; none where the text around it allows none.

    Args:
        slots: the slots of the model.
        text: the text, whose own words can be no slots.
    """

    slots: Sequence[Slot]
    text: str
    _tries: dict[int, int] = field(default_factory=dict)
    _chosen: dict[int, Slot | None] = field(default_factory=dict)
    _n_given: Counter[bool] = field(default_factory=Counter)

    def word(self, span: int, is_number: bool) -> str:
        """Return the word that stands for a span; "" if the span has no slot."""
        if span not in self._chosen:
            self._chosen[span] = self._next(is_number)
        slot = self._chosen[span]
        return slot.word if slot else ""

    def of(self, span: int) -> Slot | None:
        return self._chosen.get(span)

    def try_others(self, spans: Mapping[int, bool]) -> None:
        """Give other slots to these spans, which may be numbers: the model reads theirs otherwise."""
        for span, is_number in spans.items():
            self._tries[span] = self._tries.get(span, 0) + 1
            self._chosen[span] = self._next(is_number) if self._tries[span] < MAX_TRIES else None

    def give_up(self, spans: Iterable[int]) -> None:
        """Leave these spans without slots."""
        self._chosen.update(dict.fromkeys(spans))

    @cached_property
    def _pools(self) -> dict[bool, list[Slot]]:
        """The slots for numbers (True), and for all else."""
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
