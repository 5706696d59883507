"""Find ICU messages, {n, plural, one {# dog} other {# dogs}}: their syntax is kept, and each branch is a text."""

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from pyicumessageformat import Parser

from service.kept.kept_kinds import Role
from service.text.spans import Span

ARGUMENT = re.compile(r"\{\s*[\w.-]{1,80}\s*,\s*(?:plural|select|selectordinal)\s*,")
_PARSER = Parser({"include_indices": True, "maximum_depth": 10})
_MISTAKES = (SyntaxError, TypeError, ValueError, IndexError, RecursionError)
"""What the parser raises at a mistake in a message."""
QUOTED = re.compile(r"'[{}#|]")
"""Quoted braces, which are part of a branch's text."""
_ENDS = tuple(".!?:…。！？")
_BEGINS = re.compile(r"\s*(?:$|\n|[^\w\s]*[^\W\d_a-zß-öø-ÿа-яё])")


def icu_messages(text: str) -> Iterator[tuple[Span, Role]]:
    """Yield the kept spans of the ICU messages of a text, in order. A message inside a sentence is one word of it, and
    kept whole, as is a message that cannot be parsed."""
    end = 0
    for match in ARGUMENT.finditer(text):
        if match.start() < end:
            continue
        span = Span(match.start(), end_of_braces(text, match.start()))
        is_alone = _begins_sentence(text, end, span.start) and _BEGINS.match(text, span.end)
        syntax = _syntax(span.of(text)) if is_alone else None
        if syntax is None:
            yield span, "word"
        else:
            yield from ((Span(span.start + part.start, span.start + part.end), role) for part, role in syntax)
        end = span.end


def _begins_sentence(text: str, end: int, start: int) -> bool:
    before = text[end:start].rstrip()
    return before.endswith(_ENDS) or "\n" in text[end + len(before) : start] or (end == 0 and not before)


def has_icu_messages(text: str) -> bool:
    return ARGUMENT.search(text) is not None


def can_parse(text: str) -> bool:
    try:
        _PARSER.parse(text, [])
    except _MISTAKES:
        return False
    return True


def end_of_braces(text: str, start: int) -> int:
    """Return the end of the braces that open at `start`; the end of the text if they do not close."""
    depth = 0
    for match in re.compile(r"[{}]").finditer(text, start):
        depth += 1 if match.group() == "{" else -1
        if depth == 0:
            return match.end()
    return len(text)


def _syntax(message: str) -> list[tuple[Span, Role]] | None:
    """Return the syntax of a message, which is everything but the text of its branches; None if it cannot be parsed."""
    tokens: list[dict[str, str]] = []
    try:
        parsed = _PARSER.parse(message, tokens)
    except _MISTAKES:
        return None
    if "".join(token["text"] for token in tokens) != message or QUOTED.search(message):
        return None
    plain = {position for span in _plain_arguments(parsed) for position in range(*span.pair)}
    parts, position = [], 0
    for token in tokens:
        span = Span(position, position + len(token["text"]))
        position = span.end
        is_text = token["type"] == "text" or span.start in plain
        parts.append((span, None if is_text else "number" if token["type"] == "hash" else "break"))
    syntax: list[tuple[Span, Role]] = []
    for role, group in groupby(parts, key=lambda part: part[1]):
        spans = [span for span, _ in group]
        if role == "number":
            syntax += [(span, "number") for span in spans]
        elif role == "break":
            syntax.append((Span(spans[0].start, spans[-1].end), "break"))
    return syntax


def _plain_arguments(parsed: list[Any]) -> Iterator[Span]:
    for node in parsed:
        if isinstance(node, dict) and "options" in node:
            for branch in node["options"].values():
                yield from _plain_arguments(branch)
        elif isinstance(node, dict) and not node.get("hash"):
            yield Span(node["start"], node["end"])
