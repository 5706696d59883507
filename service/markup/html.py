"""Read HTML as a flat list of pieces: text, inline tags and untranslated elements; passages are made of them.

Python's parser finds the tags, even in broken HTML; this module decides what they mean for a translation.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from html import unescape
from html.parser import HTMLParser
from itertools import accumulate

from service.markup.attributes import HeldTexts
from service.markup.draft import assemble
from service.markup.passages import BEGINS_TAG, ParsedText
from service.markup.pieces import Piece, PieceKind, is_letter, split_neighbours
from service.markup.references import read_texts
from service.schemas.requests import NO_RULES, TagRules
from service.text.language_marks import MarkedLanguages


def _names(names: str) -> frozenset[str]:
    return frozenset(names.split())


BLOCKS = _names(
    "address article aside base blockquote body br button caption center col colgroup dd details dialog dir div dl dt "
    "fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html legend li link "
    "listing main menu meta nav noframes noscript ol optgroup option p plaintext pre script search section select "
    "style summary table tbody td template tfoot th thead title tr ul xmp"
)
"""Elements that separate passages; all other elements, even unknown ones, are inline, as in a browser."""
VOID = _names("area base br col embed frame hr img input link meta param source track wbr")
"""Elements without an end tag."""
WORDS = _names("code kbd math samp var")
"""Untranslated elements that are words of their sentence."""
RAISED = _names("sub sup")
"""Elements of raised and lowered text."""
UNREAD = _names("iframe noembed noframes plaintext pre rp rt script style svg textarea xmp")
"""Untranslated elements that are not part of a sentence."""
KEPT = WORDS | UNREAD
INLINE = _names(
    "a abbr acronym applet audio b bdi bdo big canvas cite data datalist del dfn em font i ins label map mark math "
    "meter object output picture progress q ruby s slot small span strike strong sub sup time tt u video"
)
"""Other elements of HTML. Written without an end tag (<i class="icon"/>) they are not words, unlike <x/>."""
HALVES = re.compile(r"<(?:bpt|bx|ept|ex|it)\b|.*?\"(?:START|CLOSE)_")
"""Start and end tags that formats for translators (XLIFF, Angular's) write as empty elements."""
VALUED = re.compile(r"[a-z][a-z0-9:._-]*(?==)")
DRAWN = _names("desc text textpath title tspan")
"""Elements of a drawing (svg) with text that people read."""


def parse(html: str, rules: TagRules = NO_RULES, languages: MarkedLanguages | None = None) -> ParsedText:
    """Read HTML: a document, a fragment or any other text. Nothing is refused. With `languages`, marks of the source's
    language become marks of the target's."""
    held = HeldTexts(html, languages)
    return ParsedText(held.beside(assemble(read_pieces(html, rules, held))))


def read_pieces(html: str, rules: TagRules = NO_RULES, held: HeldTexts | None = None) -> list[Piece]:
    """Return the pieces of a text. Nothing is lost; some end tags may have no start tag. With `held`, anchors stand for
    values of attributes and the texts of drawings."""
    items = _with_overrides(_Reader(html, rules, held).items)
    return split_neighbours(with_words(_with_opaque(html, items, held)))


@dataclass(frozen=True)
class _HtmlItem:
    kind: PieceKind
    start: int
    raw: str = ""
    """The text, or the source of a start tag."""
    tag: str = ""
    opaque: bool = False
    is_block: bool = False
    translate: bool | None = None
    """Whether its attributes ask for a translation; None if they do not say."""
    is_page_break: bool = False
    """Whether it is the number of a page of the printed book, which stands anywhere in a sentence."""
    is_drawing: bool = False
    """Whether it begins a drawing (svg) whose texts are translated."""


class _Reader(HTMLParser):
    """Reads a whole text. The parser is not closed: unfinished text stays unchanged."""

    def __init__(self, html: str, rules: TagRules, held: HeldTexts | None) -> None:
        super().__init__(convert_charrefs=True)
        self.items: list[_HtmlItem] = []
        self._held = held
        self._unchanged = _lower(rules.keep)
        self._blocks = (BLOCKS | _lower(rules.blocks)) - _lower(rules.inline)
        self._kept = KEPT | self._unchanged
        self._lines = [0, *accumulate(len(line) + 1 for line in html.split("\n"))]
        self.feed(html)
        if self.rawdata:
            start = len(html) - len(self.rawdata)
            is_text = self.cdata_elem is None and (not self.rawdata.startswith("<") or self.rawdata == "<")
            raw = unescape(self.rawdata) if is_text else self.rawdata
            self.items.append(_HtmlItem(PieceKind.TEXT if is_text else PieceKind.BREAK, start, raw))
        self.items.append(_HtmlItem(PieceKind.BREAK, len(html)))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        tag = _without_value(tag)
        raw, translate = self._source_of_tag(tag, attrs), _translate_attribute(attrs)
        is_drawing = tag == "svg" and translate is not False and tag not in self._unchanged
        translate = None if tag in self._kept else translate
        kept = tag in self._kept or translate is False
        kind = PieceKind.START if tag not in VOID else PieceKind.BREAK if tag in self._blocks else PieceKind.MARK
        self._add(kind, raw, tag, kept and kind is PieceKind.START, translate, _is_page_break(attrs), is_drawing)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        tag = _without_value(tag)
        kind = PieceKind.BREAK if tag in self._blocks else PieceKind.MARK
        self._add(kind, self._source_of_tag(tag, attrs), tag)

    def handle_endtag(self, tag: str) -> None:
        self._add(PieceKind.END, "", _without_value(tag))

    def handle_data(self, data: str) -> None:
        self._add(PieceKind.TEXT, data)

    def handle_decl(self, _decl: str) -> None:
        self._add(PieceKind.BREAK)

    def handle_comment(self, data: str) -> None:  # noqa: ARG002
        self._add(PieceKind.MARK)

    handle_pi = unknown_decl = handle_comment

    def parse_marked_section(self, i: int, report: bool = True) -> int:
        """Read <![... as a comment, as a browser does; Python's own method may raise."""
        return self.parse_bogus_comment(i, report)

    def _source_of_tag(self, tag: str, attributes: list[tuple[str, str | None]]) -> str:
        raw = self.get_starttag_text() or ""
        is_read = tag not in self._unchanged and _translate_attribute(attributes) is not False
        return self._held.hold(raw, tag, tag not in self._kept) if is_read and self._held else raw

    def _add(
        self,
        kind: PieceKind,
        raw: str = "",
        tag: str = "",
        opaque: bool = False,
        translate: bool | None = None,
        is_page_break: bool = False,
        is_drawing: bool = False,
    ) -> None:
        line, column = self.getpos()
        start, is_block = self._lines[line - 1] + column, tag in self._blocks
        self.items.append(_HtmlItem(kind, start, raw, tag, opaque, is_block, translate, is_page_break, is_drawing))


def _lower(names: Iterable[str]) -> frozenset[str]:
    return frozenset(map(str.lower, names))


def _without_value(name: str) -> str:
    """Return the name of a tag without a value: <color=#ff0000> ends with </color>."""
    return match[0] if (match := VALUED.match(name)) else name


def _translate_attribute(attributes: list[tuple[str, str | None]]) -> bool | None:
    values = {name: (value or "").lower() for name, value in attributes}
    translate = values.get("translate", "-").strip()
    if translate == "no" or "notranslate" in values.get("class", "").split():
        return False
    return True if translate in ("", "yes") else None


def _is_page_break(attrs: list[tuple[str, str | None]]) -> bool:
    return any(name in ("epub:type", "role") and "pagebreak" in (value or "") for name, value in attrs)


def _with_overrides(items: list[_HtmlItem]) -> list[_HtmlItem]:
    """Replace everything around translate="yes" by breaks in an untranslated element."""
    ends = _ends_by_name(items)
    overrides = [i for i, item in enumerate(items) if item.translate and i in ends]
    read: list[_HtmlItem] = []
    rests: list[tuple[int, int]] = []
    i = 0 if overrides else len(items)
    while i < len(items):
        is_rest = bool(rests) and rests[-1][0] <= i
        end = rests.pop()[1] if is_rest else ends.get(i, i) if items[i].translate is False else i
        n_before = bisect_left(overrides, i)
        override = overrides[n_before] if n_before < len(overrides) else end
        if ends.get(override, end) < end:
            read += [_HtmlItem(PieceKind.BREAK, items[i].start), items[override]]
            rests.append((ends[override] + 1, end))
            i = override + 1
        elif is_rest and i <= end:
            read.append(_HtmlItem(PieceKind.BREAK, items[i].start))
            i = end + 1
        elif not is_rest:
            read.append(items[i])
            i += 1
    return read if overrides else items


def _with_opaque(html: str, items: list[_HtmlItem], held: HeldTexts | None) -> list[Piece]:
    pieces = []
    ends, letters = _ends_by_name(items), _next_letters(items)
    i, last = 0, len(items) - 1
    while i < last:
        item, first = items[i], i
        is_note = first in ends and (item.is_page_break or _is_beside_word(items, first, ends[first], letters[first]))
        if item.opaque or is_note:
            i = ends.get(first, first) + 1
            while first not in ends and not items[i].is_block and items[i].kind is not PieceKind.BREAK:
                i += 1
            element = items[first : i + 1]
            raw = _drawing(html, element, held) if held and item.is_drawing else _source(html, element)
            pieces.append(_opaque(raw, element, is_closed=first in ends, is_note=is_note))
        else:
            i += 1
            raw = html[item.start : items[i].start]
            if item.kind is PieceKind.TEXT:
                texts = [*read_texts(raw, item.raw)]
                if pieces and pieces[-1].raw == "<" and BEGINS_TAG.match(texts[0].raw):  # text between was skipped
                    pieces[-1] = replace(pieces[-1], raw="&lt;")
                pieces += texts
            else:
                is_break = item.is_block and item.kind is not PieceKind.MARK
                pieces.append(Piece(PieceKind.BREAK if is_break else item.kind, item.raw or raw, item.tag))
    return pieces


def _source(html: str, items: list[_HtmlItem]) -> str:
    """Return the source of all items but the last."""
    raw = html[items[0].start : items[-1].start]
    if not raw.startswith(items[0].raw):  # the start tag has anchors for attributes
        raw = items[0].raw + html[items[1].start : items[-1].start]
    return raw


def _drawing(html: str, items: list[_HtmlItem], held: HeldTexts) -> str:
    """Return the source of all items but the last, with anchors for the texts that people read."""
    pieces, ends, end = [items[0].raw], _ends_by_name(items), 0
    for i, (before, item, after) in enumerate(zip(items, items[1:], items[2:], strict=False), 1):
        raw = html[item.start : after.start]
        end = max(end, ends.get(i, i) if item.opaque else 0)
        is_read = item.kind is PieceKind.TEXT and before.tag in DRAWN and i > end
        pieces.append(held.hold_text(raw) if is_read else raw)
    return "".join(pieces)


def _opaque(raw: str, items: list[_HtmlItem], is_closed: bool, is_note: bool) -> Piece:
    """Make a piece of all items but the last, which follows the element. A missing end tag is added."""
    tag, inside = items[0].tag, items[:-1]
    if items[0].is_block:
        return Piece(PieceKind.BREAK, raw, tag)
    if not is_closed:
        kinds = [item.kind for item in inside if item.tag == tag]
        raw += f"</{tag}>" * (kinds.count(PieceKind.START) - kinds.count(PieceKind.END))
    has_text = any(item.raw.strip() for item in inside if item.kind is PieceKind.TEXT)
    is_word = has_text and not is_note and tag not in UNREAD
    return Piece(PieceKind.OPAQUE if is_word else PieceKind.MARK, raw, tag)


def _is_beside_word(items: list[_HtmlItem], start: int, end: int, next_letters: int) -> bool:
    """Return whether an element is raised or lowered and has no letters, as "[1]" and the 2 of "m2", but not of "H2O",
    which goes on."""
    following = items[end + 1]
    goes_on = following.kind is PieceKind.TEXT and following.raw[:1].isalpha()
    return items[start].tag in RAISED and next_letters > end and not goes_on


def _next_letters(items: list[_HtmlItem]) -> list[int]:
    following = [len(items)]
    for i in range(len(items) - 1, -1, -1):
        has_letters = items[i].kind is PieceKind.TEXT and any(map(str.isalpha, items[i].raw))
        following.append(i if has_letters else following[-1])
    return following[:0:-1]


def _ends_by_name(items: Iterable[_HtmlItem]) -> dict[int, int]:
    """Map the number of each start tag to the number of the next unused end tag of its name."""
    ends = {}
    opened: dict[str, list[int]] = {}
    for i, item in enumerate(items):
        if item.kind is PieceKind.START:
            opened.setdefault(item.tag, []).append(i)
        elif item.kind is PieceKind.END and opened.get(item.tag):
            ends[opened[item.tag].pop()] = i
    return ends


def _could_be_word(piece: Piece) -> bool:
    is_unknown = piece.tag not in INLINE | WORDS | UNREAD | VOID | BLOCKS
    return piece.kind is PieceKind.MARK and piece.raw.endswith("/>") and is_unknown and not HALVES.match(piece.raw)


def with_words(pieces: list[Piece], could_be_word: Callable[[Piece], bool] = _could_be_word) -> list[Piece]:
    """Make a word of the sentence of <x/> and the empty elements that touch it, unless a letter touches them."""
    words: list[Piece] = []
    i = 0
    while i < len(pieces):
        end = next((j for j in range(i, len(pieces)) if not could_be_word(pieces[j])), len(pieces))
        touches = (i > 0 and is_letter(pieces[i - 1], -1)) or (end < len(pieces) and is_letter(pieces[end], 0))
        if i < end and not touches:
            words.append(Piece(PieceKind.OPAQUE, "".join(piece.raw for piece in pieces[i:end])))
        else:
            words += pieces[i : end + 1]
        i = end if i < end and not touches else end + 1
    return words
