"""Attributes that people read are translated; all others, and their quotes, stay."""

import re
from html import unescape
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.documents.contents import ReadOptions
from service.documents.web import html as html_files
from service.markup.html import parse
from service.schemas.requests import TagRules
from service.text.language_marks import MarkedLanguages
from tests.service.documents.translating import Opened, in_capitals, translated
from tests.service.markup.documents import unchanged

READ = [
    '<img src=a.png alt="A red bus">',
    "<img alt='A red bus' title=\"A red bus\"/>",
    '<area alt="A red bus"><input type=image alt="A red bus">',
    '<input placeholder="A red bus"><textarea placeholder="A red bus"></textarea>',
    '<abbr title="A red bus">ARB</abbr>',
    'SEE <a href="/a" title="A red bus">THIS <b title="A red bus">PAGE</b></a>.',
    '<nav aria-label="A red bus"><p aria-description="A red bus" aria-valuetext="A red bus">',
    '<select><optgroup label="A red bus"><option label="A red bus" value=bus>A red bus</optgroup></select>',
    '<th abbr="A red bus"><table summary="A red bus"><track label="A red bus">',
    '<meta name=description content="A red bus"><meta property="og:image:alt" content="A red bus">',
    '<meta content="A red bus" itemprop="description"><meta name="DC.title" content="A red bus">',
    '<input type=button value="A red bus"><input type=RESET value="A red bus"><input type=submit value="A red bus">',
    '<iframe title="A red bus" src=x></iframe><code title="A red bus">x</code>',
    '<ul><li title="A red bus">X</ul>',
    "<svg><title>A red bus</title><path d='m0 0'/><text>A red bus <tspan>12</tspan></text><style>a</style></svg>",
]
LEFT = [
    "<img translate=no alt='a red bus'><p class='x notranslate' title='a red bus'>x</p>",
    "<div translate=no><p title='a red bus'><img alt='a red bus'></div>",
    "<p data-title='a red bus' name='a red bus' id='a red bus' class='a red bus'>",
    "<option value='a red bus'><input type=hidden value='a red bus'><input value='a red bus'>",
    "<input type=submit name=do value='a red bus'><button value='a red bus'></button>",
    "<link rel=stylesheet title='a red bus' href=x><style title='a red bus'></style>",
    "<svg title='a red bus'><metadata>a red bus</metadata></svg><svg translate=no><text>a red bus</text></svg>",
    "<svg><text translate=no>a red <tspan>bus</tspan></text><desc class=notranslate>a red bus</desc></svg>",
    "<iframe srcdoc='a red bus'></iframe>",
    "<meta name=viewport content='a red bus'><meta charset=x content='a red bus'><a download='a red bus'></a>",
    "<img alt='' title=\"12\"><img alt><a title='https://a.example/b'></a>",
]


@pytest.mark.parametrize("html", READ)
def test_attributes_that_people_read_are_translated(html: str) -> None:
    expected = html.replace("A red bus", "A RED BUS")
    assert in_capitals(html, "html") == expected
    assert translated(Opened(html_files.rewrite, html.encode())).decode() == expected


@pytest.mark.parametrize("html", LEFT)
def test_other_attributes_stay(html: str) -> None:
    assert in_capitals(html, "html").replace(">X<", ">x<") == html


def test_an_element_that_a_request_keeps_keeps_its_attributes() -> None:
    rules = TagRules(keep=["x", "img"])
    assert [passage.anchor for passage in parse("<x title='a bus'>b</x><img alt='a bus'>", rules).passages] == [""]


@pytest.mark.parametrize(
    ("value", "translation", "expected"),
    [
        ("'a bus'", "d'un & <b>", "'d&#39;un &amp; &lt;b&gt;'"),
        ('"a bus"', 'd\'un "x"', '"d\'un &quot;x&quot;"'),
        ('" a&#32;\nbus "', "x", '" x "'),
        ("bus", "autobus", "autobus"),
        ("bus", "un bus", '"un bus"'),
        ("bus", '"bus"', '"&quot;bus&quot;"'),
        ("bus", "a/", '"a/"'),
        (" = bus", "a b", ' = "a b"'),
    ],
)
def test_a_value_is_escaped_and_keeps_its_quotes(value: str, translation: str, expected: str) -> None:
    value, expected = (one if one.startswith(" =") else f"={one}" for one in (value, expected))
    page = Opened(html_files.rewrite, f"<td title{value} id=a>".encode())
    assert len(page.texts) == 1
    escaped = translation.replace("&", "&amp;").replace("<", "&lt;")
    assert page.write([escaped]).decode() == f"<td title{expected} id=a>"


LANGUAGES = [
    ('<p lang="en" xml:lang="en">a <q lang="fr">b</q></p>', '<p lang="de" xml:lang="de">A <q lang="fr">B</q></p>'),
    ("<p lang=en-US><b LANG='EN'>a <i lang=en>b</i></b></p>", "<p lang=de-DE><b LANG='de'>A <i lang=de>B</i></b></p>"),
    ('<meta http-equiv="Content-Language" content="en">', '<meta http-equiv="Content-Language" content="de">'),
    ('<meta content="en_GB" property="og:locale"/>', '<meta content="de_DE" property="og:locale"/>'),
    *((one, one) for one in (
        '<meta property="og:locale:alternate" content="en_GB"><a hreflang="en" href=x></a><track srclang="en">',
        '<p translate="no" lang="en">a</p><div translate="no"><i lang="en">a</i></div>',
        '<pre lang="en">a</pre><script lang="en"></script><code lang="en">1</code>',
        '<html lang="en, fr"><p lang="">1<p lang>1<p data-lang="en">1</html>',
        '<meta name="language" content="English"><p lang title="1" id=x></p>',
    )),
]  # fmt: skip


@pytest.mark.parametrize(("html", "expected"), LANGUAGES)
def test_marks_of_the_source_language_become_marks_of_the_target(html: str, expected: str) -> None:
    page = Opened(html_files.rewrite, html.encode(), ReadOptions(source="en", target="de"))
    texts = [in_capitals(text, "html") for text in page.texts]
    assert page.write(texts).decode() == (expected if texts != page.texts else html)
    document = parse(html, languages=MarkedLanguages("en", "de"))
    assert unchanged(document).lower() == expected.lower()


def test_the_language_of_a_page_that_is_not_translated_stays() -> None:
    page = Opened(html_files.rewrite, b"<html lang=en><p>a", ReadOptions(source="en", target="de"))
    assert page.write(page.texts) == b"<html lang=en><p>a"
    unknown = Opened(html_files.rewrite, b"<html lang=en><p>a", ReadOptions(target="de"))
    assert unknown.write(["b"]) == b"<html lang=en><p>b"


class _Tags(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, list[tuple[str, str | None]]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, attrs))


VALUES = st.text(st.sampled_from("aé&;'\" \n<>=/1.\xa0\ue000"), max_size=6)
QUOTED = st.one_of(
    st.just(""),
    VALUES.map(lambda value: '="{}"'.format(value.replace('"', "&quot;"))),
    VALUES.map(lambda value: "='{}'".format(value.replace("'", "&#39;"))),
    VALUES.map(lambda value: "=" + (re.sub("[\\s\"'<>=/]", "", value) or "x")),
)
ATTRIBUTES = st.lists(st.tuples(st.sampled_from(["alt", "title", "lang", "B"]), QUOTED), max_size=4)
TAGS = st.lists(st.tuples(st.sampled_from(["img", "b", "p", "code"]), ATTRIBUTES), max_size=4)


@given(TAGS, st.booleans())
def test_no_attribute_is_lost_and_only_those_that_are_read_change(
    tags: list[tuple[str, list[tuple[str, str]]]], words: bool
) -> None:
    html = "".join(
        f"<{tag}{''.join(f' {name}{value}' for name, value in attributes)}>{'x ' * words}" for tag, attributes in tags
    )
    assert unchanged(parse(html)) == html or "<b" in html or "<code" in html
    page = Opened(html_files.rewrite, html.encode(), ReadOptions(source="en", target="de"))
    assert page.write(page.texts) == html.encode()
    before, after = _Tags(html).found, _Tags(translated(page).decode()).found
    assert [tag for tag, _ in before] == [tag for tag, _ in after]
    for (_, old), (_, new) in zip(before, after, strict=True):
        assert [name for name, _ in old] == [name for name, _ in new]
        for (name, source), (_, target) in zip(old, new, strict=True):
            assert source == target or name in ("alt", "title")
            assert squeezed(target) == squeezed(source)


def squeezed(value: str | None) -> str:
    return " ".join(unescape(value or "").upper().split())
