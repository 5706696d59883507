"""Split texts that are too long for a model into windows without overlap, each with the special tokens of a text."""

from collections.abc import Iterator
from itertools import pairwise
from typing import TypeVar

from service.text.tokens import Token

Item = TypeVar("Item")


def windows(tokens: list[Item], max_tokens: int, n_before: int = 0, n_after: int = 0) -> list[list[Item]]:
    """Return as few windows of at most `max_tokens` as possible, of nearly equal length. Every window repeats the first
    `n_before` and the last `n_after` tokens of the text."""
    end = len(tokens) - n_after
    before, text, after = tokens[:n_before], tokens[n_before:end], tokens[end:]
    count = max(1, -(-len(text) // (max_tokens - n_before - n_after)))
    bounds = [len(text) * i // count for i in range(count + 1)]
    return [[*before, *text[start:stop], *after] for start, stop in pairwise(bounds)]


def shown_in_windows(tokens: list[Token], max_tokens: int, n_before: int, n_after: int) -> Iterator[Token]:
    """Yield the tokens of all windows. Repeated tokens get the place where their window begins or ends in the text."""
    for window in windows(tokens, max_tokens, n_before, n_after):
        end = len(window) - n_after
        text = window[n_before:end]
        first, last = (max(0, text[0].start), text[-1].end) if text else (0, 0)
        yield from (token._replace(start=first, end=first) for token in window[:n_before])
        yield from (token._replace(start=max(0, token.start)) for token in text)  # a token may begin in the prompt
        yield from (token._replace(start=last, end=last) for token in window[end:])
