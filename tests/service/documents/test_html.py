import pytest
from hypothesis import example, given

from service.documents import html
from service.errors import NotAcceptable
from service.formats.document import parse
from service.formats.passages import Passage
from tests.service.documents.translating import in_capitals, translated
from tests.service.formats.test_document_properties import HTML, TREES

PAGE = """\ufeff<!doctype html>\r
<html lang=en><head><title>A &amp; B</title><style>p {}</style></head>\r
<body><h1 id="top">The <em>first</em> day</h1><p>One<br>two</p><ul><li>three<li>four</ul><pre>five</pre></body></html>
"""


def test_words_are_translated_and_all_else_stays() -> None:
    expected = (
        PAGE.replace("The <em>first</em> day", "THE <em>FIRST</em> DAY")
        .replace(">A &amp; B<", ">A &amp; B<")
        .replace("One<br>two", "ONE<br>TWO")
        .replace("three<li>four", "THREE<li>FOUR")
    )
    assert translated(html.read(PAGE.encode())) == expected.encode()


@given(HTML)
def test_without_a_translation_a_page_comes_out_byte_for_byte(page: str) -> None:
    contents = html.read(page.encode())
    assert contents.written(contents.texts) == page.encode()


@given(TREES)
@example("<b>a<p>b</b>c")
@example("<td>x <i>y<td>z</i> &lt")
def test_a_page_in_parts_is_translated_as_a_whole(page: str) -> None:
    contents = html.read(page.encode())
    read = [parse(text).passages for text in contents.texts]
    assert [shape(one) for passages in read for one in passages] == [shape(one) for one in parse(page).passages]
    if contents.texts:
        assert translated(contents).decode() == in_capitals(page, "html")


def shape(passage: Passage) -> tuple[object, ...]:
    return passage.text, passage.keep, [(one.span, one.parent, one.start_tag) for one in passage.elements]


@pytest.mark.parametrize("name", ["iso-8859-1", "windows-1251", "Shift_JIS", "utf-8"])
def test_a_page_says_its_encoding(name: str) -> None:
    page = f'<html><meta http-equiv="Content-Type" content="text/html; charset={name}"><p>a \\</p>'
    contents = html.read(page.encode(name))
    assert contents.texts == ["a \\"]
    written = contents.written(["été 犬 собака"])
    assert html.read(written).texts != ["?"]
    assert written.decode("cp1252" if name == "iso-8859-1" else name).startswith(page[:-8])


def test_a_letter_that_an_encoding_has_not_is_written_by_number() -> None:
    contents = html.read(b"<meta charset=latin1><p>caf\xe9</p>")
    assert contents.texts == ["café"]
    assert contents.written(["犬 é"]) == b"<meta charset=latin1><p>&#29356; \xe9</p>"


@pytest.mark.parametrize("name", ["hex", "klingon", "unicode_escape", "idna"])
def test_an_encoding_that_is_not_known_is_refused(name: str) -> None:
    with pytest.raises(NotAcceptable, match=f"its encoding is {name}, which is not known"):
        html.read(f"<meta charset={name}>".encode())
