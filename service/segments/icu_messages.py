"""ICU messages, {n, plural, one {# dog} other {# dogs}}: their syntax is kept, and each branch is a text of its own."""

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from pyicumessageformat import Parser

from service.segments.kept_kinds import Reads
from service.text.spans import Span

_ARGUMENT = re.compile(r"\{\s*[\w.-]{1,80}\s*,\s*(?:plural|select|selectordinal)\s*,")
_PARSER = Parser({"include_indices": True, "maximum_depth": 10})
_QUOTED = re.compile(r"'[{}#|]")
"""Braces that a branch has as its text."""
_ENDS = tuple(".!?:…。！？")
_BEGINS = re.compile(r"\s*(?:$|\n|[^\w\s]*[^\W\d_a-zß-öø-ÿа-яё])")


def icu_messages(text: str) -> Iterator[tuple[Span, Reads]]:
    """Yield what is kept of the messages of a text, in order.

    A message inside a sentence is a word of it, and kept whole, and so is one that cannot be read.
    """
    end = 0
    for match in _ARGUMENT.finditer(text):
        if match.start() < end:
            continue
        span = Span(match.start(), _closed(text, match.start()))
        is_alone = _begins_sentence(text, end, span.start) and _BEGINS.match(text, span.end)
        syntax = _syntax(span.of(text)) if is_alone else None
        if syntax is None:
            yield span, "word"
        else:
            yield from ((Span(span.start + part.start, span.start + part.end), reads) for part, reads in syntax)
        end = span.end


def _begins_sentence(text: str, end: int, start: int) -> bool:
    """Whether what begins at `start` does; the message before it ended at `end`."""
    before = text[end:start].rstrip()
    return before.endswith(_ENDS) or "\n" in text[end + len(before) : start] or (end == 0 and not before)


def has_icu_messages(text: str) -> bool:
    return _ARGUMENT.search(text) is not None


def _closed(text: str, start: int) -> int:
    """Return the end of the braces that begin here; the end of the text, if they do not close."""
    depth = 0
    for match in re.compile(r"[{}]").finditer(text, start):
        depth += 1 if match.group() == "{" else -1
        if depth == 0:
            return match.end()
    return len(text)


def _syntax(message: str) -> list[tuple[Span, Reads]] | None:
    """Return what of a message is no text of a branch; None if that cannot be told."""
    tokens: list[dict[str, str]] = []
    try:
        parsed = _PARSER.parse(message, tokens)
    except (SyntaxError, TypeError, ValueError, IndexError, RecursionError):
        return None
    if "".join(token["text"] for token in tokens) != message or _QUOTED.search(message):
        return None
    plain = {position for span in _plain_arguments(parsed) for position in range(*span.pair)}
    parts, position = [], 0
    for token in tokens:
        span = Span(position, position + len(token["text"]))
        position = span.end
        is_text = token["type"] == "text" or span.start in plain
        parts.append((span, None if is_text else "number" if token["type"] == "hash" else "break"))
    syntax: list[tuple[Span, Reads]] = []
    for reads, group in groupby(parts, key=lambda part: part[1]):
        spans = [span for span, _ in group]
        if reads == "number":
            syntax += [(span, "number") for span in spans]
        elif reads == "break":
            syntax.append((Span(spans[0].start, spans[-1].end), "break"))
    return syntax


def _plain_arguments(parsed: list[Any]) -> Iterator[Span]:
    """Yield {name} and {d, date, short}: they are words of the branch that they are in."""
    for node in parsed:
        if isinstance(node, dict) and "options" in node:
            for branch in node["options"].values():
                yield from _plain_arguments(branch)
        elif isinstance(node, dict) and not node.get("hash"):
            yield Span(node["start"], node["end"])
