"""XML in, XML out: tags unchanged and around the words that they were around, and still well-formed."""

from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.markup.xml import MARKUP, is_well_formed, parse
from service.schemas.requests import TagRules
from tests.service.markup.documents import rendered, unchanged
from tests.service.markup.test_document_properties import TEXT, translations

NOVEL = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE book [<!ENTITY us "the ]> press">]>
<book>
  <title>The dog's day</title>
  <p n="1">It ran. It <i>slept</i> &amp; ate&#46;</p><p>
    All <b><i>day</i> long</b>,
    until night.
  </p>
  <pb/>
</book>
"""


def texts(xml: str, **rules: object) -> list[str]:
    return [passage.text for passage in parse(xml, TagRules.model_validate(rules)).passages]


def translated(xml: str, *translations: tuple[str, str | None], **rules: object) -> str:
    return rendered(parse(xml, TagRules.model_validate(rules)), *translations)


def test_elements_without_text_beside_them_part_passages() -> None:
    assert texts(NOVEL) == ["The dog's day", "It ran. It slept & ate.", "All day long, until night."]
    assert unchanged(parse(NOVEL)) == NOVEL


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({}, ["One", "and two", "three."]),
        ({"inline": ["p"]}, ["One and two", "three."]),
        ({"inline": ["p"], "blocks": ["b"]}, ["One", "and", "two", "three."]),
        ({"detect": False}, ["One and two three."]),
        ({"detect": False, "blocks": ["q", "p"]}, ["One", "and two", "three."]),
        ({"detect": False, "blocks": ["P"]}, ["One and two three."]),
        ({"keep": ["p"]}, ["three."]),
        ({"detect": False, "keep": ["p"]}, ["\ufffc \ufffc three."]),
        ({"keep": ["b"]}, ["One", "and \ufffc", "three."]),
    ],
)
def test_names_say_what_parts_what_is_inline_and_what_is_kept(rules: object, expected: list[str]) -> None:
    xml = "<s><p>One</p> <p>and <b>two</b></p> <q>three.</q></s>"
    assert [passage.text for passage in parse(xml, TagRules.model_validate(rules)).passages] == expected
    assert unchanged(parse(xml, TagRules.model_validate(rules))) == xml


@pytest.mark.parametrize(
    ("xml", "text", "links", "expected"),
    [
        ("the <Red n='1'>red</Red> car", "la voiture rouge", "0-0 2-1 1-2", "la voiture <Red n='1'>rouge</Red>"),
        ("the <b>red</b> <B>car</B>", "la voiture rouge", "0-0 2-1 1-2", "la <B>voiture</B> <b>rouge</b>"),
        ("<r>the red</r><r> car</r>", "la voiture rouge", "0-0 2-1 1-2", "<r>la</r> <r>voiture</r> rouge"),
        ("the car<x/> is red", "la voiture est rouge", None, "la voiture<x/> est rouge"),
        ("the car<x></x> is red", "la voiture est rouge", None, "la voiture<x></x> est rouge"),
        ("the <x id='1'></x> car", "la voiture Boston", "0-0 2-1 1-2", "la voiture <x id='1'></x>"),
        ("the <x>big <y/>red</x> car", "la voiture Boston", "0-0 2-1 1-2", "la voiture <x>big <y/>red</x>"),
        ("a &lt; b &#38; c > d", "x < y & z > w", None, "x &lt; y &amp; z &gt; w"),
        ("the &big-x.1; car", "la voiture Boston", "0-0 2-1 1-2", "la voiture &big-x.1;"),
        ("<![CDATA[<b> & ]]>car", "Boston & voiture", None, "&lt;b&gt; &amp; voiture"),
        (
            'the <fontcolor="#007af2">timer</fontcolor> of <b=a>x</b>',
            "x timer",
            "3-0 1-1",
            '<b=a>x</b> <fontcolor="#007af2">timer</fontcolor>',
        ),
    ],
)
def test_tags_go_where_the_aligned_words_went(xml: str, text: str, links: str | None, expected: str) -> None:
    assert translated(xml, (text, links), detect=False, keep=["x"]) == expected


@pytest.mark.parametrize(
    ("xml", "read_as"),
    [
        ("Salt & pepper", "Salt & pepper"),
        ("1 < 2 <b", "1 < 2 <b"),
        ("a <br> b </i> c", "a b c"),
        ("<p>a <b>b</p> c</b>", "a b c"),
        ("a &copy &; b", "a &copy &; b"),
        ("a &nbsp;&eacute; b", "a \xa0é b"),
        ("a <!-- b", "a"),
        ('<a b="<c>">x</a>', '<a b="">x'),
    ],
)
def test_broken_xml_is_read_and_nothing_of_it_is_lost(xml: str, read_as: str) -> None:
    assert texts(xml) == [read_as]
    assert unchanged(parse(xml)) == xml


@pytest.mark.parametrize(
    ("xml", "expected"),
    [
        (NOVEL, True),
        ("a <b>c</b> d", True),
        ("a &nbsp; &#233; &us;", True),
        ("<b>c</a>", False),
        ("Salt & pepper", False),
        ("<B>c</b>", False),
        ("a \ud83d", False),
        ("a \0", False),
        ("<b>c</b></_><_>", False),
        *(
            (f'<?xml version="1.0" encoding="{name}"?><b>é</b>', True)
            for name in ("utf-16", "Shift_JIS", "ascii", "no")
        ),
    ],
)
def test_well_formedness_is_that_of_an_elements_content(xml: str, expected: bool) -> None:
    assert is_well_formed(xml) is expected


NAMES = st.sampled_from(["b", "B", "p", "li", "x-y", "n:s", "é"])
LEAVES = st.one_of(
    TEXT.map(lambda text: text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")),
    st.sampled_from(["<br/>", "<b />", "<x id='1'></x>", "<!-- <b> -->", "<?pi <b> ?>", "&#65;", " {name} "]),
)


def _element(children: list[str], name: str, attributes: str) -> str:
    return f"<{name}{attributes}>{''.join(children)}</{name}>"


TREES = st.recursive(
    LEAVES,
    lambda inner: st.builds(
        _element, st.lists(inner, max_size=4), NAMES, st.sampled_from(["", ' a="1"', " B = '&lt;\">' "])
    ),
    max_leaves=12,
)
SOUP = st.lists(
    st.one_of(
        TEXT,
        NAMES.map("<{}>".format),
        NAMES.map("</{}>".format),
        st.sampled_from(
            ["<", "</", "<!", "<?", "<![CDATA[", "]]>", "<a b='", "<p/", "/>", "<!--", "-->", "<!DOCTYPE "]
        ),
    ),
    max_size=14,
).map("".join)
RULES = st.builds(
    TagRules,
    keep=st.lists(NAMES, max_size=1),
    blocks=st.lists(NAMES, max_size=2),
    inline=st.lists(NAMES, max_size=2),
    detect=st.booleans(),
)


@given(TREES, RULES)
def test_well_formed_xml_comes_out_byte_for_byte_without_a_translation(xml: str, rules: TagRules) -> None:
    assert unchanged(parse(xml, rules)) == xml


@given(SOUP, RULES)
@example("<a>]]><![CDATA[&", TagRules())
def test_any_text_is_xml(xml: str, rules: TagRules) -> None:
    once = unchanged(parse(xml, rules))
    assert once.replace("&amp;", "&") == once or "<![CDATA[" in xml or "&amp;" in xml
    assert unchanged(parse(once, rules)) == once


@given(st.data(), TREES, RULES)
def test_translated_xml_is_well_formed_and_has_every_tag_once(data: st.DataObject, xml: str, rules: TagRules) -> None:
    document = parse(xml, rules)
    target = document.render(data.draw(translations(passage)) for passage in document.passages)
    markup, before = (Counter(match.group() for match in MARKUP.finditer(text)) for text in (target, xml))
    assert markup == before
    assert is_well_formed(xml)
    assert is_well_formed(target)
