"""ICU messages for another language: with its plural forms, and with whole sentences in every branch.

You have {n, plural, one {a dog} other {# dogs}}.
{n, plural, one {You have a dog.} few {You have # dogs.} many {You have # dogs.} other {You have # dogs.}}
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from service.documents.contents import ReadOptions
from service.documents.localization.plurals import plural_texts
from service.kept.icu_messages import ARGUMENT, QUOTED, can_parse, end_of_braces, icu_messages
from service.text.spans import Span

_HEAD = re.compile(r"\{\s*([^{},\s]*)\s*,\s*(\w+)\s*,(?:\s*offset:\d+)?\s*")
_KEY = re.compile(r"\s*([^\s{}]+)\s*(?=\{)")
MAX_DEPTH = 4
MAX_LENGTH = 5_000
"""Limits of the messages that are rewritten: two plurals in a sentence make a branch for each pair of their forms."""


@dataclass(frozen=True)
class _Message:
    """A message: the text before its branches, its number ({n}), its kind (plural), and the text of each branch."""

    head: str
    number: str
    kind: str
    branches: dict[str, str]

    def write(self, branches: Mapping[str, str | None]) -> str:
        return self.head + " ".join(f"{key} {{{text}}}" for key, text in branches.items()) + "}"


def with_plural_forms(text: str, options: ReadOptions) -> str:
    """Return a text whose messages have the plural forms of the target language. A text with quoted braces, without an
    ICU message, or that would become too long, stays."""
    if ARGUMENT.search(text) is None or QUOTED.search(text) or not can_parse(text):
        return text
    new = _rewritten(text, options, MAX_DEPTH)
    return text if new is None else new


def _rewritten(text: str, options: ReadOptions, depth: int) -> str | None:
    match = ARGUMENT.search(text)
    if match is None:
        return text
    span = Span(match.start(), end_of_braces(text, match.start()))
    before, message, after = text[: span.start], _parse(span.of(text)), text[span.end :]
    if message is None or depth == 0 or len(text) > MAX_LENGTH:
        return None
    branches = _with_forms(message, options)
    if any(role == "word" for _, role in icu_messages(text)):  # one of the messages is a part of a sentence
        if "#" in before or "#" in _without_messages(after):  # it would become the number
            return None
        if ARGUMENT.search(after):  # in the next message # would be the number of that message
            branches = {key: branch.replace("#", message.number) for key, branch in branches.items()}
        branches = {key: before + branch + after for key, branch in branches.items()}
        before = after = ""
    written = {key: _rewritten(branch, options, depth - 1) for key, branch in branches.items()}
    rest = _rewritten(after, options, depth - 1)
    if rest is None or None in written.values():
        return None
    new = before + (span.of(text) if written == message.branches else message.write(written)) + rest
    return new if len(new) <= MAX_LENGTH else None


def _without_messages(text: str) -> str:
    while match := ARGUMENT.search(text):
        text = text[: match.start()] + text[end_of_braces(text, match.start()) :]
    return text


def _parse(message: str) -> _Message | None:
    """Return the branches of a message; None if they cannot be told apart."""
    head = _HEAD.match(message)
    position = head.end() if head else 0
    branches = {}
    while key := _KEY.match(message, position):
        position = end_of_braces(message, key.end())
        branches[key[1]] = message[key.end() + 1 : position - 1]
    is_whole = message[position:].strip() == "}"
    return _Message(head[0], f"{{{head[1]}}}", head[2], branches) if head and branches and is_whole else None


def _with_forms(message: _Message, options: ReadOptions) -> dict[str, str]:
    """Return the branches that the target language needs; branches of one number (=0) stay."""
    if message.kind == "select":
        return message.branches
    exact = {key: branch for key, branch in message.branches.items() if key.startswith("=")}
    forms = {key: branch for key, branch in message.branches.items() if key not in exact}
    texts = plural_texts(forms, options.source, options.target, message.kind == "selectordinal")
    return exact | {category: plural.text for category, plural in texts.items()}
