"""Messages of programs in JSON: i18next, Rails and others (.json), Flutter (.arb)."""

import json
import re
from collections.abc import Iterator
from functools import partial

from service.base.errors import InvalidDocument
from service.documents.contents import ReadOptions, Rewriting
from service.documents.encodings import decode
from service.documents.localization.message_trees import message_splices, message_value
from service.documents.localization.splicing import Splice, Value, fixed, rewrite_spliced
from service.documents.localization.trees import Items, Mapping, Node, TreeBuilder
from service.text.spans import Span

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\]]|[^\s{}\[\]:,"]+')


def rewrite(data: bytes, options: ReadOptions) -> Rewriting:
    """Rewrite messages in JSON. Raises InvalidDocument: the file is not text, or not JSON."""
    text, encoding = decode(data)
    return rewrite_spliced(data, text, encoding, message_splices(text, parse_json(text), options), "text")


def rewrite_arb(data: bytes, options: ReadOptions) -> Rewriting:
    """Rewrite messages of Flutter. Raises InvalidDocument: the file is not text, or not JSON."""
    text, encoding = decode(data)
    return rewrite_spliced(data, text, encoding, _arb_splices(text, parse_json(text), options), "text")


def _arb_splices(text: str, root: Node, options: ReadOptions) -> Iterator[Splice]:
    """In a file of Flutter, names that begin with @ are of metadata."""
    for member in root.members if isinstance(root, Mapping) else ():
        if member.name == "@@locale" and isinstance(member.node, Value) and options.target is not None:
            yield fixed(member.node.span, json.dumps(options.target.replace("-", "_")))
        elif isinstance(member.node, Value) and member.name and not member.name.startswith("@"):
            yield from message_value(text, member.node, options)


def parse_json(text: str) -> Node:
    """Return the root of a JSON file, with the places of its names and strings. Raises InvalidDocument."""
    try:
        json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidDocument(f"The file is not JSON: {error}") from None
    tree = TreeBuilder()
    for match in _TOKEN.finditer(text):
        written, span = match[0], Span(*match.span())
        if written in ("{", "["):
            tree.open(Mapping(",") if written == "{" else Items(), span.start)
        elif written in ("}", "]"):
            tree.close(span.end)
        elif written[0] == '"':
            value = Value(span, json.loads(written), partial(_encode, written))
            tree.add(value, span, value.text)
        else:
            tree.add(None, span)
    return tree.roots[0]


def _encode(before: str, text: str) -> str:
    written = json.dumps(text, ensure_ascii="\\u" in before)
    return written.replace("/", "\\/") if "\\/" in before else written
