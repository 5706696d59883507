"""Any HTML, well formed or not, and whatever the model makes of it."""

import re
from collections import Counter
from itertools import groupby

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from service.kept.restoration import Restored
from service.markup.html import parse, read_pieces
from service.markup.passages import Passage
from service.markup.pieces import PieceKind
from service.text.aligned_words import AlignedWords
from tests.service.markup.documents import unchanged, words
from tests.service.stand_ins import protect, restore

TEXT = st.text(st.sampled_from("aé<>&;b 1.!\n\xa0\"'你🐶\ufffc/="), max_size=6)
NAMES = st.sampled_from(["b", "i", "A", "span", "p", "div", "li", "x-y", "code", "td"])
TAGS = st.sampled_from(
    [
        "<br>",
        "<img src=a>",
        "<!-- <b> -->",
        "<wbr/>",
        "<hr/>",
        "<b/>",
        "<script>'<p>'</script>",
        "<i translate=no>n</i>",
    ]
)
ENTITIES = st.sampled_from(["&lt;", "&amp;lt;", "&nbsp;", "&#65;", "&bogus;", " {name} ", " https://a.b/?c&d "])
ATTRIBUTES = st.sampled_from(["", " a=1", ' B="&lt;>"', " c='d' ", " class=notranslate", " translate=yes"])


def _element(children: list[str], name: str, attributes: str) -> str:
    return f"<{name}{attributes}>{''.join(children)}</{name}>"


LEAVES = st.one_of(TEXT.map(lambda text: text.replace("<", "&lt;").replace("&", "&amp;")), TAGS, ENTITIES)
TREES = st.recursive(
    LEAVES, lambda inner: st.builds(_element, st.lists(inner, max_size=4), NAMES, ATTRIBUTES), max_leaves=12
)
SOUP = st.lists(
    st.one_of(
        TEXT,
        TAGS,
        ENTITIES,
        NAMES.map("<{}>".format),
        NAMES.map("</{}>".format),
        st.sampled_from(
            ["<", "</", "<!", "<?", "<![", "</>", "<a b='", "<p/", "<!--", "-->", "<pre>", "<svg>", "</svg>"]
        ),
    ),
    max_size=14,
).map("".join)
HTML = st.one_of(TREES, SOUP)


@st.composite
def documents(draw: st.DrawFn) -> tuple[str, str]:
    """HTML, and a translation of it with any words in any alignment."""
    html = draw(HTML)
    document = parse(html)
    return html, document.render(draw(translations(passage)) for passage in document.passages)


@st.composite
def translations(draw: st.DrawFn, passage: Passage) -> Restored:
    protected = protect(passage.text, passage.keep)
    stand_ins = [placeholder.stand_in for placeholder in protected.placeholders]
    pieces = st.one_of(TEXT, st.sampled_from([*stand_ins, "x", "y."]))
    text = " ".join(draw(st.lists(pieces, max_size=8)))
    source, target = words(protected.text), words(text)
    mass = np.array(draw(st.lists(st.integers(0, 3), min_size=24, max_size=24)), np.float32)
    mass = np.resize(mass, (len(target), len(source)))
    return restore(
        protected, text, [AlignedWords(source, target, mass / np.maximum(1, mass.sum(axis=1, keepdims=True)))]
    )


def tags(html: str) -> Counter[str]:
    """All that is not text, but for end tags: those of inline elements may be put in or dropped."""
    return Counter(
        piece.raw for piece in read_pieces(html) if piece.kind not in (PieceKind.TEXT, PieceKind.END) and piece.raw
    )


def assert_balanced(html: str) -> None:
    opened = []
    for piece in read_pieces(html):
        if piece.kind is PieceKind.START:
            opened.append(piece.tag)
        elif piece.kind is PieceKind.END:
            assert opened.pop() == piece.tag
    assert opened == []


@given(TREES)
@example("a <b> b </b> c&amp;<b>\n<img> </b> .")
@example("x<b> <i> </i></b><!-- c --> <b>y </b>")
def test_well_formed_html_comes_out_byte_for_byte_without_a_translation(html: str) -> None:
    assert unchanged(parse(html)) == html


def visible(html: str) -> str:
    shown = (piece.text if piece.kind is PieceKind.TEXT else " " for piece in read_pieces(html))
    return re.sub(r"\s+", "", "".join(shown))


@given(documents())
@example(("<a\xa0=<br>", "<a\xa0=<br></a\xa0=<br>"))
def test_every_tag_comes_out_once_and_unchanged_and_inline_ones_are_balanced(html: tuple[str, str]) -> None:
    source, target = html
    assert tags(target) == tags(source)
    assert_balanced(target)


@given(HTML)
@example("<b>a<i>b<p>c</b>d</i>")
@example("x<i> <img><b>y</b></i>")
@example("<</b>a &</b>lt;")
@example("1<img src=a>1</b>")
@example("<&#65;</>")
def test_untranslated_html_shows_what_it_showed_and_is_stable(html: str) -> None:
    once = unchanged(parse(html))
    assert visible(once) == visible(html)
    assert unchanged(parse(once)) == once


INLINE = st.recursive(
    st.sampled_from(["x", "y.", " ", "\n", "<img>", "<input>", "<wbr>", "<!-- c -->"]),
    lambda inner: st.builds("<{0}>{1}</{0}>".format, st.sampled_from(["b", "label"]), st.lists(inner).map("".join)),
    max_leaves=12,
)


def shown(html: str) -> str:
    """A line of it as a browser shows it, with a sign for each image."""
    pieces = read_pieces(html)
    signs = {"img": "\ufffc", "input": "\ufffc"}
    line = "".join(piece.text if piece.kind is PieceKind.TEXT else signs.get(piece.tag, "") for piece in pieces)
    return re.sub(r"\s+", " ", line).strip()


@given(st.lists(INLINE).map("".join))
@example("<b>x<b>x<img> </b><img></b> x")
@example("<b>x<b> </b><img></b> x")
def test_white_space_and_images_keep_their_order(html: str) -> None:
    """But for a space behind an image that stood in a word: the image is between words."""
    assert re.sub("(\ufffc)(?! )", r"\1 ", shown(unchanged(parse(html)))) == re.sub(
        "(\ufffc)(?! )", r"\1 ", shown(html)
    )


@given(st.text())
def test_any_text_is_html(text: str) -> None:
    assert_balanced(unchanged(parse(text)))


@given(TREES)
@example("<b><i translate=no>n</i><b></b><b a=1>;</b></b>")
def test_blocks_and_well_formed_elements_keep_their_order(html: str) -> None:
    def order(text: str) -> list[str]:
        kinds = [
            piece.raw for piece in read_pieces(text) if piece.kind in (PieceKind.BREAK, PieceKind.START) and piece.raw
        ]
        return [raw for raw, _ in groupby(kinds)]

    assert order(unchanged(parse(html))) == order(html)
