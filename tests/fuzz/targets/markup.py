"""Markup of texts: HTML, XML, Markdown and marks in plain text, with any translation."""

import re
from collections import Counter
from collections.abc import Iterator

from service.markup import html, markdown, plain, xml
from service.markup.passages import ParsedText
from service.markup.pieces import PieceKind
from tests.fuzz.mutation import mutate_xml
from tests.fuzz.stand_in import WAYS, rendered
from tests.fuzz.structures import nested, repeated
from tests.fuzz.target import Target
from tests.service.markup.documents import unchanged

PARSERS = {"html": html.parse, "xml": xml.parse, "markdown": markdown.parse, "text": plain.parse}
"""The readers by format. An input is a line with a format, and the text."""
MAX_SETTINGS = 40
START = re.compile(r"</[A-Za-z][^>]*>|(<[A-Za-z][^\s<>/]*)")
ESCAPED = re.compile(r"=\s*(?:\"[^\"]*<|'[^']*<)|\0")
"""A sign of a tag in the value of an attribute, which is escaped where the value is translated; or a null, which ends
the name of a tag for Python's parser, so that the tag is text."""


def read(data: bytes) -> Iterator[str]:
    """Read a text, and render it without a translation and with one. Raises AssertionError: something that is not text
    is lost, doubled or unbalanced."""
    settings, _, body = data.partition(b"\n")
    name, _, way = settings[:MAX_SETTINGS].decode(errors="replace").partition(" ")
    name = name if name in PARSERS else "html"
    text = body.decode(errors="replace")
    document: ParsedText = PARSERS[name](text)
    yield "read"
    same = unchanged(document)
    yield "rendered as it is"
    if name != "html" and "<![CDATA[" not in text:  # a browser's rules mend HTML, and sections become texts
        assert same == text, "the text changes without a translation"
    new = rendered(document, way if way in WAYS else WAYS[0])
    yield "translated and rendered"
    if name == "html":
        _check_tags(text, same)
        _check_tags(text, new)
        if "translate" not in text:  # what is not translated stays as it is, balanced or not
            _check_balance(same)
            _check_balance(new)
            assert unchanged(html.parse(same)) == same, "a mended text changes once more"
    if name == "xml" and xml.is_well_formed(text):
        assert xml.is_well_formed(same), "the text is no longer well-formed"
        assert xml.is_well_formed(new), "the translation is not well-formed"


def _check_tags(before: str, after: str) -> None:
    if not ESCAPED.search(before):
        assert _tags(after) == _tags(before), "a tag is lost, doubled or changed"


def _check_balance(text: str) -> None:
    opened: list[str] = []
    for piece in html.read_pieces(text):
        if piece.kind is PieceKind.START:
            opened.append(piece.tag)
        elif piece.kind is PieceKind.END:
            assert opened, "an end tag without a start tag"
            assert opened.pop() == piece.tag, "tags are not nested"
    assert not opened, "a start tag without an end tag"


def _tags(text: str) -> Counter[str]:
    """Return how often each start tag occurs, without its attributes: some are translated."""
    return Counter(filter(None, map(str.lower, START.findall(text))))


SEEDS = (
    "html\n<p class='a'>One <b>two <i>three</i></b><br>four&nbsp;&lt;</p><script>a < b</script><ul><li>x<li>y</ul>",
    "html backwards\na <a href=x>link</a><a>other</a> <img alt='a dog' src=b> <code>c</code> <span translate=no>n</span>",
    "html signs\n<table><td title=\"a 'b'\">x<sup>2</sup><input type=button value=Go></table><!-- c --><x id=1/>",
    "html backwards\n<div translate=no>keep <b translate=yes>this</b> not</div><ruby>a<rt>b</rt></ruby><svg><text>t</svg>",
    "xml backwards\n<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b 'c'>]><a><p>One <b>two</b> &b; &#233;</p><![CDATA[x<y]]></a>",
    "xml signs\n<a><b/>text <g id='1'>in</g> <x/> more</a><!-- c -->",
    "markdown backwards\n# A *title*\n\nA [link](http://a.b 'c') and `code` **bold _both_** ~~no~~.\n\n> 1. item\n\n| a | b |\n|---|---|\n| **c** | d |\n",
    "markdown signs\n[a]: b\n\n![img][a] <b>tag</b> $x^2$ [^1] ==mark==\n\n    code\n\n!!! note\n    text\n\n[^1]: foot\n",
    "text backwards\nSome *marked* words, __bold__, ~~gone~~, ==high==, [a link](http://x.y) and **all *nested* ones**.\n- item",
)  # fmt: skip
GROWN = {
    **{
        f"html {piece}": repeated("html\n", piece)
        for piece in (
            "<b>", "</b>", "<b>a", "a</b>", "<p>", "<p>a", "<b>a</b>", "<b></b>", "<img>", "<img alt='a dog'>", "<", "</",
            "<!", "<!--", "<?", "<![", "<a ", "<a b", "<a b=", "<a b='", "<a b='c'", "a <a b='c>", "&", "&a", "&amp;", "&#", "<x/>",
            "<x/>a", "<x/> ", "<sup>", "<sup>1</sup>", "<sup>1", "<code>", "<code>a", "<code>a</code>", "<pre>", "<script>",
            "<script></script>", "<svg>", "</p>", "<a>A</a><a>B</a>", "<i translate=no>a", "<i translate=yes>a",
            "<i translate=no>a<b translate=yes>b</b></i>", "<i translate=no><b translate=yes>", "<textarea>", "<title>", "<plaintext>",
            "<ruby>a<rt>b</rt></ruby>", "<!-- a -->", "<br>", "a b ", "a\n", " ", "\n", "<td title='a'>", "<b><i>a</b></i>",
            "<em>A</em><em>B</em>", "<b>A<i>B</i>C</b>", "\x00", "</a <", "<a/", "</ ", "<a\n", "<!doctype a ", "<input title=a ",
        )
    },
    **{
        f"xml {piece}": repeated("xml\n", piece)
        for piece in (
            "<b>", "</b>", "<b>a", "a</b>", "<b>a</b>", "<b/>", "<b/>a", "<", "<!--", "<?", "<![CDATA[", "<![CDATA[a]]>", "<!DOCTYPE ",
            "<!DOCTYPE a [", "<!DOCTYPE a ['", '<a b="', "<a b='c' ", "<a b ", "&", "&a;", "&#65;", "a ", " ", "]]>", "<a ", "<a:b>c",
            "<p>a<b>b</b></p>", "<!DOCTYPE a [<!--", "<!DOCTYPE a []>", "<a\tb='c'", "</a ",
        )
    },
    **{
        f"markdown {piece}": repeated("markdown\n", piece)
        for piece in (
            "*", "**", "*a", "*a*", "**a**", "*a **b", "_", "_a_", "~~a~~", "~~", "[", "]", "[a", "[a](", "[a](b)", "[a](<", "![", "![a](b)",
            "[[", "`", "``a", "`a`", "`a ``b ", "<", "<a", "<a>", "<b>a</b>", "<a b='", "<!--", "$", "$a", "$a$", "$$a", "\\(", "\\(a", "\\",
            "==a==", "==", "((", "((a))", "> ", "> a\n", "- ", "- a\n", "1. ", "# ", "# a\n", "a\n", "a\n\n", "|", "|a|b|\n", "|-", "[^1]",
            "[^1]: ", "[a]: b\n", "[a]\n", "[a][b]", "```\n", "    a\n", "!!! a\n", "!!! a\n    ", "=== \"a\"\n    ", ": a\n", "*[a]: b\n", "{%", "{{<",
            "{: a", "&amp;", "&", "http://a.b ", "<http://a.b>", "\t", " ", "  \n", "\r", "---\n", "+++\n", "***\n", "===\n", "- [ ] a\n", "\\[",
            "a*b_c~d", "*_", "**_a", "[a](b 'c", "![[", "[![", "<a href=\"", "</", "<?", "<![CDATA[", ":::", "!!", "??", "''", "\"\"a\"\"",
        )
    },
    **{
        f"text {piece}": repeated("text\n", piece)
        for piece in ("*a*", "**a", "_a_", "*", "~~a", "[a](b)", "[", "[a](", "((a))", "==a==", "- *a*\n", "*a\n", "`a", "$a", "__a__ ", "*a **b", "](")
    },
    "html nested": nested("html\n", "<b>", "a", "</b>"),
    "html nested blocks": nested("html\n", "<div>", "a", "</div>"),
    "html nested texts": nested("html\n", "<b>a", "b", "c</b>"),
    "html kept": nested("html\n", "<b translate=no>", "a", "</b>"),
    "html kept and not": nested("html\n", "<b translate=no><i translate=yes>", "a", "</i></b>"),
    "xml nested": nested("xml\n", "<b>", "a", "</b>"),
    "xml nested texts": nested("xml\n", "<b>a", "b", "c</b>"),
    "markdown nested": nested("markdown\n", "*a ", "b", " c*"),
    "markdown nested links": nested("markdown\n", "[", "a", "](b)"),
    "markdown nested images": nested("markdown\n", "![", "a", "](b)"),
    "markdown columns": lambda size: b"markdown\n" + b"|a" * (size // 6) + b"|\n" + b"|-" * (size // 6) + b"|\n" + b"|b" * (size // 6),
    "markdown deeper lists": lambda size: b"markdown\n" + b"".join(b" " * i + b"- a\n" for i in range(int((2 * size) ** 0.5))),
    "markdown deeper quotes": lambda size: b"markdown\n" + b"".join(b">" * i + b"a\n" for i in range(int((2 * size) ** 0.5))),
    "text nested": nested("text\n", "*a ", "b", " c*"),
}  # fmt: skip

TARGET = Target(
    read=read,
    seeds=lambda: [text.encode() for text in SEEDS],
    allowed=(),
    mutate=mutate_xml,
    words=[
        b"<b>", b"</b>", b"<p>", b"<br/>", b"<img alt='a'>", b"<!--", b"-->", b"<![CDATA[", b"]]>", b"<script>", b"&lt;",
        b"&amp;lt;", b"&#x1F600;", b"&NotEqualTilde;", b"translate=no", b"class=notranslate", b"lang=en", b"title='a b'",
        b"<x/>", b"<sup>", b"<svg>", b"<textarea>", b"**", b"__", b"~~", b"==", b"](", b"![", b"[^1]", b"$$", b"\\(",
        b"```\n", b"    ", b"> ", b"- ", b"|---|\n", b"[a]: b\n", b"!!! note\n", b"---\n", b"\xef\xbf\xbc", b"\xee\x80\x80",
        b"{name}", b"https://a.b/?c&d", b"\x00", b"\xc2\xa0", b"\xe4\xbd\xa0", b"\r\n", b"  \n",
    ],
    grown=GROWN,
)  # fmt: skip
