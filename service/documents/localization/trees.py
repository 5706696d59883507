"""Trees of mappings and sequences, as JSON and YAML have them, with the places of all names and strings."""

from dataclasses import dataclass, field

from service.documents.localization.splicing import Value
from service.text.spans import Span


@dataclass(frozen=True)
class Member:
    """A name of a mapping, and its value. `name` is None if it is not a string, `name_span` its place as the file
    writes it, and `span` reaches from the name to the end of the value."""

    name: str | None
    name_span: Span
    span: Span
    node: "Node"


@dataclass(frozen=True)
class Mapping:
    """The members of an object of JSON or a mapping of YAML, in order, with a separator between them."""

    separator: str
    members: list[Member] = field(default_factory=list)


@dataclass(frozen=True)
class Items:
    """A sequence of nodes, in order."""

    nodes: "list[Node]" = field(default_factory=list)


Node = Mapping | Items | Value | None
"""None: no text, such as a number."""


@dataclass
class _Open:
    node: Mapping | Items
    start: int
    name: tuple[str | None, Span] | None = None
    """The name of a member whose value is not read yet."""


class TreeBuilder:
    """Builds trees from the nodes that a parser finds. In a mapping each second node is a value, after its name."""

    def __init__(self) -> None:
        self.roots: list[Node] = []
        self._open: list[_Open] = []

    def add(self, node: Node, span: Span, name: str | None = None) -> None:
        """Add a node. `name` is its text if it is a name."""
        if not self._open:
            self.roots.append(node)
        elif isinstance(parent := self._open[-1].node, Items):
            parent.nodes.append(node)
        elif (before := self._open[-1].name) is None:
            self._open[-1].name = (name, span)
        else:
            parent.members.append(Member(*before, Span(before[1].start, span.end), node))
            self._open[-1].name = None

    def open(self, node: Mapping | Items, start: int) -> None:
        self._open.append(_Open(node, start))

    def close(self, end: int) -> None:
        closed = self._open.pop()
        self.add(closed.node, Span(closed.start, end))
