"""Messages of programs in YAML, as Rails has them. Comments, anchors, quotes and line ends stay."""

import json
import re
import textwrap
from collections.abc import Iterable, Iterator
from functools import partial

import yaml

from service.base.errors import InvalidDocument
from service.documents.contents import ReadOptions, Rewriting
from service.documents.encodings import decode
from service.documents.localization.message_trees import message_splices
from service.documents.localization.splicing import Value, rewrite_spliced
from service.documents.localization.trees import Items, Mapping, Node, TreeBuilder
from service.text.spans import Span

_STRING = "tag:yaml.org,2002:str"
_PROPERTIES = re.compile(r"(?:[&!]\S*\s+(?:#.*\s+)*)*")
"""An anchor and a tag, before a value."""
_BLOCK_HEADER = re.compile(r"[|>][^\n]*\n(?:[ \t\r]*\n)*")
"""The first line of a block, and the empty lines after it."""
_ESCAPED = re.compile(r"[\0-\x1f\x7f-\x9f\u2028\u2029\ufeff]")
"""Characters that only a string in double quotes may have, or that YAML reads as line ends."""
_NOT_IN_BLOCKS = re.compile(rf"(?!\t){_ESCAPED.pattern}")
_ESCAPED_FURTHER = re.compile(r"[\x7f-\x9f\u2028\u2029\ufeff]")
"""Characters of `_ESCAPED` that JSON does not escape."""
_LINE_END = re.compile(r"\r\n?|[\n\x85\u2028\u2029]")
_RARE_LINE_END = re.compile(r"[\x85\u2028\u2029]|\r(?!\n)")
"""Line ends of YAML that other files do not have."""
_RESOLVER = yaml.resolver.Resolver()


def rewrite(data: bytes, options: ReadOptions) -> Rewriting:
    """Rewrite messages in YAML. Raises InvalidDocument: the file is not text, or not YAML."""
    text, encoding = decode(data)
    splices = (splice for root in _parse(text) for splice in message_splices(text, root, options))
    return rewrite_spliced(data, text, encoding, splices, "text")


def _parse(text: str) -> list[Node]:
    """Return the root of each document. Only events are read: no object is made, and no alias is followed."""
    tree = TreeBuilder()
    are_flows = [False]
    try:
        for event in yaml.parse(text, yaml.CSafeLoader):
            assert event.start_mark is not None
            assert event.end_mark is not None
            span = Span(event.start_mark.index, event.end_mark.index)
            if isinstance(event, yaml.CollectionStartEvent):
                are_flows.append(bool(event.flow_style))
                is_mapping = isinstance(event, yaml.MappingStartEvent)
                tree.open(Mapping("," if event.flow_style else "") if is_mapping else Items(), span.start)
            elif isinstance(event, yaml.CollectionEndEvent):
                are_flows.pop()
                tree.close(span.end)
            elif isinstance(event, yaml.ScalarEvent):
                value = _value(text, span, event, are_flows[-1]) if _tag(event) == _STRING else None
                tree.add(value, value.span if value else span, event.value)
            elif isinstance(event, yaml.AliasEvent):
                tree.add(None, span)
    except yaml.YAMLError as error:
        raise InvalidDocument(f"The file is not YAML: {' '.join(str(error).split())}") from None
    return tree.roots


def _tag(event: yaml.ScalarEvent) -> str:
    return event.tag or str(_RESOLVER.resolve(yaml.ScalarNode, event.value, event.implicit))  # type: ignore[no-untyped-call]


def _value(text: str, span: Span, event: yaml.ScalarEvent, is_flow: bool) -> Value | None:
    """Return a string; None if it stays. The span of a block (| or >) has its lines, without empty ends."""
    raw = span.of(text)
    start = properties.end() if (event.tag or event.anchor) and (properties := _PROPERTIES.match(raw)) else 0
    if event.style not in ("|", ">"):
        encode = {"'": _single_quoted, '"': _double_quoted}.get(event.style or "", partial(_plain, is_flow=is_flow))
        return Value(Span(span.start + start, span.end), event.value, encode)
    header = _BLOCK_HEADER.match(raw, start)
    if header is None or _RARE_LINE_END.search(raw):
        return None
    start = header.end()
    lines = raw[start:].rstrip()
    value = event.value.strip("\n")
    indentation = " " * (_n_spaces(lines) - _n_spaces(value))
    width = max(map(len, lines.splitlines()), default=0) - len(indentation) if event.style == ">" else None
    encode_block = partial(_block, indentation=indentation, width=width, line_end="\r\n" if "\r\n" in raw else "\n")
    return Value(Span(span.start + start, span.start + start + len(lines)), value, encode_block)


def _n_spaces(text: str) -> int:
    return len(text) - len(text.lstrip(" "))


def _plain(text: str, is_flow: bool) -> str:
    """Return a text without quotes if YAML reads it as the same string, and with quotes otherwise."""
    try:
        events = [*yaml.parse(f"{{k: {text}}}" if is_flow else f"k: {text}", yaml.CSafeLoader)]
    except yaml.YAMLError:
        return _single_quoted(text)
    scalars = [event for event in events if isinstance(event, yaml.ScalarEvent)]
    values = [scalar.value for scalar in scalars]
    is_same = values == ["k", text] and _tag(scalars[1]) == _STRING and not scalars[1].style
    return text if is_same and not scalars[1].anchor else _single_quoted(text)


def _single_quoted(text: str) -> str:
    return _double_quoted(text) if _ESCAPED.search(text) else "'" + text.replace("'", "''") + "'"


def _double_quoted(text: str) -> str:
    return _ESCAPED_FURTHER.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(text, ensure_ascii=False))


def _block(text: str, indentation: str, width: int | None, line_end: str) -> str:
    """Return the lines of a block. It has no escapes, so characters that would need one are left out. Where lines are
    joined by spaces (>), `width` is the length of the longest line."""
    lines = [_NOT_IN_BLOCKS.sub("", line) for line in _LINE_END.split(text)]
    if width is not None:
        lines = [*_folded(lines, width)]
    return line_end.join(indentation + line if line else "" for line in lines)


def _folded(lines: Iterable[str], width: int) -> Iterator[str]:
    """Yield the lines of a folded block: an empty line ends a paragraph, unless a paragraph is indented."""
    before = ""
    for line in lines:
        if before and line and not before[0].isspace() and not line[0].isspace():
            yield ""
        if line and not line[0].isspace():
            yield from textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False)
        else:
            yield line
        before = line or before
