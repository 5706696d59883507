"""Find inline marks of Markdown. markdown-it-py decides where a mark is, by the rules of CommonMark."""

import re
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, Literal

from markdown_it import MarkdownIt, rules_inline
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.state_inline import Delimiter
from markdown_it.token import Token

from service.kept.kept_kinds import OPEN
from service.markup.containers import container
from service.markup.flanking import EMPHASIS, SIGNS
from service.markup.mdx import JSX, module
from service.markup.pieces import PieceKind
from service.text.scripts import LETTER
from service.text.spans import Span

Rule = Callable[[StateInline, bool], bool]
Environment = MutableMapping[str, Any]
"""The link definitions of the whole text, as the parser keeps them."""
NOTE = re.compile(r"\[\^[^\[\]\s]{1,80}\]")
CALLOUT = re.compile(r"\[![A-Za-z][\w-]*\][-+]?(?=\s|$)")
"""The kind of a callout, and whether it is folded. A title may follow in its line."""
TASK = re.compile(rf"\[[ xX]\](?=\s)|{CALLOUT.pattern}")
"""The check box of a task, or a callout."""
FENCE = re.compile(
    r"""^(?: :{3}.*
    |(?:\{:[^}\n]*+\}|\{\{[%<](?:(?![%>]\}\}).)*+[%>]\}\}|\{%(?:(?!%\}).)*+%\}
      |\$\$(?:[^$\\]|\\(?s:.))*+\$\$)[ \t]*$)""",
    re.MULTILINE | re.VERBOSE,
)
"""Lines without text: fences of a container (:::tip), attributes ({: .note}), tags of Hugo ({{< x >}}) and Liquid ({% x
%}), and mathematics."""
WORD = r"(?:[^\W\d_]{3}|[^\W\d_]{2}\s|\s[^\W\d_]{2})"
MATH = re.compile(
    rf"""(?<![0-9A-Za-z\\])(?P<sign>\$\$?)(?![\s${{])(?!(?=[^\\^{{}}=$]*+\$)[^$]*?{WORD})
        (?:[^\\$]|\\.)*+(?<!\s)(?P=sign)(?![0-9${{])(?:(?<=[\w}})]\$)|(?![A-Za-z]))
    |\\\((?!(?=[^\\^{{}}=]*+\\\))[^\\]*?{WORD})(?:[^\\]|\\[^()])*+\\\)""",
    re.DOTALL | re.VERBOSE,
)
"""Mathematics in a sentence. Words without a sign of TeX are not mathematics, nor are prices, ${name} and $NAME."""
DOUBLED = re.compile(
    rf"(?![%#@]{{2}}[A-Za-z_][\w.-]*[%#@]{{2}})([{SIGNS}])(?<!\1\1)\1+(?!(?<=!)\[)|(\()\((?=[^()]*\)\))|\)\)"
)
"""A doubled sign, as in ==word==, which is a mark if another sign belongs to it; ##name## is a placeholder."""
OPENS = re.compile(rf"(?:{OPEN}|(?<=[*_~]))(.)\1+(?![\s)\]}}>.,;:!?…]|\Z)", re.DOTALL)
CLOSES = re.compile(rf"(?<![\s(\[{{<])(.)\1+(?!{LETTER})", re.DOTALL)
"""Doubled signs that stand before and after words."""
OTHER_MARKERS = 0x110000
"""Signs of different lengths are different markers for the parser, beyond all characters."""
PAIRS = {"em": 1, "strong": 2, "s": 2, "doubled": 0, "link": 0, "image": 0}
"""Names of tokens with a mark before and after them, and the length of both marks; 0 if it differs."""
MAY_MARK = frozenset("*_~[]<&`$\\")
"""Characters that may begin a mark or an escape."""
DOUBLING = frozenset(2 * sign for sign in SIGNS + "()")
"""Signs that may begin a mark because they are doubled."""
MAX_PASSES = 4
"""Maximum number of passes over a text: escaping a mark may reveal another mark, such as a link in a link."""
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
    """A mark, or text whose source differs from what a reader sees."""

    kind: PieceKind
    span: Span
    name: str
    """The name of its token in the parser."""
    text: str = ""
    """The text that a reader sees."""


def marks(text: str, environment: Environment, base: int = 0) -> Iterator[Mark]:
    """Yield the marks of one paragraph in order, properly nested."""
    state = _State(text, PARSER, environment, [])
    PARSER.inline.tokenize(state)
    for rule in PARSER.inline.ruler2.getRules(""):
        rule(state)
    for token in sorted((token for token in state.tokens if "at" in token.meta), key=lambda token: token.meta["at"]):
        yield from _marks_of_token(token, environment, base)


def escape(pieces: list[str], characters: Sequence[int], environment: Environment) -> None:
    """Put a backslash before characters of a paragraph that would be read as marks, in place. `characters` are the
    numbers of pieces that are characters of the text; all other pieces are marks."""
    doubled = DOUBLING.intersection(map("".join, pairwise(pieces)))
    plain = {i for i in characters if pieces[i] in MAY_MARK or 2 * pieces[i] in doubled}
    tags = {*range(len(pieces))}.difference(characters) if plain else set()
    for _ in range(MAX_PASSES if plain else 0):
        starts = [*accumulate(map(len, pieces), initial=0)]
        deciding = {*_mark_positions("".join(pieces), environment)}
        misread = {i for i in plain if starts[i] in deciding}
        if not misread and not all(_is_found(pieces[i], starts[i], deciding) for i in tags):
            misread = {*plain}  # a character of the text joins the mark of emphasis that it touches, or ends a link
        for i in misread:
            pieces[i] = "\\" + pieces[i]
        plain -= misread
        if not misread:
            break


def _is_found(tag: str, start: int, deciding: set[int]) -> bool:
    mark = tag.strip()
    start += tag.find(mark)
    if EMPHASIS.fullmatch(mark):
        return deciding.issuperset(range(start, start + len(mark)))
    return start in deciding or not (mark in ("[", "![") or mark.startswith("]"))


def _mark_positions(text: str, environment: Environment) -> Iterator[int]:
    """Yield the positions of characters that make marks: all of a short mark, the first one of code or an address."""
    for mark in marks(text, environment):
        start, end = mark.span.pair
        if mark.name != "text_special" or len(mark.text) == 1:  # otherwise the passage keeps its source
            yield from range(start, end if end - start <= 2 else start + 1)


def _marks_of_token(token: Token, environment: Environment, base: int) -> Iterator[Mark]:
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
        length = PAIRS[name] or len(token.content)
        yield mark(PieceKind.START if token.nesting == 1 else PieceKind.END, first, first + length)
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
    def push(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1]) -> Token:
        token = super().push(ttype, tag, nesting)
        token.meta["at"] = self.pos
        return token


def _record_span(rule: Rule) -> Rule:
    def recording(state: StateInline, silent: bool) -> bool:
        start, n_before = state.pos, len(state.tokens)
        matched = rule(state, silent)
        if matched and not silent:
            for token in state.tokens[n_before:]:
                token.meta.setdefault("span", (start, state.pos))
        return matched

    return recording


def _record_delimiters(rule: Rule) -> Rule:
    """Wrap a rule that makes several tokens of a run of characters, so that each token records its start."""

    def recording(state: StateInline, silent: bool) -> bool:
        start, n_before = state.pos, len(state.tokens)
        matched = rule(state, silent)
        end = state.pos
        for token in reversed(state.tokens[n_before:]):
            if end > start:
                end -= len(token.content)
                token.meta["at"] = end
        return matched

    return recording


def _doubled(state: StateInline, silent: bool) -> bool:
    """Read a doubled sign as markdown-it-py reads ~~."""
    match = DOUBLED.match(state.src, state.pos)
    if match is None or silent or match.end() > state.posMax:
        return False
    token = state.push("text", "", 0)
    token.content = match.group()
    start, end = match.span()
    opens = OPENS.match(state.src, start) and match.group() != "))"
    closes = CLOSES.match(state.src, start) and not match[2]
    marker = ord(match.group()[0].replace(")", "(")) + OTHER_MARKERS * (end - start)
    state.delimiters.append(Delimiter(marker, 0, len(state.tokens) - 1, -1, bool(opens), bool(closes)))
    state.pos = end
    return True


def _pair_doubled(state: StateInline) -> None:
    inside = (meta["delimiters"] for meta in state.tokens_meta if meta and "delimiters" in meta)
    for delimiters, delimiter in ((group, delimiter) for group in (state.delimiters, *inside) for delimiter in group):
        if delimiter.marker > OTHER_MARKERS and delimiter.end != -1:
            start, end = state.tokens[delimiter.token], state.tokens[delimiters[delimiter.end].token]
            start.type, start.nesting, end.type, end.nesting = "doubled_open", 1, "doubled_close", -1


def _note(state: StateInline, silent: bool) -> bool:
    """Read the number of a footnote, or a check box, which markdown-it-py reads as text."""
    match = (TASK if state.pos == 0 else NOTE).match(state.src, state.pos) or NOTE.match(state.src, state.pos)
    name = "hardbreak" if match and match.group().startswith("[!") else "note"
    return _read_token(state, silent, match, name)


def _end_of_title(state: StateInline, silent: bool) -> bool:
    """Read the end of the first line of a callout: its title is a sentence of its own."""
    if not CALLOUT.match(state.src) or state.src.find("\n") != state.pos:
        return False
    return _read_token(state, silent, re.compile("\n").match(state.src, state.pos), "hardbreak")


def _matching(pattern: re.Pattern[str], name: str) -> Rule:
    return lambda state, silent: _read_token(state, silent, pattern.match(state.src, state.pos), name)


def _read_token(state: StateInline, silent: bool, match: re.Match[str] | None, name: str) -> bool:
    if match is None or match.end() > state.posMax:
        return False
    if not silent:
        state.push(name, "", 0)
    state.pos = match.end()
    return True


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    parser.inline.ruler2.disable("fragments_join")
    parser.inline.ruler2.push("doubled", _pair_doubled)
    for sign in SIGNS.replace("\\", "") + "()":
        parser.inline.add_terminator_char(sign)
    ruler = parser.inline.ruler
    for name in ("autolink", "backticks", "entity", "escape", "html_inline", "image", "link", "newline"):
        ruler.at(name, _record_span(getattr(rules_inline, "backtick" if name == "backticks" else name)))
    ruler.at("emphasis", _record_delimiters(rules_inline.emphasis.tokenize))
    ruler.at("strikethrough", _record_delimiters(rules_inline.strikethrough.tokenize))
    parser.block.ruler.before("reference", "module", module)
    parser.block.ruler.before("reference", "container", container, {"alt": ["paragraph", "reference", "blockquote"]})
    ruler.before("newline", "title", _record_span(_end_of_title))
    ruler.before("emphasis", "doubled", _doubled)
    ruler.before("link", "note", _record_span(_note))
    ruler.before("escape", "fence", _record_span(_matching(FENCE, "hardbreak")))
    ruler.before("html_inline", "jsx", _record_span(_matching(JSX, "html_inline")))
    ruler.before("escape", "math", _record_span(_matching(MATH, "math")))
    return parser


PARSER = _parser()
