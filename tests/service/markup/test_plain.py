"""Marks in plain text: as many as went in, around what they were around."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.kept.restoration import keep_original
from service.markup.passages import Passage
from service.markup.plain import parse
from service.text.spans import Span
from tests.service.markup.documents import aligned, words
from tests.service.stand_ins import protect, restore


def passage_of(text: str) -> Passage:
    (passage,) = parse(text).passages
    return passage


def bare(text: str) -> str:
    return passage_of(text).text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("**Note:** The *door* is __very__ _red_, ~~not~~.", "Note: The door is very red, not."),
        ("***both*** and **a *b* c**", "both and a b c"),
        ("Open the [**door**](https://example.org) or ![see](a.png)", "Open the door or see"),
        ("これは**とても**大事。まず[ここ](/a)を", "これはとても大事。まずここを"),
        ("* **One** two\n* three *four\nfive*\n\nsix", "* One two\n* three four\nfive\n\nsix"),
        ("**{n}** and **https://example.org**", "{n} and https://example.org"),
        ("The ==red== and ++blue++, ||white|| or ''old''.", "The red and blue, white or old."),
        ("The ##red dog## is ===very=== ((big)); is ==it==?", "The red dog is very big; is it?"),
        ("**==Both==** are ==**here**==", "Both are here"),
        ("これは==とても==大事", "これはとても大事"),
        (
            "The <b>red <i>car</i></b> is <0>here</0>, {b}not{/b} [url=/a]there[/url].",
            "The red car is here, not there.",
        ),
        ("Die &lt;b>Tür&lt;/b> und das &lt;a href='x'&gt;**Haus**&lt;/a&gt;", "Die Tür und das Haus"),
    ],
)
def test_marks_are_taken_out(text: str, expected: str) -> None:
    assert bare(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "snake_case, 2 * 3, 2*3*4, 2**3**4, a * b * c",
        "* one\n* two\n\n*a\n\n*b",
        "5* and 4* or *this or **that",
        "`**a**` and {x *b* c} and <b *c* d>",
        "src/**/*.py and lib/**/*.js",
        "__init__.py, __NAME__, __main__(), f(*args, **kwargs)",
        "a[0](x) and [](u) and [a] (b)",
        "\\*a\\* or * a * or ** ** or ****",
        "x^*y* =_z_",
        "Dear *|FNAME|*, and *|LIST:NAME|*",
        "if a == b and c == d, i++ or j++, C++ and C++, x--y--z, --one and --two",
        "##name##, @@name@@, http://a.org//b and http://a.org//c//",
        'as "a":[...],"b":{...}, or [--] and {--}',
        "Wait... what?? No!! f((x)) and ((a)b) and ==a===",
        "`<b>a</b>` and <b>{n}</b>, <b/>a</b>, <p>12</p>, <u>a</i>, [a] or {a}, <x/>, </b>a<b>",
    ],
)
def test_signs_that_are_part_of_something_else_are_no_marks(text: str) -> None:
    assert not passage_of(text).elements
    assert bare(text) == text


@pytest.mark.parametrize(
    ("text", "translation", "links", "expected"),
    [
        ("**Note:** The door", "Hinweis: Die Tür", None, "**Hinweis:** Die Tür"),
        ("I *really* like it.", "Ich mag es wirklich.", "0-0 2-1 3-2 1-3 4-4", "Ich mag es *wirklich*."),
        (
            "The [**big** house](/a_b) is {x}.",
            "Tom est une maison grande.",
            "4-0 3-1 0-2 2-3 1-4 5-5",
            "{x} est une [maison **grande**](/a_b).",
        ),
        ("a <b> & **b**", "x Boston & y", None, "x <b> & **y**"),
        ("the ==red== ++dog++", "le chien rouge", "0-0 2-1 1-2", "le ++chien++ ==rouge=="),
        ("the <b>red</b> [i]dog[/i]", "le chien rouge", "0-0 2-1 1-2", "le [i]chien[/i] <b>rouge</b>"),
        ("**Stop!** Go.", "止まれ！行け。", "0-0 1-1 2-2", "**止まれ**！行け。"),
    ],
)
def test_marks_go_where_the_aligned_words_went(text: str, translation: str, links: str | None, expected: str) -> None:
    found = passage_of(text)
    protected = protect(found.text)
    restored = restore(protected, translation, [aligned(protected.text, translation, links)])
    shown, edits = found.with_marks(restored)
    assert shown == expected
    for word in words(restored.text):
        assert edits.after(word).of(shown) == word.of(restored.text)


TEXTS = st.lists(
    st.sampled_from(
        [
            "a", "b. ", " ", "\n", "\n\n", "- ", "你", "*", "**", "_", "__", "~~", "`", "[", "](/u)", "![", "{n}",
            "\\", "x_y", "==", "++", "((", "))", "<b>", "</b>", "[i]", "[/i]", "&lt;b>", "&lt;/b&gt;",
        ]
    ),
    max_size=16,
).map("".join)  # fmt: skip


@given(TEXTS)
@example("*a **b*** c\n- _d_\n")
def test_a_text_comes_out_as_it_is_without_a_translation(text: str) -> None:
    found = passage_of(text)
    assert found.with_marks()[0] == text
    assert found.with_marks(keep_original(protect(found.text))) == found.with_marks()


def test_terms_keep_their_marks() -> None:
    text = "**Foo** and **bar**"
    (passage,) = parse(text, [Span(0, 7)]).passages
    assert passage.text == "**Foo** and bar"
