"""Convert the content of a source in XLIFF to HTML, and translated HTML back to the content of a target.

Inline codes have numbered tags, which alignment moves to the translations of their words.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import unescape

from service.documents.inline_tags import escaped, texts_and_tags
from service.documents.localization.xml_elements import attributes_of, escape_text, for_cdata
from service.markup.html import VOID
from service.markup.pieces import PieceKind, ends_of_elements
from service.markup.xml import MARKUP

BREAK = re.compile(r"(\r\n?|\n|\t+| {3,})")
"""The end of a line, or white space between columns."""
HTML_TAG = re.compile(r"<(/?)([A-Za-z][\w:.-]*)(?:\s[^<>]*?)?(/?)>")
CONTAINERS = {"g", "mrk", "pc"}
"""Elements around words; others hold codes of the original file."""
STARTS = {"bpt": ("rid", "id"), "bx": ("rid", "id"), "sc": ("id",), "sm": ("id",)}
ENDS = {"ept": ("rid", "id"), "ex": ("rid", "id"), "ec": ("startRef", "id"), "em": ("startRef",)}
"""Codes that begin and end an element, and the attributes that tell the pair, the first of those present."""
PAIRS = {"ept": "bpt", "ex": "bx", "ec": "sc", "em": "sm"}
EQUIVALENT = ("equiv-text", "disp", "equiv")
"""Attributes that tell the meaning of a code."""
WORD, MARK, LINE_END = "x", "wbr", "br"
"""The most similar element of HTML: a word, a mark that may stand in a word, and the end of a line."""


@dataclass(frozen=True)
class _Piece:
    kind: PieceKind
    written: str
    text: str = ""
    """The text that a reader sees."""
    key: str = ""
    """The name that a start and its end share."""
    tag: str = MARK
    """The element of HTML for a mark, or for a start or end without its other half."""


class XliffContent:
    """The content of a source, or of a segment of it.

    Args:
        written: the XML.
        keeps_space: whether white space has a meaning (xml:space).
        codes: the original codes, by their id, if the file tells (originalData).
    """

    def __init__(self, written: str, keeps_space: bool, codes: Mapping[str, str]) -> None:
        self._pieces = [*_pieces(written, keeps_space, codes)]
        self._is_data = "<![CDATA[" in written and all(piece.kind is PieceKind.TEXT for piece in self._pieces)
        self.has_words = any(character.isalnum() for piece in self._pieces for character in piece.text)
        self.html = "".join(self._html())

    def translated(self, html: str) -> str:
        """Return the content of a target."""
        written: list[str] = []
        ends: list[str] = []
        for part in texts_and_tags(html):
            if isinstance(part, str):
                written.append(part if self._is_data else escape_text(part))
            elif part.number is not None:
                written.append(self._pieces[part.number].written)
                if part.number in self._ends:
                    ends.append(self._pieces[self._ends[part.number]].written)
            elif part.is_end and ends:
                written.append(ends.pop())
        content = "".join(written)
        return f"<![CDATA[{for_cdata(content)}]]>" if self._is_data else content

    def _html(self) -> Iterator[str]:
        self._ends = ends_of_elements((piece.kind, piece.key) for piece in self._pieces)
        starts = {end: start for start, end in self._ends.items()}
        for i, piece in enumerate(self._pieces):
            if piece.kind is PieceKind.TEXT:
                yield escaped(piece.text)
            elif i in starts:
                yield f"</g{starts[i]}>"
            elif i in self._ends:
                yield f'<g{i} id="{i}">'
            else:
                yield f'<{piece.tag} id="{i}"{"/" * (piece.tag == WORD)}>'


def _pieces(written: str, keeps_space: bool, codes: Mapping[str, str]) -> Iterator[_Piece]:
    tags = [*MARKUP.finditer(written)]
    kinds = {tag: _kind(tag) for tag in tags}
    ends = ends_of_elements((kinds[tag], tag["start"] or tag["end"] or "") for tag in tags)
    position = i = 0
    while i < len(tags):
        tag = tags[i]
        yield from _texts(written[position : tag.start()], keeps_space)
        name = (tag["start"] or tag["end"] or "").rpartition(":")[2]
        attributes = attributes_of(tag.group())
        is_kept = attributes.get("translate") == "no" or attributes.get("mtype") == "protected"
        last = tags[ends.get(i, i)]
        position = tag.end()
        if tag["data"] is not None:
            yield _Piece(PieceKind.TEXT, tag.group(), tag["inside"])
        elif name in CONTAINERS and not tag["empty"] and not is_kept:
            yield _Piece(kinds[tag], tag.group(), key=name)
        elif name == "":
            yield _Piece(PieceKind.MARK, tag.group())
        else:
            whole, inside = written[tag.start() : last.end()], written[tag.end() : last.start()]
            yield _code(name, attributes, whole, WORD if name in CONTAINERS else inside, codes)
            i, position = ends.get(i, i), last.end()
        i += 1
    yield from _texts(written[position:], keeps_space)


def _kind(tag: re.Match[str]) -> PieceKind:
    if tag["start"] and not tag["empty"]:
        return PieceKind.START
    return PieceKind.END if tag["end"] else PieceKind.MARK


def _texts(written: str, keeps_space: bool) -> Iterator[_Piece]:
    for i, part in enumerate(BREAK.split(written) if keeps_space else [written]):
        if i % 2:
            yield _Piece(PieceKind.MARK, part, tag=LINE_END)
        elif part:
            yield _Piece(PieceKind.TEXT, part, unescape(part))


def _code(name: str, attributes: Mapping[str, str], written: str, content: str, codes: Mapping[str, str]) -> _Piece:
    """An inline code is a start or an end if its name says so, or if it stands for a tag of HTML."""
    if name in STARTS or name in ENDS:
        kind, pair = (PieceKind.START, name) if name in STARTS else (PieceKind.END, PAIRS[name])
        return _Piece(kind, written, key=f"{pair} {_first(attributes, (STARTS | ENDS)[name])}")
    code = unescape(content) or codes.get(attributes.get("dataRef", ""), "") or _first(attributes, EQUIVALENT)
    html = HTML_TAG.fullmatch(code.strip())
    tag = html[2].lower() if html else ""
    if tag == "br" or "lb" in (attributes.get("ctype"), attributes.get("subType", "").removeprefix("xlf:")):
        return _Piece(PieceKind.MARK, written, tag=LINE_END)
    if tag == "img" or "image" in (attributes.get("ctype"), attributes.get("type")):
        return _Piece(PieceKind.MARK, written, tag="img")
    if html is None:
        return _Piece(PieceKind.MARK, written, tag=MARK if name == "it" else WORD)
    is_start = not (html[1] or html[3] or tag in VOID)
    kind = PieceKind.END if html[1] else PieceKind.START if is_start else PieceKind.MARK
    return _Piece(kind, written, key=f"< {tag}")


def _first(attributes: Mapping[str, str], names: Sequence[str]) -> str:
    return next((attributes[name] for name in names if name in attributes), "")
