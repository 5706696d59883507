"""Inline marks of Markdown and where they are. What is a mark is decided by markdown-it-py, by CommonMark's rules."""

import re
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal

from markdown_it import MarkdownIt, rules_inline
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from service.markup.containers import container
from service.markup.flanking import EMPHASIS
from service.markup.pieces import PieceKind
from service.text.spans import Span

Rule = Callable[[StateInline, bool], bool]
Environment = MutableMapping[str, Any]
"""What the parser knows of the whole text: where reference links go."""

NOTE = re.compile(r"\[\^[^\[\]\s]{1,80}\]")
TASK = re.compile(r"\[[ xX]\](?=\s)|\[![A-Za-z]+\](?=\s*$)", re.MULTILINE)
"""The box of a task, and the kind of an alert."""
FENCE = re.compile(
    r"""^(?: :{3}.*
    |(?:\{:[^}\n]*+\}|\{\{[%<](?:(?![%>]\}\}).)*+[%>]\}\}|\{%(?:(?!%\}).)*+%\}
      |\$\$(?:[^$\\]|\\(?s:.))*+\$\$)[ \t]*$)""",
    re.MULTILINE | re.VERBOSE,
)
"""Lines by themselves: before or after a container (:::tip), attributes ({: .note}), tags of Hugo ({{< x >}}) and of
Liquid ({% x %}), and mathematics."""
WORD = r"(?:[^\W\d_]{3}|[^\W\d_]{2}\s|\s[^\W\d_]{2})"
MATH = re.compile(
    rf"""(?<![0-9A-Za-z\\])(?P<sign>\$\$?)(?![\s${{])(?!(?=[^\\^{{}}=$]*+\$)[^$]*?{WORD})
        (?:[^\\$]|\\.)*+(?<!\s)(?P=sign)(?![0-9${{])(?:(?<=[\w}})]\$)|(?![A-Za-z]))
    |\\\((?!(?=[^\\^{{}}=]*+\\\))[^\\]*?{WORD})(?:[^\\]|\\[^()])*+\\\)""",
    re.DOTALL | re.VERBOSE,
)
"""Mathematics in a sentence. Words without a sign of TeX are none, and neither are prices, ${name} and $NAME."""
PAIRS = {"em": 1, "strong": 2, "s": 2, "link": 0, "image": 0}
"""What has a mark before it and one after it, and how long that is, if it is the same."""
MAY_MARK = frozenset("*_~[]<&`$\\")
"""Characters that make a mark, or what is not written as it is read, if others follow."""
MAX_PASSES = 4
"""How often a text is read again for marks that come up where others were escaped: links in links."""
SINGLE = {
    "code_inline": PieceKind.OPAQUE,
    "math": PieceKind.OPAQUE,
    "note": PieceKind.MARK,
    "html_inline": PieceKind.MARK,
    "text_special": PieceKind.TEXT,
    "softbreak": PieceKind.TEXT,
    "hardbreak": PieceKind.BREAK,
}


@dataclass(frozen=True)
class Mark:
    """A mark, or what is not written as it is read."""

    kind: PieceKind
    span: Span
    name: str
    """The name of the parser's token."""
    text: str = ""
    """The text as it is read."""


def marks(text: str, environment: Environment, base: int = 0) -> Iterator[Mark]:
    """Yield the marks of one paragraph, in order, with pairs properly nested."""
    state = _State(text, PARSER, environment, [])
    PARSER.inline.tokenize(state)
    for rule in PARSER.inline.ruler2.getRules(""):
        rule(state)
    for token in sorted((token for token in state.tokens if "at" in token.meta), key=lambda token: token.meta["at"]):
        yield from _of(token, environment, base)


def escape(pieces: list[str], characters: Sequence[int], environment: Environment) -> None:
    """Put a backslash before the characters of a paragraph's text that the parser reads as marks.

    Args:
        pieces: the paragraph, changed in place.
        characters: the numbers of the pieces that are characters of the text. The others are its marks.
    """
    plain = {i for i in characters if pieces[i] in MAY_MARK}
    tags = {*range(len(pieces))}.difference(characters) if plain else set()
    for _ in range(MAX_PASSES if plain else 0):
        starts = [*accumulate(map(len, pieces), initial=0)]
        deciding = {*_deciding("".join(pieces), environment)}
        found = {i for i in plain if starts[i] in deciding}
        if not found and not all(_is_read(pieces[i], starts[i], deciding) for i in tags):
            found = {*plain}  # a mark of the text is one with a mark of emphasis that it touches, or ends a link
        for i in found:
            pieces[i] = "\\" + pieces[i]
        plain -= found
        if not found:
            break


def _is_read(tag: str, start: int, deciding: set[int]) -> bool:
    """Whether the parser finds a mark of emphasis, or a bracket of a link, where it is written."""
    mark = tag.strip()
    start += tag.find(mark)
    if EMPHASIS.fullmatch(mark):
        return deciding.issuperset(range(start, start + len(mark)))
    return start in deciding or not (mark in ("[", "![") or mark.startswith("]"))


def _deciding(text: str, environment: Environment) -> Iterator[int]:
    """Yield the positions of characters that make marks: all of a short one, and the first of a code or an address."""
    for mark in marks(text, environment):
        start, end = mark.span.pair
        if mark.name != "text_special" or len(mark.text) == 1:  # else the passage has it as it is written
            yield from range(start, end if end - start <= 2 else start + 1)


def _of(token: Token, environment: Environment, base: int) -> Iterator[Mark]:
    at, (start, end) = token.meta["at"], token.meta.get("span", (0, 0))
    name = token.type.removesuffix("_open").removesuffix("_close")

    def mark(kind: PieceKind, start: int, end: int, read: str = "") -> Mark:
        return Mark(kind, Span(base + start, base + end), name, read)

    if name == "link" and token.markup == "autolink":
        if token.nesting == 1:
            yield mark(PieceKind.OPAQUE, start, end)
    elif name == "link":
        yield mark(PieceKind.START, start, at) if token.nesting == 1 else mark(PieceKind.END, at, end)
    elif name in PAIRS and token.nesting:
        first = at - (token.type == "strong_open")
        yield mark(PieceKind.START if token.nesting == 1 else PieceKind.END, first, first + PAIRS[name])
    elif name == "image" and token.content.strip():
        inside = start + 2
        yield mark(PieceKind.START, start, inside)
        yield from marks(token.content, environment, base + inside)
        yield mark(PieceKind.END, inside + len(token.content), end)
    elif name == "image":
        yield mark(PieceKind.MARK, start, end)
    elif name in SINGLE:
        yield mark(SINGLE[name], start, end, " " if name == "softbreak" else token.content)


class _State(StateInline):
    """The parser's state, where each token knows at which character it begins."""

    def push(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1]) -> Token:
        token = super().push(ttype, tag, nesting)
        token.meta["at"] = self.pos
        return token


def _located(rule: Rule) -> Rule:
    """A rule whose tokens know all that they were made of."""

    def located(state: StateInline, silent: bool) -> bool:
        start, n_before = state.pos, len(state.tokens)
        matched = rule(state, silent)
        if matched and not silent:
            for token in state.tokens[n_before:]:
                token.meta.setdefault("span", (start, state.pos))
        return matched

    return located


def _located_delimiters(rule: Rule) -> Rule:
    """The same, for a rule that makes several tokens of a run of characters."""

    def located(state: StateInline, silent: bool) -> bool:
        start, n_before = state.pos, len(state.tokens)
        matched = rule(state, silent)
        end = state.pos
        for token in reversed(state.tokens[n_before:]):
            if end > start:
                end -= len(token.content)
                token.meta["at"] = end
        return matched

    return located


def _note(state: StateInline, silent: bool) -> bool:
    """The number of a footnote, or a box: markdown-it-py reads both as text."""
    found = (TASK if state.pos == 0 else NOTE).match(state.src, state.pos) or NOTE.match(state.src, state.pos)
    if found is None or found.end() > state.posMax:
        return False
    if not silent:
        state.push("hardbreak" if found.group().startswith("[!") else "note", "", 0)
    state.pos = found.end()
    return True


def _matching(pattern: re.Pattern[str], name: str) -> Rule:
    """A rule that makes one token of what a pattern matches."""

    def rule(state: StateInline, silent: bool) -> bool:
        found = pattern.match(state.src, state.pos)
        if found is None or found.end() > state.posMax:
            return False
        if not silent:
            state.push(name, "", 0)
        state.pos = found.end()
        return True

    return rule


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    parser.inline.ruler2.disable("fragments_join")
    ruler = parser.inline.ruler
    for name in ("autolink", "backticks", "entity", "escape", "html_inline", "image", "link", "newline"):
        ruler.at(name, _located(getattr(rules_inline, "backtick" if name == "backticks" else name)))
    ruler.at("emphasis", _located_delimiters(rules_inline.emphasis.tokenize))
    ruler.at("strikethrough", _located_delimiters(rules_inline.strikethrough.tokenize))
    parser.block.ruler.before("reference", "container", container, {"alt": ["paragraph", "reference", "blockquote"]})
    ruler.before("link", "note", _located(_note))
    ruler.before("escape", "fence", _located(_matching(FENCE, "hardbreak")))
    ruler.before("escape", "math", _located(_matching(MATH, "math")))
    return parser


PARSER = _parser()
