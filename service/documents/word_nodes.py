"""What a paragraph of Word consists of: text, what is no text, and groups of both such as links."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Any

from lxml import etree

Element = Any
"""An element of lxml, which has no types."""

PROPERTIES = {"pPr", "rPr", "sdtPr", "sdtEndPr", "smartTagPr", "customXmlPr"}
"""What is about the element that it is in."""
GONE = PROPERTIES | {"", "proofErr", "softHyphen", "lastRenderedPageBreak"}
"""And what is about the text as it was; "" is a comment."""
TAGS = dict.fromkeys(("br", "cr", "tab", "ptab"), "br") | dict.fromkeys(("sym", "pgNum", "oMath", "oMathPara"), "x")
PICTURES = {"drawing", "pict", "object", "AlternateContent"}
GROUPS = {"hyperlink", "ins", "moveTo", "smartTag", "customXml", "dir", "bdo", "sdt"}
LINK = "span"
"""Not `a`: in HTML two links that touch share no word, but Word may cut a link in mid-word."""
RANGE = re.compile(r"(\w+)(Start|End)")
"""The two marks of a bookmark, of what a comment is on, or the like, which have an id in common."""
MAX_RANGES_AROUND = 8
"""The limit of ranges that a word may be in."""

SPACE = "{http://www.w3.org/XML/1998/namespace}space"
SPACES = re.compile("( {3,})")
"""What parts columns; two spaces may be between sentences."""
NO_BREAK_HYPHEN = "\N{NON-BREAKING HYPHEN}"


@dataclass(frozen=True)
class Piece:
    """A child of a run, or of what has runs."""

    run: Element | None
    element: Element


@dataclass(frozen=True)
class Text:
    text: str
    piece: Piece


@dataclass(frozen=True)
class Kept:
    """What is no text."""

    tag: str
    """What is most like it in HTML: the end of a line, a word, a picture, or a mark that may be in a word (wbr)."""
    pieces: Sequence[Piece]


@dataclass(frozen=True)
class Group:
    """Nodes that belong together, in an element or between the beginning and the end of a field or a range."""

    tag: str
    nodes: "Sequence[Node]"
    element: Element | None = None
    begin: Sequence[Piece] = ()
    end: Sequence[Piece] = ()


Node = Text | Kept | Group


def nodes_of(parent: Element) -> "list[Node]":
    """What a paragraph, or a group, consists of."""
    nodes = [*_with_fields([*_nodes(parent)])]
    return _with_ranges(nodes, _ranges(nodes) if local_name(parent) == "p" else {})


def content_of(group: Element) -> Element:
    """Where the runs of a group's element are."""
    return next((child for child in group if local_name(child) == "sdtContent"), group)


def local_name(element: Element) -> str:
    """Return the name without its namespace: Word has two of them, for one and the same thing; "" for a comment."""
    return etree.QName(element).localname if isinstance(element.tag, str) else ""


def attribute(element: Element, name: str) -> str:
    """Return an attribute of any namespace; "" if there is none."""
    return next((value for key, value in element.items() if etree.QName(key).localname == name), "")


def _nodes(parent: Element) -> Iterator[Node]:
    for child in parent:
        name = local_name(child)
        if name == "r":
            for element in child:
                if local_name(element) not in GONE:
                    yield from _in_run(child, element)
        elif name in GROUPS or (name == "fldSimple" and _is_link(attribute(child, "instr"))):
            yield Group(LINK if name in ("hyperlink", "fldSimple") else "ins", nodes_of(content_of(child)), child)
        elif name not in GONE:
            yield Kept("x" if name == "fldSimple" else TAGS.get(name, "wbr"), [Piece(None, child)])


def _in_run(run: Element, element: Element) -> Iterator[Text | Kept]:
    name, piece = local_name(element), Piece(run, element)
    if name in PICTURES:
        is_inline = name in ("pict", "object") or any(local_name(one) == "inline" for one in element.iter())
        yield Kept("img" if is_inline else "wbr", [piece])
    elif name == "t":
        text = element.text or ""
        yield from _columns(text if attribute(element, "space") == "preserve" else text.strip(), piece)
    elif name == "noBreakHyphen":
        yield Text(NO_BREAK_HYPHEN, piece)
    elif name == "ruby":
        base = (one for one in element if local_name(one) == "rubyBase")  # the reading above it is none of the text
        yield Text("".join(one.text or "" for part in base for one in part.iter() if local_name(one) == "t"), piece)
    else:
        yield Kept(TAGS.get(name, "wbr"), [piece])


def _columns(text: str, piece: Piece) -> Iterator[Text | Kept]:
    """A text in which many spaces are between columns, as a tab is."""
    for i, part in enumerate(SPACES.split(text)):
        if i % 2:
            spaces = etree.Element(piece.element.tag, {SPACE: "preserve"})
            spaces.text = part
            yield Kept("br", [Piece(piece.run, spaces)])
        elif part or part == text:
            yield Text(part, piece)


def _with_fields(nodes: Sequence[Node], links: bool = True) -> Iterator[Node]:
    """Make each field a word, such as the number of a page; a link as a group. One that begins or ends in another
    paragraph, as a table of contents does, is marks around what it shows."""
    ends = _ends_of_fields(nodes)
    i = 0
    while i < len(nodes):
        end = ends.get(i, i)
        yield _of_field(nodes[i : end + 1], links) if end > i else nodes[i]
        i = end + 1


def _ends_of_fields(nodes: Sequence[Node]) -> dict[int, int]:
    ends = {}
    begun: list[int] = []
    for i, node in enumerate(nodes):
        if _field(node) == "begin":
            begun.append(i)
        elif _field(node) == "end" and begun:
            ends[begun.pop()] = i
    return ends


def _of_field(nodes: Sequence[Node], links: bool) -> Node:
    separate = next((i for i, node in enumerate(nodes) if _field(node) == "separate"), len(nodes) - 1)
    elements = [piece.element for piece in _pieces(nodes[:separate])]
    said = "".join(element.text or "" for element in elements if local_name(element) == "instrText")
    if links and _is_link(said) and separate < len(nodes) - 2:
        inside = [*_with_fields(nodes[separate + 1 : -1], links=False)]
        return Group(LINK, inside, None, _pieces(nodes[: separate + 1]), _pieces(nodes[-1:]))
    return Kept("x", _pieces(nodes))


def _field(node: Node) -> str:
    """begin, separate or end of a field."""
    element = node.pieces[0].element if isinstance(node, Kept) else None
    is_field = element is not None and local_name(element) == "fldChar"
    return attribute(element, "fldCharType") if is_field else ""


def _is_link(instruction: str) -> bool:
    return instruction.split()[:1] == ["HYPERLINK"]


def _with_ranges(nodes: Sequence[Node], ranges: Mapping[int, int]) -> list[Node]:
    """Make a group of what is between the two marks of a range, such as a bookmark, and one mark of others that touch.

    Args:
        ranges: the end of each by its start; two are one in the other or apart.
    """
    starts = {end: start for start, end in ranges.items()}
    inside: list[list[Node]] = [[]]
    for is_mark, run in groupby(range(len(nodes)), lambda i: _is_mark(nodes[i])):
        here = [*run]
        if not is_mark:
            inside[-1] += [nodes[i] for i in here]
            continue
        ends = sorted((i for i in here if i in starts), key=lambda end: -starts[end])
        alone = [i for i in here if i not in starts and i not in ranges]
        n_before = bisect_left(alone, min(ends, default=len(nodes)))
        inside[-1] += _as_one([nodes[i] for i in alone[:n_before]])
        for end in ends:
            group = inside.pop()
            inside[-1].append(Group(LINK, group, None, _pieces([nodes[starts[end]]]), _pieces([nodes[end]])))
        inside[-1] += _as_one([nodes[i] for i in alone[n_before:]])
        inside += [[] for i in here if i in ranges]
    return inside[0]


def _ranges(nodes: Sequence[Node]) -> dict[int, int]:
    """The end of each range that has more than marks in it, but for one that goes on where another one ends, and for
    what is in very many others: groups must not be much deeper than XML."""
    n_before = [*accumulate(not _is_mark(node) for node in nodes)]
    begun: dict[tuple[str, str], int] = {}
    pairs: list[tuple[int, int]] = []
    for i, node in enumerate(nodes):
        element = node.pieces[0].element if isinstance(node, Kept) else None
        name = RANGE.fullmatch("" if element is None else local_name(element))
        if name is not None:
            key = name[1], attribute(element, "id")
            if name[2] == "Start":
                begun[key] = i
            elif n_before[begun.get(key, i)] < n_before[i]:
                pairs.append((begun.pop(key), i))
    found: dict[int, int] = {}
    around: list[int] = []
    for start, end in sorted(pairs, key=lambda pair: (n_before[pair[0]], -n_before[pair[1]])):
        while around and around[-1] <= n_before[start]:
            around.pop()
        if not around or (n_before[end] <= around[-1] and len(around) < MAX_RANGES_AROUND):
            around.append(n_before[end])
            found[start] = end
    return found


def _as_one(marks: Sequence[Node]) -> list[Node]:
    return [Kept("wbr", _pieces(marks))] if marks else []


def _is_mark(node: Node) -> bool:
    return isinstance(node, Kept) and node.tag == "wbr"


def _pieces(nodes: Sequence[Node]) -> list[Piece]:
    """Return all that nodes are made of."""
    pieces: list[Piece] = []
    for node in nodes:
        if isinstance(node, Text):
            pieces.append(node.piece)
        elif isinstance(node, Kept):
            pieces += node.pieces
        else:
            inside = [*node.begin, *_pieces(node.nodes), *node.end]
            pieces += inside if node.element is None else [Piece(None, node.element)]
    return pieces
