"""Read Markdown as passages to translate: paragraphs, headings and cells. Everything else stays byte for byte.

markdown-it-py finds the blocks, and passages are cut out of the source, so nothing is rendered from the tokens.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from string import punctuation as PUNCTUATION

from markdown_it.token import Token

from service.markup.draft import assemble
from service.markup.html import BLOCKS, UNREAD, VOID, WORDS, read_pieces, with_words
from service.markup.inline_marks import PAIRS, PARSER, Environment, Mark, escape, marks
from service.markup.passages import Notation, ParsedText, Passage
from service.markup.pieces import Piece, PieceKind
from service.text.sentences import strip_span
from service.text.spans import Span

LINE = re.compile(r"([^\r\n]*)(\r\n?|\n|$)")
FRONT_MATTER = re.compile(
    r"""(?:(?P<yaml>---)|\+{3})[ \t]*\n
    (?:(?=(?:\#.*\n)*+(?:[\w.'"-]++[ \t]*[:=]|-{3}|\+{3}))(?:.*\n)*?
    |(?:[ \t]*+(?:\#.*)?\n)*+(?=[ \t]*+(?:'[^'\n]++'|"[^"\n]++"|[\w.-]++(?:[ ][\w.-]++){0,2}+)[ \t]*+(?::\s|=))
        (?:[ \t]*+\S.*\n)*?)
    (?(yaml)(?:-{3}|\.{3})|\+{3})[ \t]*(?:\n|$)""",
    re.VERBOSE,
)
"""YAML or TOML before the text. Its first line begins with a key. It has no empty line where it could be prose between
two thematic breaks."""
PIPE = re.compile(r"(?<!\\)\|")
TAG = re.compile(r"</?([A-Za-z][^\s/>]*)")


@dataclass(frozen=True)
class _Inline:
    text: str
    starts: Sequence[tuple[int, int]]
    """For each line its start in the text and its start in the source."""
    in_table: bool = False

    @property
    def span(self) -> Span:
        return Span(self.at(0), self.at(len(self.text)))

    def at(self, position: int) -> int:
        """Return the position in the source of a position in the text."""
        in_text, in_source = self.starts[bisect_right(self.starts, position, key=lambda start: start[0]) - 1]
        return in_source + position - in_text


def parse(markdown: str) -> ParsedText:
    """Parse Markdown. Any text is valid Markdown."""
    lines = [Span(*match.span(1)) for match in LINE.finditer(markdown)]
    normalized = "\n".join(line.of(markdown) for line in lines).replace("\0", "\ufffd")
    if front_matter := FRONT_MATTER.match(normalized):
        normalized = re.sub(".", " ", front_matter.group()) + normalized[front_matter.end() :]
    tokens: list[Token] = []
    environment: Environment = {}
    PARSER.block.parse(normalized, PARSER, environment, tokens)
    parts: list[str | Passage] = []
    position = 0
    for content in _contents(tokens, markdown, lines):
        if isinstance(content, Span):
            span, inner = content, _html_block(content.of(markdown))
        else:
            span, inner = content.span, _passages(content, markdown, environment)
        parts += [markdown[position : span.start], *inner]
        position = span.end
    return ParsedText([*parts, markdown[position:]])


def _contents(tokens: list[Token], markdown: str, lines: list[Span]) -> Iterator[_Inline | Span]:
    row: list[str] | None = None
    for token in tokens:
        first, after = token.map or (0, 0)
        if token.type == "tr_open":
            row, row_line = [], lines[first]
        elif token.type == "tr_close" and row is not None:
            yield from _cells(row, markdown, row_line)
            row = None
        elif token.type == "html_block" and token.level == 0:
            yield Span(lines[first].start, lines[after - 1].end)
        elif token.type == "inline" and row is not None:
            row.append(token.content.strip())
        elif token.type == "inline":
            yield from _paragraph(token.content.split("\n"), markdown, lines[first:after])


def _paragraph(contents: list[str], markdown: str, lines: list[Span]) -> Iterator[_Inline]:
    texts, starts, length = [], [], 0
    for i, (content, line) in enumerate(zip(contents, lines, strict=False)):
        content, source = content.strip(" \t"), line.of(markdown)
        start = source.replace("\0", "\ufffd").rfind(content)
        if start < 0:
            return
        end = start + len(content) if i == len(contents) - 1 else len(source)  # with white space: a hard break
        starts.append((length, line.start + start))
        texts.append(source[start:end])
        length += end - start + 1
    if length > 1:
        yield _Inline("\n".join(texts), starts)


def _cells(row: list[str], markdown: str, line: Span) -> Iterator[_Inline]:
    """Yield the cells of a row. The first cell may follow a `|`, or the mark of a quote or list."""
    ends = [*(line.start + match.start() for match in PIPE.finditer(line.of(markdown))), line.end]
    starts = [line.start, *(end + 1 for end in ends)]
    cells = [Span(start, end) for start, end in zip(starts, ends, strict=False)]
    for first in (0, 1):
        places = [strip_span(markdown, cell) or Span(cell.end, cell.end) for cell in cells[first:]][: len(row)]
        unescaped = [place.of(markdown).replace("\\|", "|") for place in places]
        if unescaped[:1] and unescaped[0].endswith(row[0]) and unescaped[1:] == row[1 : len(unescaped)]:
            places[0] = Span(places[0].end - len(row[0]) - row[0].count("|"), places[0].end)
            for place in places:
                if place.start < place.end:
                    yield _Inline(place.of(markdown), [(0, place.start)], in_table=True)
            return


def _passages(inline: _Inline, markdown: str, environment: Environment) -> list[str | Passage]:
    pieces: list[Piece] = []
    position = 0
    starts: list[int] = []
    for mark in [*marks(inline.text, environment), None]:
        plain = inline.text[position : mark.span.start if mark else None]
        pieces.append(Piece(PieceKind.TEXT, plain, text=plain))
        if mark is not None:
            raw = markdown[inline.at(mark.span.start) : inline.at(mark.span.end)]
            piece = _html(raw) if mark.name == "html_inline" else _piece(mark, raw)
            if mark.name in PAIRS and mark.kind is PieceKind.START:
                starts.append(mark.span.end)
            elif mark.name in PAIRS and mark.kind is PieceKind.END:
                label = inline.text[starts.pop() : mark.span.start]
                piece = replace(piece, text=f"][{' '.join(label.split())}]" if raw in ("]", "][]") else "")
            pieces.append(piece)
            position = mark.span.end
    return assemble(with_words(_pair_html_tags(pieces)), _notation(pieces, inline.in_table, environment))


def _notation(pieces: list[Piece], in_table: bool, environment: Environment) -> Notation:
    """Return the notation of a translation: a character that the source always escapes is escaped in the same way."""
    texts = [piece for piece in pieces if piece.kind is PieceKind.TEXT]
    unescaped = {character for piece in texts if piece.text == piece.raw for character in piece.text}
    escaped = (piece for piece in texts if piece.text != piece.raw and piece.text in PUNCTUATION)
    escapes = {piece.text: piece.raw for piece in escaped if piece.text not in unescaped}
    escapes |= {"|": "\\|"} if in_table else {}
    return Notation(escapes, True, not in_table, partial(escape, environment=environment))


def _piece(mark: Mark, raw: str) -> Piece:
    if mark.kind is PieceKind.TEXT:
        return Piece(PieceKind.TEXT, raw, text=mark.text if len(mark.text) == 1 else raw)
    return Piece(mark.kind, raw, f"*{mark.name}" if mark.name in PAIRS else mark.name * (mark.name == "image"))


def _html(raw: str) -> Piece:
    name = match[1].lower() if (match := TAG.match(raw)) else ""
    if name in BLOCKS:
        return Piece(PieceKind.BREAK, raw, name)
    if name in VOID or not name or raw.endswith("/>"):
        return Piece(PieceKind.MARK, raw, name)
    return Piece(PieceKind.END if raw.startswith("</") else PieceKind.START, raw, name)


def _html_block(html: str) -> list[str | Passage]:
    """Return the passages of a block of HTML. The other tag of a pair may be in another block, after Markdown."""
    pieces = read_pieces(html)
    return assemble(_pair_html_tags(pieces)) if "".join(piece.raw for piece in pieces) == html else [html]


def _pair_html_tags(pieces: list[Piece]) -> list[Piece]:
    """Return the pieces with paired HTML tags. A tag that is alone between its Markdown marks becomes a mark, and an
    untranslated element, such as <kbd>, becomes one piece."""
    balanced: list[Piece] = []
    opened: list[int] = []
    for piece in [*pieces, None]:
        while opened and (piece is None or (piece.kind is PieceKind.END and piece.tag.startswith("*"))):
            start = balanced[opened[-1]]
            if piece is not None and start.tag == piece.tag:
                break
            balanced[opened.pop()] = replace(start, kind=PieceKind.MARK, tag="")
        if piece is None:
            break
        if piece.kind is PieceKind.START:
            opened.append(len(balanced))
        elif piece.kind is PieceKind.END and not (opened and balanced[opened[-1]].tag == piece.tag):
            piece = replace(piece, kind=PieceKind.MARK, tag="")
        elif piece.kind is PieceKind.END:
            first = opened.pop()
            if piece.tag in WORDS | UNREAD:
                inside = [*balanced[first:], piece]
                has_text = piece.tag in WORDS and any(part.text.strip() for part in inside)
                piece = Piece(PieceKind.OPAQUE if has_text else PieceKind.MARK, "".join(part.raw for part in inside))
                del balanced[first:]
        balanced.append(piece)
    return balanced
