import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from service.documents.wrapping import balance_tags, visible_text, wrap


@pytest.mark.parametrize(
    ("html", "lengths", "lines"),
    [
        ("one two three four", [7, 10], ["one two", "three four"]),
        ("one, two four", [5, 7], ["one,", "two four"]),
        ("a <i>b c</i> d", [3, 3], ["a <i>b", "c</i> d"]),
        ('a <font color="red">b c</font> d', [1, 5], ["a", '<font color="red">b c</font> d']),
        ("犬は浜辺を走る。猫は寝る。", [9, 5], ["犬は浜辺を走る。", "猫は寝る。"]),
        ("<i>犬は</i>走る", [2, 2], ["<i>犬は</i>", "走る"]),
        ("one", [4, 4, 4], ["one", "", ""]),
        ("one two", [4, 4, 4], ["one", "two", ""]),
        ("", [1, 1], ["", ""]),
        ("&lt;3 &amp;", [2, 1], ["&lt;3", "&amp;"]),
    ],
)
def test_lines_are_cut_in_proportion(html: str, lengths: list[int], lines: list[str]) -> None:
    assert wrap(html, lengths) == lines


@given(
    st.lists(st.sampled_from(["a", "bc,", "<i>", "</i>", " ", "犬", "。", "&lt;", "<b>x</b>"])).map("".join),
    st.lists(st.integers(1, 9), min_size=1, max_size=5),
)
def test_no_word_and_no_tag_is_lost(html: str, lengths: list[int]) -> None:
    lines = wrap(html, lengths)
    assert len(lines) == len(lengths)
    assert "".join(lines).replace(" ", "") == html.replace(" ", "")


ELEMENTS = st.recursive(
    st.sampled_from(["a ", "b, ", "c d"]),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3).map("".join)
        | st.tuples(inner, st.sampled_from("ib")).map(lambda drawn: f"<{drawn[1]}>{drawn[0]}</{drawn[1]}>")
    ),
    max_leaves=6,
)


@given(ELEMENTS, st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_each_piece_of_what_is_well_formed_is_well_formed(html: str, lengths: list[int]) -> None:
    lines = wrap(html, lengths)
    pieces = balance_tags(lines)
    assert [*map(visible_text, pieces)] == [*map(visible_text, lines)]
    for piece in pieces:
        etree.fromstring(f"<p>{piece}</p>")


def test_an_element_goes_on_in_the_next_piece() -> None:
    assert balance_tags(["a <i>b", "c</i> d", "e"]) == ["a <i>b</i>", "<i>c</i> d", "e"]
    assert balance_tags(["<i>a</i> <i>", "b</i>"]) == ["<i>a</i> ", "<i>b</i>"]
    assert balance_tags(["<b>a <i>b", "c</b> d", "e</i>"]) == ["<b>a <i>b</i></b>", "<b><i>c</b> d</i>", "<i>e</i>"]
    assert balance_tags(["<b>a <i>", "<u></u></i></b>c"]) == ["<b>a </b>", "c"]


def test_tags_in_tags_take_no_longer_than_others() -> None:
    n = 50_000
    assert balance_tags(["<i>" * n + "<b>" * n, "</i>" * n + "x" + "</b>" * n])[0] == ""
    assert balance_tags(["<i>" * n + "</b>" * n + "</i>" * n]) == ["<i>" * n + "</b>" * n + "</i>" * n]
