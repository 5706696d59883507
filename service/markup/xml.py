"""Read XML, a whole document or a part of one.

Text that is not well-formed is read too: whatever XML defines is markup, and everything else is text. Nothing is lost.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from html import escape, unescape
from xml.parsers import expat

from service.markup.draft import assemble
from service.markup.html import HALVES, with_words
from service.markup.passages import ParsedText
from service.markup.pieces import Piece, PieceKind, ends_of_elements
from service.schemas.requests import NO_RULES, TagRules

MARKUP = re.compile(
    r"""<(?:
      (?P<data>!\[CDATA\[(?P<inside>.*?)\]\]>)
    | (?P<doctype>!DOCTYPE (?:[^<>"'\[\]] | QUOTED)*+ (?:\[(?:[^<\]"'] | QUOTED | <!--.*?--> | <(?!!--))*+\]\s*+)?+ >)
    | !--.*?--> | \?.*?\?>
    | (?:!--|\?|!\[CDATA\[|!DOCTYPE).*  # without an end: the rest of the text
    | /(?P<end>[^\s<>/!?="']++)\s*+>
    | (?P<start>[^\s<>/!?="']++) (?:=(?:"[^"<]*+"|'[^'<]*+'|[\w.\#-]++))?+
      (?:\s++[^\s<>/="']++\s*+=\s*+(?:"[^<"]*+"|'[^<']*+'))*+ \s*+(?P<empty>/?)>
    )""".replace("QUOTED", """"[^"]*" | '[^']*'"""),
    re.VERBOSE | re.DOTALL,
)
ROOT = -1
"""Stands for the start tag of an element around the whole text."""
REFERENCE = re.compile(r"(&(?:#[0-9]{1,7}|#x[0-9a-fA-F]{1,6}|[a-zA-Z][\w.-]{0,40});)")


def parse(xml: str, rules: TagRules = NO_RULES) -> ParsedText:
    """Read XML. Nothing is refused."""
    return ParsedText(assemble(read_pieces(xml, rules)))


def read_pieces(xml: str, rules: TagRules = NO_RULES) -> list[Piece]:
    """Return the pieces of a text, with balanced inline tags."""
    items = _items(xml)
    _match_tags(items)
    _find_blocks(items, xml, rules)
    return with_words([*_pieces(items, xml, {*rules.keep})], _could_be_word)


def is_well_formed(xml: str) -> bool:
    """Return whether a text is an XML document or the content of an element. Entities need not be declared."""
    return _is_document(xml) or _is_document(f"<_>{xml}</_>")


def _is_document(xml: str) -> bool:
    parser = expat.ParserCreate("utf-8")  # a declared encoding does not count: the text is decoded
    parser.UseForeignDTD(True)
    parser.ExternalEntityRefHandler = lambda *_: 1  # external entities are not read
    try:
        parser.Parse(xml.encode(errors="surrogatepass"), True)
    except expat.ExpatError:
        return False
    return True


@dataclass
class _XmlItem:
    """Text or markup. Later steps set `kind` and `last`."""

    kind: PieceKind
    start: int
    end: int
    tag: str = ""
    text: str | None = None
    """The source of a text, if it differs from the document."""
    last: int = 0
    """The number of the end tag of an element; the item's own number if it has no end tag."""


def _items(xml: str) -> list[_XmlItem]:
    items, position = [], 0
    for match in MARKUP.finditer(xml):
        if match.start() > position:
            items.append(_XmlItem(PieceKind.TEXT, position, match.start()))
        position = match.end()
        name = match["start"] or match["end"] or ""
        if match["data"]:
            item = _XmlItem(PieceKind.TEXT, *match.span(), text=escape(match["inside"], quote=False))
        elif match["doctype"] or match.group().startswith("<?xml "):
            item = _XmlItem(PieceKind.BREAK, *match.span())
        elif match["end"]:
            item = _XmlItem(PieceKind.END, *match.span(), name)
        else:
            is_start = match["start"] and not match["empty"]
            item = _XmlItem(PieceKind.START if is_start else PieceKind.MARK, *match.span(), name)
        items.append(item)
    if position < len(xml):
        items.append(_XmlItem(PieceKind.TEXT, position, len(xml)))
    return items


def _match_tags(items: list[_XmlItem]) -> None:
    """A tag without the other tag of its pair becomes a mark."""
    ends = ends_of_elements((item.kind, item.tag) for item in items)
    closing = {*ends.values()}
    for i, item in enumerate(items):
        item.last = ends.get(i, i)
        if (item.kind is PieceKind.START and i not in ends) or (item.kind is PieceKind.END and i not in closing):
            item.kind = PieceKind.MARK


def _find_blocks(items: list[_XmlItem], xml: str, rules: TagRules) -> None:
    """Elements without text beside them separate passages, unless the rules say otherwise."""
    with_text, inline, blocks = _with_text(items, xml), {*rules.inline}, {*rules.blocks}
    is_inline = [ROOT in with_text or not rules.detect]
    for i, item in enumerate(items):
        if item.kind is PieceKind.END or (item.kind is PieceKind.BREAK and item.tag):
            is_inline.pop()
        elif item.tag:
            in_sentence = item.tag in inline or (is_inline[-1] and item.tag not in blocks)
            if item.kind is PieceKind.START:
                is_inline.append(in_sentence or i in with_text or not rules.detect)
            if not in_sentence:
                item.kind = items[item.last].kind = PieceKind.BREAK


def _with_text(items: list[_XmlItem], xml: str) -> set[int]:
    """Return the numbers of the start tags of elements with text outside inner elements."""
    inside, with_text = [ROOT], set()
    for i, item in enumerate(items):
        if item.kind is PieceKind.START:
            inside.append(i)
        elif item.kind is PieceKind.END:
            inside.pop()
        elif item.kind is PieceKind.TEXT and unescape(_raw_text(item, xml)).strip():
            with_text.add(inside[-1])
    return with_text


def _pieces(items: list[_XmlItem], xml: str, keep: Collection[str]) -> Iterator[Piece]:
    """An element that stays unchanged, or is empty, is one piece."""
    i = 0
    while i < len(items):
        item = items[i]
        last = item.last if item.tag in keep or item.last == i + 1 else i
        raw = xml[item.start : items[last].end]
        if item.kind is PieceKind.TEXT:
            yield from _texts(_raw_text(item, xml))
        elif last == i or item.kind is PieceKind.BREAK:
            yield Piece(item.kind, raw, item.tag)
        else:
            has_text = any(part.kind is PieceKind.TEXT and xml[part.start : part.end].strip() for part in items[i:last])
            yield Piece(PieceKind.OPAQUE if has_text and not HALVES.match(raw) else PieceKind.MARK, raw, item.tag)
        i = last + 1


def _raw_text(item: _XmlItem, xml: str) -> str:
    return xml[item.start : item.end] if item.text is None else item.text


def _texts(written: str) -> Iterator[Piece]:
    """Each reference is a piece; an entity that the document declares stays unchanged."""
    for i, part in enumerate(REFERENCE.split(written)):
        read = unescape(part) if i % 2 else part
        is_text = i % 2 == 0 or len(read) == 1
        yield Piece(PieceKind.TEXT, part, text=read) if is_text else Piece(PieceKind.OPAQUE, part)


def _could_be_word(piece: Piece) -> bool:
    is_empty = piece.raw.endswith("/>") or piece.raw.count("<") > 1
    return piece.kind is PieceKind.MARK and piece.tag != "" and is_empty and not HALVES.match(piece.raw)
