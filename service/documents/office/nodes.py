"""The nodes of a paragraph in an Office file: texts, inline objects without text, and groups of both, such as links.

Paragraphs of Word and of DrawingML (slides, charts, diagrams) consist of runs with properties and texts. Elements are
told by their names without the namespace, because both formats have two versions of it.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Any

from lxml import etree

Element = Any
"""An element of lxml, which has no type annotations."""
LAST = "endParaRPr"
"""Name of the properties of a paragraph's end in DrawingML, which stand behind its runs."""
PROPERTIES = {"pPr", "rPr", "sdtPr", "sdtEndPr", "smartTagPr", "customXmlPr", LAST}
"""Names of elements that hold properties of their parent."""
IGNORED = PROPERTIES | {"", "proofErr", "softHyphen", "lastRenderedPageBreak"}
"""Names of elements that are left out: properties, comments (""), and notes on the old text."""
TAGS = {
    **dict.fromkeys(("br", "cr", "tab", "ptab"), "br"),
    **dict.fromkeys(("sym", "pgNum", "oMath", "oMathPara", "fld"), "x"),
}
PICTURES = {"drawing", "pict", "object", "AlternateContent"}
GROUPS = {"hyperlink", "ins", "moveTo", "smartTag", "customXml", "dir", "bdo", "sdt"}
LINK = "span"
"""Not `a`: in HTML touching links share no word, but Word may cut a link in mid-word."""
RANGE = re.compile(r"(.+?)-?(Start|start|End|end)|(annotation)")
"""The two marks of a bookmark, a commented range or the like. They share an id, or a name in OpenDocument."""
NAMES_OF_RANGES = ("id", "name", "change-id")
MAX_RANGES_AROUND = 8
"""The limit of ranges around one word."""
DRAWING = {"http://schemas.openxmlformats.org/drawingml/2006/main", "http://purl.oclc.org/ooxml/drawingml/main"}
"""The namespaces of DrawingML. Texts in it keep their spaces without saying so."""
SPACE = "{http://www.w3.org/XML/1998/namespace}space"
LINE_END = "_x000B_"
"""A line end in the text of a run, as PowerPoint escapes it."""
NOT_TEXT = re.compile(f"({LINE_END}| {{3,}}|[\ue000-\uf8ff]+)")
"""Line ends, spaces between columns, and signs of fonts such as Wingdings. Two spaces may stand between sentences."""
OFF = {"0", "false", "off"}
"""Values of a property that is off."""
NO_BREAK_HYPHEN = "\N{NON-BREAKING HYPHEN}"


@dataclass(frozen=True)
class RunChild:
    """A child of a run, or of an element that contains runs."""

    run: Element | None
    element: Element


@dataclass(frozen=True)
class Text:
    text: str
    child: RunChild


@dataclass(frozen=True)
class NonText:
    """An inline object without text."""

    tag: str
    """The most similar HTML element: a line end, a word, a picture, or a mark that may stand in a word (wbr)."""
    children: Sequence[RunChild]


@dataclass(frozen=True)
class Group:
    """Nodes inside one element, or between the start and end marks of a field or a range."""

    tag: str
    nodes: "Sequence[Node]"
    element: Element | None = None
    begin: Sequence[RunChild] = ()
    end: Sequence[RunChild] = ()
    run: Any = None
    """The run that the element is in, if any."""


Node = Text | NonText | Group


def nodes_of(parent: Element) -> "list[Node]":
    """Return the nodes of a paragraph or a group."""
    nodes = [*_with_fields([*_nodes(parent)])]
    return with_ranges(nodes) if local_name(parent) == "p" else _with_ranges(nodes, {})


def with_ranges(nodes: Sequence[Node]) -> "list[Node]":
    """Make groups of the ranges in a paragraph, such as bookmarks."""
    return _with_ranges(nodes, _ranges(nodes))


def content_of(group: Element) -> Element:
    """Return the element that contains the runs of a group."""
    return next((child for child in group if local_name(child) == "sdtContent"), group)


def name_of_choice(item: Element) -> str:
    """Return what a reader sees of an item in the list of a content control."""
    return attribute(item, "displayText") or attribute(item, "value")


def shown_choice(control: Element) -> str | None:
    """Return the text of a content control that shows an item of its list; None: it shows something else."""
    items = [name_of_choice(item) for item in control.iterfind("{*}sdtPr/*/{*}listItem")]
    shown = "".join(text.text or "" for text in control.iterfind("{*}sdtContent//{*}t")) if items else ""
    return shown if shown in items else None


def local_name(element: Element) -> str:
    """Return the name of an element without its namespace; "" for a comment."""
    return etree.QName(element).localname if isinstance(element.tag, str) else ""


def attribute(element: Element, name: str) -> str:
    """Return an attribute of any namespace; "" if there is none."""
    return next((value for key, value in element.items() if etree.QName(key).localname == name), "")


def attribute_name(element: Element, name: str) -> str:
    """Return the name of an attribute in the namespace of its element."""
    return str(etree.QName(etree.QName(element).namespace, name))


def is_drawing(element: Element) -> bool:
    """Return whether an element belongs to DrawingML."""
    return etree.QName(element).namespace in DRAWING


def text_element(tag: str, text: str) -> Element:
    """Return a new element that shows a text with all of its spaces."""
    element = etree.Element(tag)
    element.text = text
    if not is_drawing(element):
        element.set(SPACE, "preserve")
    return element


def _nodes(parent: Element) -> Iterator[Node]:
    for child in parent:
        name = local_name(child)
        if name == "r":
            for element in child:
                if local_name(element) not in IGNORED:
                    yield from _nodes_of_run(child, element)
        elif name == "sdt" and child.find("{*}sdtPr/{*}checkbox") is not None:
            yield NonText("img", [RunChild(None, child)])
        elif name == "sdt" and shown_choice(child) is not None:
            yield NonText("x", [RunChild(None, child)])
        elif name in GROUPS or (name == "fldSimple" and _is_link(attribute(child, "instr"))):
            yield Group(LINK if name in ("hyperlink", "fldSimple") else "ins", nodes_of(content_of(child)), child)
        elif name not in IGNORED:
            yield NonText("x" if name == "fldSimple" else TAGS.get(name, "wbr"), [RunChild(None, child)])


def _nodes_of_run(run: Element, element: Element) -> Iterator[Text | NonText]:
    name, child = local_name(element), RunChild(run, element)
    if name in PICTURES:
        is_inline = name in ("pict", "object") or any(local_name(inside) == "inline" for inside in element.iter())
        yield NonText("img" if is_inline else "wbr", [child])
    elif name == "t" and not _is_hidden(run):
        text = element.text or ""
        is_kept = is_drawing(element) or attribute(element, "space") == "preserve"
        yield from _texts(text if is_kept else text.strip(), child)
    elif name == "noBreakHyphen":
        yield Text(NO_BREAK_HYPHEN, child)
    elif name == "ruby":
        base = (part for part in element if local_name(part) == "rubyBase")  # the reading above it is left out
        yield Text("".join(text.text or "" for part in base for text in part.iter("{*}t")), child)
    else:
        yield NonText(TAGS.get(name, "wbr"), [child])


def _is_hidden(run: Element) -> bool:
    """Hidden text would hide words that a reader should see."""
    return any(attribute(hidden, "val") not in OFF for hidden in run.findall("{*}rPr/{*}vanish"))


def _texts(text: str, child: RunChild) -> Iterator[Text | NonText]:
    """Three or more spaces stand between columns, as a tab does. A sign of a font stands for a word."""
    for i, part in enumerate(NOT_TEXT.split(text)):
        if i % 2:
            tag = "br" if part.isspace() or part == LINE_END else "x"
            yield NonText(tag, [RunChild(child.run, text_element(child.element.tag, part))])
        elif part or part == text:
            yield Text(part, child)


def _with_fields(nodes: Sequence[Node], links: bool = True) -> Iterator[Node]:
    """Replace each field by a node: a link by a group, any other field, such as a page number, by a word. If a field
    begins or ends in another paragraph, as a table of contents may, its marks stay around its visible text."""
    ends = _ends_of_fields(nodes)
    i = 0
    while i < len(nodes):
        end = ends.get(i, i)
        yield _field_node(nodes[i : end + 1], links) if end > i else nodes[i]
        i = end + 1


def _ends_of_fields(nodes: Sequence[Node]) -> dict[int, int]:
    ends = {}
    begun: list[int] = []
    for i, node in enumerate(nodes):
        if _field_mark(node) == "begin":
            begun.append(i)
        elif _field_mark(node) == "end" and begun:
            ends[begun.pop()] = i
    return ends


def _field_node(nodes: Sequence[Node], links: bool) -> Node:
    separate = next((i for i, node in enumerate(nodes) if _field_mark(node) == "separate"), len(nodes) - 1)
    elements = [child.element for child in _children(nodes[:separate])]
    instruction = "".join(element.text or "" for element in elements if local_name(element) == "instrText")
    if links and _is_link(instruction) and separate < len(nodes) - 2:
        inside = [*_with_fields(nodes[separate + 1 : -1], links=False)]
        return Group(LINK, inside, None, _children(nodes[: separate + 1]), _children(nodes[-1:]))
    return NonText("x", _children(nodes))


def _field_mark(node: Node) -> str:
    """Return begin, separate or end for a mark of a field; "" for any other node."""
    element = node.children[0].element if isinstance(node, NonText) else None
    is_field = element is not None and local_name(element) == "fldChar"
    return attribute(element, "fldCharType") if is_field else ""


def _is_link(instruction: str) -> bool:
    return instruction.split()[:1] == ["HYPERLINK"]


def _with_ranges(nodes: Sequence[Node], ranges: Mapping[int, int]) -> list[Node]:
    """Make a group of the nodes between the marks of a range, such as a bookmark; other marks that touch become one.
    `ranges` has the end of each range by its start; ranges are nested or apart."""
    starts = {end: start for start, end in ranges.items()}
    inside: list[list[Node]] = [[]]
    for is_mark, run in groupby(range(len(nodes)), lambda i: _is_mark(nodes[i])):
        numbers = [*run]
        if not is_mark:
            inside[-1] += [nodes[i] for i in numbers]
            continue
        ends = sorted((i for i in numbers if i in starts), key=lambda end: -starts[end])
        alone = [i for i in numbers if i not in starts and i not in ranges]
        n_before = bisect_left(alone, min(ends, default=len(nodes)))
        inside[-1] += _merge_marks([nodes[i] for i in alone[:n_before]])
        for end in ends:
            group = inside.pop()
            inside[-1].append(Group(LINK, group, None, _children([nodes[starts[end]]]), _children([nodes[end]])))
        inside[-1] += _merge_marks([nodes[i] for i in alone[n_before:]])
        inside += [[] for i in numbers if i in ranges]
    return inside[0]


def _ranges(nodes: Sequence[Node]) -> dict[int, int]:
    """Map the start of each range with more than marks inside to its end. Overlapping ranges, and ranges inside too
    many others, are left out, because groups must not be nested much deeper than the XML."""
    n_before = [*accumulate(not _is_mark(node) for node in nodes)]
    begun: dict[tuple[str, str], int] = {}
    pairs: list[tuple[int, int]] = []
    for i, node in enumerate(nodes):
        element = node.children[0].element if isinstance(node, NonText) else None
        name = RANGE.fullmatch("" if element is None else local_name(element))
        if name is not None:
            ids = (attribute(element, id_name) for id_name in NAMES_OF_RANGES)
            key = name[1] or name[3], next(filter(None, ids), "")
            if (name[2] or "start").lower() == "start":
                begun[key] = i
            elif n_before[begun.get(key, i)] < n_before[i]:
                pairs.append((begun.pop(key), i))
    ranges: dict[int, int] = {}
    around: list[int] = []
    for start, end in sorted(pairs, key=lambda pair: (n_before[pair[0]], -n_before[pair[1]])):
        while around and around[-1] <= n_before[start]:
            around.pop()
        if not around or (n_before[end] <= around[-1] and len(around) < MAX_RANGES_AROUND):
            around.append(n_before[end])
            ranges[start] = end
    return ranges


def _merge_marks(marks: Sequence[Node]) -> list[Node]:
    return [NonText("wbr", _children(marks))] if marks else []


def _is_mark(node: Node) -> bool:
    return isinstance(node, NonText) and node.tag == "wbr"


def _children(nodes: Sequence[Node]) -> list[RunChild]:
    children: list[RunChild] = []
    for node in nodes:
        if isinstance(node, Text):
            children.append(node.child)
        elif isinstance(node, NonText):
            children += node.children
        else:
            inside = [*node.begin, *_children(node.nodes), *node.end]
            children += inside if node.element is None else [RunChild(None, node.element)]
    return children
