"""Messages of programs in trees of mappings, as i18next, Rails and Flutter keep them in JSON and YAML.

Names stay, and each string that is a value is a text. Plural forms become those of the target language.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from service.base.errors import InvalidDocument
from service.documents.contents import ReadOptions
from service.documents.localization.icu_plurals import with_plural_forms
from service.documents.localization.plurals import CATEGORIES
from service.documents.localization.splicing import PluralForm, Splice, Value, fixed, spliced_plural, spliced_value
from service.documents.localization.trees import Items, Mapping, Member, Node
from service.text.languages import canonical, subtag
from service.text.spans import Span

_FORM = re.compile(rf"(?:(.*)[_.])?({'|'.join(CATEGORIES)})", re.DOTALL)
"""The name of a plural form: `dog_one` of i18next, `one` of Rails."""
_ANCHOR = re.compile(r"\s*:\s+&")
"""What follows the name of a member of YAML that others repeat."""
_NUMBER = re.compile(r"%|\{")
"""The placeholder of a number in a text."""


def message_splices(text: str, root: Node, options: ReadOptions) -> Iterator[Splice]:
    """Yield the changes of a file with this text. Raises InvalidDocument: the file has the target language already."""
    language = _source_member(text, root, options)
    nodes: list[Node] = [root]
    if language is not None and isinstance(root, Mapping):
        if options.target is not None:
            name = language.name_span.of(text)
            yield fixed(language.name_span, name.replace(language.name or name, options.target))
        nodes = [member.node for member in root.members if member is language or not _is_of_language(member)]
    while nodes:
        node = nodes.pop()
        if isinstance(node, Value):
            yield from message_value(text, node, options)
        elif isinstance(node, Items):
            nodes += node.nodes
        elif isinstance(node, Mapping):
            for members, forms, stem in _plurals(text, node):
                if forms:
                    yield from spliced_plural(text, forms, options, node.separator, stem.endswith("_ordinal"))
                else:
                    nodes += (member.node for member in members)


def message_value(text: str, value: Value, options: ReadOptions) -> list[Splice]:
    """Return the splice of a message, with the plural forms of the target language; [] if it has no words."""
    return spliced_value(text, replace(value, text=with_plural_forms(value.text, options)))


def _source_member(text: str, root: Node, options: ReadOptions) -> Member | None:
    """Return the member of the source language, if a mapping is by languages, as in Rails. Other members may be texts
    that several languages share, and nodes such as a version, which are no mappings."""
    if not isinstance(root, Mapping) or options.source is None:
        return None
    if any(
        isinstance(member.node, Mapping) and not (_is_of_language(member) or _ANCHOR.match(text, member.name_span.end))
        for member in root.members
    ):
        return None
    languages = [member for member in root.members if _is_of_language(member)]
    close = [member for member in languages if subtag(member.name or "") == subtag(options.source)]
    exact = [member for member in close if canonical(member.name or "") == canonical(options.source)]
    source = next(iter(exact or close), None)
    if source is not None and any(member.name == options.target for member in root.members if member is not source):
        raise InvalidDocument(f"The file has texts in {options.target} already, beside those in {source.name}")
    return source


def _is_of_language(member: Member) -> bool:
    return isinstance(member.node, Mapping) and canonical(member.name or "") is not None


def _plurals(text: str, mapping: Mapping) -> Iterator[tuple[list[Member], list[PluralForm], str]]:
    """Yield the members of a mapping in order. Members of a plural come together, with its forms and the common start
    of their names. Other members have no forms."""
    names = [_FORM.fullmatch(member.name or "") for member in mapping.members]
    is_plural = all(match is not None and match[1] is None for match in names)
    stems = [match and (match[1] or ("" if is_plural else None)) for match in names]
    n_members = Counter(stems)
    for stem, group in groupby(zip(mapping.members, names, stems, strict=True), key=lambda member: member[2]):
        members, matches, _ = zip(*group, strict=True)
        forms: list[PluralForm] = []
        if stem is not None and len(members) == n_members[stem]:  # forms in several places are names like others
            forms = [*_forms(text, members, [match[2] for match in matches if match])]
        is_complete = len(forms) == len(members) and _are_plural(forms, has_stem=bool(stem))
        yield [*members], forms if is_complete else [], stem or ""


def _forms(text: str, members: Sequence[Member], categories: Sequence[str]) -> Iterator[PluralForm]:
    for member, category in zip(members, categories, strict=True):
        start = text.rfind(category, *member.name_span.pair)
        if isinstance(member.node, Value) and start >= 0:
            yield PluralForm(category, member.span, Span(start, start + len(category)), member.node)


def _are_plural(forms: Sequence[PluralForm], has_stem: bool) -> bool:
    """Return whether these are forms of a plural; `no_one` and `no_other` are not."""
    texts = {form.category: form.value.text for form in forms}
    has_number = _NUMBER.search(texts.get("other", "")) is not None
    return has_number or (not has_stem and "other" in texts and len(texts) > 1)
