"""Two texts that a model reads as one sequence, with special tokens around and between them. Long texts are cut."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import tokenizers

from service.schemas.requests import CutEnd


class Pair(NamedTuple):
    """A sequence of two texts, and the number of tokens that were cut off them."""

    token_ids: list[int]
    n_left_out: int


@dataclass(frozen=True)
class PairTemplate:
    """The special tokens before, between and after two texts."""

    before: Sequence[int]
    between: Sequence[int]
    after: Sequence[int]

    @classmethod
    def of(cls, tokenizer: tokenizers.Tokenizer) -> "PairTemplate":
        """Read the template of a tokenizer from a pair that it encodes."""
        encoding = tokenizer.encode("a", "a")
        ids, places = encoding.ids, encoding.sequence_ids
        second, end = places.index(1), len(places) - places[::-1].index(1)
        return cls(ids[: places.index(0)], ids[len(places) - places[::-1].index(0) : second], ids[end:])

    def join(self, first: list[int], second: list[int], max_tokens: int, cut_end: CutEnd) -> Pair:
        """Join two texts to at most `max_tokens` tokens. The longer text is cut first, as elsewhere."""
        room = max_tokens - len(self.before) - len(self.between) - len(self.after)
        n_first, n_second = kept_lengths(len(first), len(second), room)
        kept = [_cut(first, n_first, cut_end), _cut(second, n_second, cut_end)]
        token_ids = [*self.before, *kept[0], *self.between, *kept[1], *self.after]
        return Pair(token_ids, len(first) + len(second) - n_first - n_second)


def kept_lengths(n_first: int, n_second: int, room: int) -> tuple[int, int]:
    """Return how many tokens of two texts are kept. The shorter text keeps all if the longer one keeps as many."""
    if n_first + n_second <= room:
        return n_first, n_second
    shorter, longer = sorted((n_first, n_second))
    of_shorter = min(shorter, room // 2)
    of_longer = min(longer, room - of_shorter)
    return (of_shorter, of_longer) if n_first <= n_second else (of_longer, of_shorter)


def _cut(ids: list[int], n: int, cut_end: CutEnd) -> list[int]:
    return ids[:n] if cut_end == "right" else ids[len(ids) - n :]
