"""Messages of programs in trees of mappings, as i18next, Rails and Flutter keep them in JSON and YAML.

Names stay, and each string that is a value is a text. Plural forms become those of the target language.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from service.base.errors import InvalidDocument
from service.documents.contents import ReadOptions
from service.documents.icu_plurals import with_plural_forms
from service.documents.plurals import CATEGORIES
from service.documents.splicing import PluralForm, Splice, Value, fixed, spliced_plural, spliced_value
from service.text.languages import canonical, subtag
from service.text.spans import Span

_SUFFIX = re.compile(rf"(?:(.*)[_.])?({'|'.join(CATEGORIES)})", re.DOTALL)
"""The name of a plural form: `dog_one` of i18next, `one` of Rails."""
_NUMBER = re.compile(r"%|\{")
"""What a text has in place of a number."""


@dataclass(frozen=True)
class Member:
    """A name of a mapping, and what it stands for.

    Args:
        name: None: not a string.
        name_span: where the file has the name, as it writes it.
        span: from the name to the end of its value.
    """

    name: str | None
    name_span: Span
    span: Span
    node: "Node"


@dataclass(frozen=True)
class Mapping:
    """Members, in order.

    Args:
        separator: what must be between two members, beside white space.
    """

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
    """A mapping or sequence that is not closed."""

    node: Mapping | Items
    start: int
    name: tuple[str | None, Span] | None = None
    """The name of a member whose value is not read yet."""


class TreeBuilder:
    """Builds trees from what a parser finds, in order. In a mapping each second node is a value, after its name."""

    def __init__(self) -> None:
        self.roots: list[Node] = []
        self._open: list[_Open] = []

    def add(self, node: Node, span: Span, name: str | None = None) -> None:
        """Add a node.

        Args:
            name: what a node says that is a name.
        """
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


def message_splices(text: str, root: Node, options: ReadOptions) -> Iterator[Splice]:
    """Yield what changes in the translated file.

    Args:
        text: the text of the file.

    Raises:
        InvalidDocument: the file has the target language already.
    """
    language = _own_language(root, options)
    if language is not None:
        if options.target is not None:
            name = language.name_span.of(text)
            yield fixed(language.name_span, name.replace(language.name or name, options.target))
        root = language.node
    nodes: list[Node] = [root]
    while nodes:
        node = nodes.pop()
        if isinstance(node, Value):
            yield from message_value(text, node, options)
        elif isinstance(node, Items):
            nodes += node.nodes
        elif isinstance(node, Mapping):
            for stem, group in groupby(node.members, key=lambda member: _stem(member, node)):
                members = [*group]
                forms = [*_forms(text, members)] if stem is not None else []
                if _is_plural(forms, is_suffixed=bool(stem)):
                    is_ordinal = stem is not None and stem.endswith("_ordinal")
                    yield from spliced_plural(text, forms, options, node.separator, is_ordinal)
                else:
                    nodes += (member.node for member in members)


def message_value(text: str, value: Value, options: ReadOptions) -> list[Splice]:
    """Return the splice of a message, with the plural forms of the target language; [] if it has no words."""
    return spliced_value(text, replace(value, text=with_plural_forms(value.text, options)))


def _own_language(root: Node, options: ReadOptions) -> Member | None:
    """Return the member of the source language, if a mapping is by languages, as in Rails."""
    if not isinstance(root, Mapping) or options.source is None:
        return None
    if not all(isinstance(member.node, Mapping) and canonical(member.name or "") for member in root.members):
        return None
    found = [member for member in root.members if subtag(member.name or "") == subtag(options.source)]
    exact = [member for member in found if canonical(member.name or "") == canonical(options.source)]
    if found and options.target in {member.name for member in root.members} - {found[0].name}:
        raise InvalidDocument(f"The file has texts in {options.target} already, beside those in {options.source}")
    return next(iter(exact or found), None)


def _stem(member: Member, mapping: Mapping) -> str | None:
    """Return what the names of a plural's forms have in common; None if the member is no such form."""
    match = _SUFFIX.fullmatch(member.name or "")
    if match is None or not isinstance(member.node, Value):
        return None
    if match[1] is None and not all(other.name in CATEGORIES for other in mapping.members):
        return None
    return match[1] or ""


def _forms(text: str, members: Sequence[Member]) -> Iterator[PluralForm]:
    for member in members:
        match = _SUFFIX.fullmatch(member.name or "")
        if match is not None and isinstance(member.node, Value):
            start = text.rfind(match[2], *member.name_span.pair)
            if start >= 0:
                yield PluralForm(match[2], member.span, Span(start, start + len(match[2])), member.node)


def _is_plural(forms: Sequence[PluralForm], is_suffixed: bool) -> bool:
    """Return whether these are forms of a plural; `no_one` and `no_other` are none."""
    texts = {form.category: form.value.text for form in forms}
    has_number = _NUMBER.search(texts.get("other", "")) is not None
    return has_number or (not is_suffixed and "other" in texts and len(texts) > 1)
