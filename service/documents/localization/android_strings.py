"""Strings of Android programs (strings.xml): tags within a string go where their words go, placeholders stay.

https://developer.android.com/guide/topics/resources/string-resource has the escapes.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from service.base.errors import InvalidDocument
from service.documents.contents import ReadOptions, Rewriting
from service.documents.inline_tags import mapped
from service.documents.localization.plurals import CATEGORIES
from service.documents.localization.printf_order import in_order
from service.documents.localization.splicing import (
    PluralForm,
    Splice,
    Value,
    fixed,
    rewrite_spliced,
    spliced_plural,
    spliced_value,
)
from service.documents.localization.xml_elements import XmlElement, for_cdata, read_xml, runs
from service.markup.plain import tag_pairs
from service.text.spans import Replacement, Span, replace_spans

_TAG = re.compile(r"(<!--(?:(?!<!--|-->).)*+-->|<(?:\"[^\"<]*+\"|'[^'<]*+'|[^\"'<>])*+>)", re.DOTALL)
_PLACEHOLDER = re.compile(
    r"<(?P<name>[\w.-]+:g)\b[^<>]*+(?:(?<=/)>|>(?:(?!</?[\w.-]+:g\b).)*+</(?P=name)\s*>)|<xliff-g\b[^<>]*+>", re.DOTALL
)
"""XLIFF's element <xliff:g>, which translators must not change, and anything like the tag that stands for it."""
_NUMBERED = re.compile(r'<xliff-g id="(\d+)"/>')
_ESCAPED_TAG = re.compile(r'<(/?)x-escaped(?: id="(\d+)")?>')
_QUOTE = r"['\"]|&apos;|&quot;|&\#3[49];"
_ESCAPE = re.compile(rf"(?P<code>(?:\\u[0-9a-fA-F]{{4}})+)|\\(?P<sign>{_QUOTE}|[@?#])|\\.|(?P<dropped>\"|&quot;)")
"""Escapes, and quotes that Android drops."""
_QUOTED = re.compile(_QUOTE)
_IN_QUOTES = re.compile(r'(\s*")((?:[^"\\]|\\.)*+)("\s*)', re.DOTALL)


def rewrite(data: bytes, options: ReadOptions) -> Rewriting:
    """Rewrite strings of an Android program. Raises InvalidDocument: the file is not such a file, or is damaged.
    TooLarge: it has too many tags."""
    text, encoding, root = read_xml(data)
    if root.tag != "resources":
        raise InvalidDocument(f"The root of the file is <{root.tag}>; strings of Android have <resources>")
    return rewrite_spliced(data, text, encoding, _splices(text, root, options), "html")


def _splices(text: str, root: XmlElement, options: ReadOptions) -> Iterator[Splice]:
    language = root.attributes.get("tools:locale")
    if language and options.is_source(language) and options.target:
        yield fixed(root.attribute_span(text, "tools:locale"), options.target)
    for resource in root.children:
        items = [item for item in resource.children if item.tag == "item"]
        if resource.attributes.get("translatable") == "false":
            continue
        if resource.tag == "string":
            yield from _string_splices(text, resource)
        elif resource.tag == "string-array":
            for item in items:
                yield from _string_splices(text, item)
        elif resource.tag == "plurals":
            forms = [form for item in items for form in _forms(text, item)]
            if len(forms) == len(items) and forms:
                yield from spliced_plural(text, forms, options)
            else:
                for item in items:
                    yield from _string_splices(text, item)


def _forms(text: str, item: XmlElement) -> Iterator[PluralForm]:
    quantity, values = item.attributes.get("quantity"), [value for value in _values(text, item) if value.has_text]
    if quantity in CATEGORIES and len(values) == 1:
        yield PluralForm(quantity, item.span, item.attribute_span(text, "quantity"), values[0])


def _string_splices(text: str, element: XmlElement) -> Iterator[Splice]:
    for value in _values(text, element):
        yield from spliced_value(text, value)


def _values(text: str, element: XmlElement) -> Iterator[Value]:
    for span, is_cdata in runs(text, element.content):
        if (quoted := _IN_QUOTES.fullmatch(span.of(text))) is not None:
            span = Span(*quoted.span(2)).moved(span.start)
        markup = _Markup(span.of(text), is_cdata)
        yield Value(span, markup.read(), markup.write)


@dataclass
class _Markup:
    """The markup of a string, which may be HTML in a CDATA section. `raw` is the string as the file writes it, its
    `placeholders` are elements <xliff:g>, and `escaped` are pairs of escaped tags, such as &lt;b> and &lt;/b>."""

    raw: str
    is_cdata: bool
    placeholders: list[str] = field(default_factory=list)
    escaped: list[tuple[str, str]] = field(default_factory=list)

    def read(self) -> str:
        """Return the string as HTML: without Android's escapes, and with empty elements in place of placeholders."""
        html = _PLACEHOLDER.sub(self._numbered, self.raw)
        edits: list[Replacement] = []
        for start, end in tag_pairs(html) if "&lt;/" in html else ():
            if html.startswith("&", start.start):
                edits += [(start, f'<x-escaped id="{len(self.escaped)}">'), (end, "</x-escaped>")]
                self.escaped.append((start.of(html), end.of(html)))
        html = replace_spans(html, sorted(edits, key=lambda edit: edit[0].pair))[0]
        return mapped(html, lambda text: _ESCAPE.sub(_unescaped, text), tags=_TAG)

    def write(self, html: str) -> str:
        """Return a translation as the file writes it."""
        opened: list[str] = []

        def tag(written: str) -> str:
            match = _ESCAPED_TAG.fullmatch(written)
            if match is None:
                return self._tag(written)
            if match[1]:
                return opened.pop() if opened else ""
            start, end = self.escaped[int(match[2])]
            opened.append(end)
            return start

        raw = mapped(html, lambda text: _QUOTED.sub(r"\\\g<0>", text), tag, _TAG)
        raw = in_order(self.raw, re.sub(r"^(?=\s*[@?])(\s*)", r"\1\\", raw))
        return for_cdata(raw) if self.is_cdata else raw

    def _numbered(self, match: re.Match[str]) -> str:
        self.placeholders.append(match[0])
        return f'<xliff-g id="{len(self.placeholders) - 1}"/>'

    def _tag(self, tag: str) -> str:
        number = _NUMBERED.fullmatch(tag)
        return self.placeholders[int(number[1])] if number else tag


def _unescaped(match: re.Match[str]) -> str:
    if match["code"]:
        characters = json.loads(f'"{match["code"]}"')
        return "".join(c if c.isprintable() and c != " " else f"\\u{ord(c):04x}" for c in characters)
    return "" if match["dropped"] else match["sign"] or match[0]
