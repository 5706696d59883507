import pytest
from hypothesis import example, given

from service.base.errors import InvalidDocument
from service.documents.web import html
from service.markup.html import parse
from service.markup.passages import Passage
from tests.service.documents.translating import Opened, in_capitals, translated
from tests.service.markup.test_document_properties import HTML, TREES

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
    assert translated(Opened(html.rewrite, PAGE.encode())) == expected.encode()


@given(HTML)
def test_without_a_translation_a_page_comes_out_byte_for_byte(page: str) -> None:
    contents = Opened(html.rewrite, page.encode())
    assert contents.write(contents.texts) == page.encode()


@given(TREES)
@example("<b>a<p>b</b>c")
@example("<td>x <i>y<td>z</i> &lt")
def test_a_page_in_parts_is_translated_as_a_whole(page: str) -> None:
    contents = Opened(html.rewrite, page.encode())
    read = [passage for text in contents.texts for passage in parse(text).passages]
    assert [*map(shape, read)] == [*map(shape, parse(page).passages)]
    if contents.texts:
        assert translated(contents).decode() == in_capitals(page, "html")


def shape(passage: Passage) -> tuple[object, ...]:
    return passage.text, passage.keep, [(e.span, e.parent, e.start_tag) for e in passage.elements]


@pytest.mark.parametrize("name", ["iso-8859-1", "windows-1251", "Shift_JIS", "utf-8"])
def test_a_page_says_its_encoding(name: str) -> None:
    page = f'<html><meta http-equiv="Content-Type" content="text/html; charset={name}"><p>a \\</p>'
    contents = Opened(html.rewrite, page.encode(name))
    assert contents.texts == ["a \\"]
    written = contents.write(["été 犬 собака"])
    assert Opened(html.rewrite, written).texts != ["?"]
    assert written.decode("cp1252" if name == "iso-8859-1" else name).startswith(page[:-8])


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        *((name, "①㈱髙".encode("cp932"), "①㈱髙") for name in ("Shift_JIS", "x-sjis", "windows-31j", "ms_kanji")),
        *((name, "朱镕基".encode("gbk"), "朱镕基") for name in ("gb2312", "x-gbk", "csGB2312")),
        *((name, "똠방".encode("cp949"), "똠방") for name in ("euc-kr", "ks_c_5601-1987", "windows-949")),
        *((name, b"\x85 \xa1 \x81", "… ก \x81") for name in ("tis-620", "iso-8859-11", "windows-874", "iso885911")),
        ("iso-8859-1", b"a\x80\x81 \x8d\x9d", "a€\x81 \x8d\x9d"),
        ("iso-8859-9", b"\x93\xfeey\x94", "“şey”"),
        ("big5", b"\xc6\xa1\xa4\x40", "①一"),
        ("iso-8859-8-i", "שלום".encode("iso-8859-8"), "שלום"),
        ("iso-2022-jp", "犬".encode("iso-2022-jp"), "犬"),
        ("sun_eu_greek", "σκύλος".encode("iso-8859-7"), "σκύλος"),
        ("x-mac-ukrainian", "Ґанок".encode("mac-cyrillic"), "Ґанок"),
    ],
)
def test_an_encoding_is_read_as_browsers_read_it(name: str, data: bytes, text: str) -> None:
    page = f"<meta charset={name}><p>".encode() + data + b"<p>x"
    contents = Opened(html.rewrite, page)
    assert contents.texts == [text, "x"]
    assert contents.write([text, "y"]) == page[:-1] + b"y"


def test_xhtml_may_say_its_encoding_as_xml_does() -> None:
    page = b'<?xml version="1.0" encoding="iso-8859-1"?><p>caf\xe9<p>x'
    assert Opened(html.rewrite, page).texts == ["café", "x"]
    assert Opened(html.rewrite, page.replace(b"<p>x", b"<meta charset=koi8-r>")).texts == ["cafИ"]


def test_a_byte_that_an_encoding_has_not_is_refused() -> None:
    for name, byte in (("windows-1253", b"\xd2"), ("shift_jis", b"\x81<"), ("utf-8", b"\x81")):
        with pytest.raises(InvalidDocument):
            Opened(html.rewrite, f"<meta charset={name}>".encode() + byte)


def test_pythons_spellings_of_an_encoding_are_known() -> None:
    for name, data in (("latin-1", b"\xe9"), ("utf_8", b"\xc3\xa9")):
        assert Opened(html.rewrite, f"<meta charset={name}><p>".encode() + data).texts == ["é"]


def test_a_letter_that_an_encoding_has_not_is_written_by_number() -> None:
    contents = Opened(html.rewrite, b"<meta charset=latin1><p>caf\xe9</p>")
    assert contents.texts == ["café"]
    assert contents.write(["犬 é"]) == b"<meta charset=latin1><p>&#29356; \xe9</p>"


@pytest.mark.parametrize("name", ["hex", "klingon", "unicode_escape", "idna", "cp850", "iso-2022-kr", "x-user-defined"])
def test_an_encoding_that_is_not_known_is_refused(name: str) -> None:
    with pytest.raises(InvalidDocument, match=name):
        Opened(html.rewrite, f"<meta charset={name}>".encode())
