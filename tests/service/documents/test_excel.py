import re
from contextlib import suppress
from html import escape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.base.errors import InvalidDocument, TooLarge
from service.documents.contents import ReadOptions
from service.documents.kinds import kind_of
from service.documents.office.excel import PACKAGE_TYPES, rewrite
from tests.service.documents.office_files import A, R, S, office
from tests.service.documents.translating import Opened, in_capitals, translated
from tests.service.documents.word_files import files_in, related

WORKBOOK = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"
XMLNS = f'xmlns="{S}" xmlns:r="{R}" xmlns:a="{A}"'
THREADED = "http://schemas.microsoft.com/office/spreadsheetml/2018/threadedcomments"
BOLD = "<rPr><b/></rPr>"


def string(text: str) -> str:
    return f"<si><t>{escape(text)}</t></si>"


def run(text: str, properties: str = "") -> str:
    space = "" if text == text.strip() else ' xml:space="preserve"'
    return f"<r>{properties}<t{space}>{text}</t></r>"


def workbook(
    *strings: str,
    rows: str = "",
    after: str = "",
    links: tuple[tuple[str, str], ...] = (),
    more: dict[str, str] | None = None,
    names: str = "",
) -> bytes:
    """A workbook with these shared strings and one sheet, which has these rows, something after them, and links."""
    files = {
        "w/book.xml": f"<workbook {XMLNS}><definedNames>{names}</definedNames></workbook>",
        **related(("sharedStrings", "/any/strings.xml"), ("worksheet", "one.xml"), source="w/book.xml"),
        "any/strings.xml": f"<sst {XMLNS}>{''.join(strings)}</sst>",
        "w/one.xml": f"<worksheet {XMLNS}><sheetData>{rows}</sheetData>{after}</worksheet>",
        **related(*links, source="w/one.xml"),
        **(more or {}),
    }
    return office("w/book.xml", WORKBOOK, files)


def table(*columns: str, more: str = "") -> dict[str, str]:
    inside = "".join(f'<tableColumn id="{i}" name="{name}"/>' for i, name in enumerate(columns))
    return {"w/table.xml": f"<table {XMLNS} {more}><tableColumns>{inside}</tableColumns></table>"}


TABLE = (("table", "table.xml"),)


def strings_of(data: bytes) -> str:
    xml = re.sub(r' xmlns(:\w+)?="[^"]*"', "", files_in(data)["any/strings.xml"].decode())
    return re.sub(r".*<sst>|</sst>", "", xml, flags=re.DOTALL)


def columns_of(data: bytes) -> list[str]:
    return re.findall(r'<tableColumn id="\d+" name="([^"]*)"', files_in(data)["w/table.xml"].decode())


@pytest.mark.parametrize(
    ("inside", "html", "new"),
    [
        ("<t>a red dog</t>", "a red dog", "<t>A RED DOG</t>"),
        (run("a ") + run("red", BOLD) + run(" dog"), 'a <g0 id="0">red</g0> dog', None),
        ('<t>one</t><rPh sb="0" eb="1"><t>reading</t></rPh><phoneticPr fontId="1"/>', "one", "<t>ONE</t>"),
        ("<t>one\n\ntwo</t>", 'one<br id="0">two', "<t>ONE\n\nTWO</t>"),
        ("<t>one_x000D_\ntwo</t>", 'one<br id="0">two', "<t>ONE_x000D_\nTWO</t>"),
        ("<t>one\ttwo</t>", 'one<br id="0">two', "<t>ONE\tTWO</t>"),
        ('<t xml:space="preserve">one     two </t>', 'one<br id="0">two ', None),
        ("<t>a &lt;b&gt; &amp;amp;</t>", "a &lt;b&gt; &amp;amp;", "<t>A &lt;b&gt; &amp;amp;</t>"),
    ],
)
def test_strings_are_read_as_html_with_runs_and_lines_without_readings(inside: str, html: str, new: str | None) -> None:
    contents = Opened(rewrite, workbook(f"<si>{inside}</si>"))
    assert contents.texts == [html]
    if new is None:
        new = re.sub(r"(?<=>)[^<]+", lambda match: match[0].upper(), inside)
    assert strings_of(translated(contents)) == f"<si>{new}</si>"


def test_runs_go_where_their_words_went() -> None:
    contents = Opened(rewrite, workbook(f"<si>{run('the ')}{run('red', BOLD)}{run(' house')}</si>"))
    assert (
        strings_of(translated(contents, backwards=True)) == f"<si>{run('HOUSE ')}{run('RED', BOLD)}{run(' THE')}</si>"
    )


def test_rows_stay_byte_for_byte_and_strings_in_cells_are_translated() -> None:
    shared = '<row><c t="s"><v>0</v></c><c t="str"><f>A1&amp;"b"</f><v>a result</v></c><c ><v>1</v></c></row>'
    header = (
        '<headerFooter><oddHeader>&amp;L&amp;"Arial,Bold"&amp;12The house&amp;Rpage &amp;P</oddHeader></headerFooter>'
    )
    data = workbook(string("a dog"), rows=shared, after=header)
    assert Opened(rewrite, data).texts == [
        "a dog",
        '<br id="0"><wbr id="1"><wbr id="2">The house<br id="3">page <x id="4"/>',
    ]
    new = files_in(translated(Opened(rewrite, data)))["w/one.xml"].decode()
    assert f"<sheetData>{shared}</sheetData>" in new
    assert '&amp;L&amp;"Arial,Bold"&amp;12THE HOUSE&amp;RPAGE &amp;P<' in new
    inline = '<row><c t="inlineStr"><is><t>a cat</t></is></c></row>'
    new = files_in(translated(Opened(rewrite, workbook(rows=shared + inline, after=header))))["w/one.xml"].decode()
    assert inline.replace("a cat", "A CAT") in new
    assert "<v>a result</v>" in new


def test_texts_that_are_values_of_cells_are_translated_and_results_are_not() -> None:
    """Some libraries write texts this way."""
    rows = '<row><c t="str"><v>a dog\n2 cats</v></c><c t="str"><f>A1</f><v>a dog</v></c><c><v>1</v></c></row>'
    data = workbook(rows=rows, links=TABLE, more=table("a dog_x000a_2 cats"))
    new = translated(Opened(rewrite, data))
    assert rows.replace("a dog\n2 cats", "A DOG\n2 CATS") in files_in(new)["w/one.xml"].decode()
    assert columns_of(new) == ["A DOG_x000a_2 CATS"]


def test_a_size_in_a_header_does_not_become_part_of_a_number() -> None:
    header = "<headerFooter><oddFooter>&amp;12the 3 dogs</oddFooter></headerFooter>"
    contents = Opened(rewrite, workbook(after=header))
    new = files_in(contents.write(['<wbr id="0">3 Hunde &amp; mehr']))["w/one.xml"].decode()
    assert "&amp;12 3 Hunde &amp;&amp; mehr<" in new


def test_a_header_that_would_be_too_long_stays() -> None:
    data = workbook(string("a dog"), after="<headerFooter><oddFooter>&amp;Lthe end</oddFooter></headerFooter>")
    new = files_in(Opened(rewrite, data).write(["ein Hund", '<br id="0">' + "das Ende " * 30]))["w/one.xml"].decode()
    assert "<oddFooter>&amp;Lthe end</oddFooter>" in new


def test_comments_messages_and_texts_in_drawings_are_translated() -> None:
    validation = '<dataValidations><dataValidation type="list" promptTitle="choose" prompt="a color" error="not so">' \
                 '<formula1>"Red,Blue"</formula1></dataValidation></dataValidations>'  # fmt: skip
    more = {
        "w/k.xml": f"<comments {XMLNS}><author>me</author><comment><text>{run('a note')}</text></comment></comments>",
        "w/t.xml": f'<ThreadedComments xmlns="{THREADED}"><threadedComment><text>a reply</text></threadedComment>'
        "</ThreadedComments>",
        "w/d.xml": f'<drawing {XMLNS}><cNvPr descr="a box"/><hlinkClick tooltip="a tip"/>'
        "<a:p><a:r><a:t>in the box</a:t></a:r></a:p></drawing>",
    }
    links = (("comments", "k.xml"), ("threadedComment", "t.xml"), ("drawing", "d.xml"))
    contents = Opened(rewrite, workbook(string("Red"), string("green"), after=validation, links=links, more=more))
    assert sorted(contents.texts) == sorted(
        ["green", "choose", "a color", "not so", "a note", "a reply", "a box", "a tip", "in the box"]
    )
    long = {"choose": "wählen Sie bitte eine der Farben aus"}
    new = files_in(contents.write([long.get(text, in_capitals(text, "html")) for text in contents.texts]))
    assert 'promptTitle="choose" prompt="A COLOR" error="NOT SO"' in new["w/one.xml"].decode()
    assert "<author>me</author>" in new["w/k.xml"].decode()
    assert "A NOTE<" in new["w/k.xml"].decode()


def test_texts_that_formulas_look_for_stay() -> None:
    rows = '<row><c><f>IF(A1="yes, it ""is""",Prices[[#This Row],[big dogs]],"no")</f><v>0</v></c></row>'
    after = '<conditionalFormatting><cfRule><formula>A1="open"</formula></cfRule></conditionalFormatting>'
    texts = ['Yes, it "is"', "big dogs", "No", "open", "closed", "rate"]
    data = workbook(*map(string, texts), rows=rows, after=after, names='<definedName name="n">"rate"</definedName>')
    assert Opened(rewrite, data).texts == ["closed"]


def test_columns_of_tables_are_named_as_their_header_cells() -> None:
    strings = [string("the name"), string("two\nlines"), f"<si>{run('the ')}{run('price', BOLD)}</si>", string("2024")]
    data = workbook(*strings, links=TABLE, more=table("the name", "two_x000a_lines", "the price", "2024", "Column5"))
    assert columns_of(translated(Opened(rewrite, data))) == [
        "THE NAME",
        "TWO_x000a_LINES",
        "THE PRICE",
        "2024",
        "Column5",
    ]


def test_the_label_of_a_total_follows_its_cell() -> None:
    columns = '<tableColumns><tableColumn name="the dog" totalsRowLabel="the sum"/></tableColumns>'
    more = {"w/table.xml": f"<table {XMLNS}>{columns}</table>"}
    new = files_in(translated(Opened(rewrite, workbook(string("the dog"), string("the sum"), links=TABLE, more=more))))
    assert '<tableColumn name="THE DOG" totalsRowLabel="THE SUM"/>' in new["w/table.xml"].decode()


def test_names_that_would_make_a_table_damaged_are_put_back_with_their_cells() -> None:
    names = ["big", "large", "long", "price"]
    data = workbook(*map(string, names), links=TABLE, more=table(*names))
    new = Opened(rewrite, data).write(["grand", "Grand", "x" * 256, "prix"])
    assert columns_of(new) == ["big", "large", "long", "prix"]
    assert strings_of(new) == "".join(map(string, ["big", "large", "long", "prix"]))


def test_a_header_that_is_written_twice_in_another_way_stays() -> None:
    data = workbook(
        string("the price"), f"<si>{run('the ')}{run('price', BOLD)}</si>", links=TABLE, more=table("the price")
    )
    new = Opened(rewrite, data).write(["le prix", 'prix <g0 id="0">du</g0>'])
    assert columns_of(new) == ["the price"]


def test_pivots_and_filters_follow_the_cells_and_tables_without_headers_stay() -> None:
    field = '<cacheField name="animal"><sharedItems><s v="a dog"/><n v="1"/></sharedItems></cacheField>'
    pivot = f"<pivotCacheDefinition {XMLNS}><cacheFields>{field}</cacheFields></pivotCacheDefinition>"
    more = {
        **related(("sharedStrings", "/any/strings.xml"), ("worksheet", "one.xml"), ("pivotCacheDefinition", "p.xml"),
                  source="w/book.xml"),
        "w/p.xml": pivot,
        **table("animal", more='headerRowCount="0"'),
    }  # fmt: skip
    after = '<autoFilter><filterColumn><filters><filter val="a dog"/></filters></filterColumn></autoFilter>'
    data = workbook(string("animal"), string("a dog"), after=after, links=TABLE, more=more)
    new = files_in(translated(Opened(rewrite, data)))
    assert '<cacheField name="ANIMAL"><sharedItems><s v="A DOG"/><n v="1"/>' in new["w/p.xml"].decode()
    assert '<filter val="A DOG"/>' in new["w/one.xml"].decode()
    assert columns_of(translated(Opened(rewrite, data))) == ["animal"]


@pytest.mark.parametrize("media_type", sorted(PACKAGE_TYPES))
def test_workbooks_are_known_by_the_type_of_their_main_part(media_type: str) -> None:
    data = office("any/name.xml", media_type, {"any/name.xml": f"<workbook {XMLNS}/>"})
    assert kind_of("a.zip", data).name == "xlsx"


def test_titles_of_the_file_are_translated_and_languages_of_drawings_named() -> None:
    core = (
        '<cp xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>the book</dc:title><dc:creator>me</dc:creator></cp>'
    )
    drawing = f'<drawing {XMLNS}><a:p><a:r><a:rPr lang="en-US"/><a:t>a box</a:t></a:r></a:p></drawing>'
    files = {
        "book.xml": f"<workbook {XMLNS}/>",
        **related(("worksheet", "one.xml"), source="book.xml"),
        "one.xml": f"<worksheet {XMLNS}/>",
        **related(("drawing", "d.xml"), source="one.xml"),
        "d.xml": drawing,
        "core.xml": core,
    }
    data = office("book.xml", WORKBOOK, files, ("core-properties", "core.xml"))
    new = files_in(translated(Opened(rewrite, data, ReadOptions(source="en", target="ja"))))
    assert "<dc:title>THE BOOK</dc:title><dc:creator>me</dc:creator>" in new["core.xml"].decode()
    assert 'lang="ja-JP"' in new["d.xml"].decode()


TEXTS = st.sampled_from(["one ", "two", " ", "3", "a\nb", "c    d", "_x000D_"])
STRINGS = TEXTS.map(string) | st.lists(st.builds(run, TEXTS, st.sampled_from(["", BOLD])), max_size=5).map(
    lambda runs: f"<si>{''.join(runs)}<phoneticPr/></si>"
)


@settings(max_examples=40)
@given(st.lists(STRINGS, max_size=5), st.booleans())
def test_nothing_but_text_is_changed_lost_or_doubled(strings: list[str], backwards: bool) -> None:
    data = workbook(*strings, rows="<row/>")
    contents = Opened(rewrite, data)
    assert contents.write(contents.texts) == data
    new = translated(contents, backwards)
    before, after = (re.sub("<[^>]*>", "", xml) for xml in ("".join(strings), strings_of(new)))
    assert sorted(re.sub(" ", "", before).lower()) == sorted(re.sub(" ", "", after).lower())
    assert strings_of(new).count("<si") == len(strings)


@pytest.mark.parametrize("rows", ["<row>", "<row/></sheetData></x>", '<!DOCTYPE a [<!ENTITY b "c">]>&b;'])
def test_damaged_sheets_are_refused_if_their_cells_have_texts(rows: str) -> None:
    with pytest.raises(InvalidDocument, match=r"w/one\.xml (is damaged|has a document type)"):
        Opened(rewrite, workbook(rows='<c t="inlineStr"/>' + rows))


@pytest.mark.parametrize(
    "part", ["<f ", "<f>", '"', "<sheetData>", '<c t="s"><f>"', "<x:", "<cacheField/>", "<s v='a'/>"]
)
def test_hostile_workbooks_are_read_or_refused_in_linear_time(part: str) -> None:
    with suppress(InvalidDocument, TooLarge):
        translated(Opened(rewrite, workbook(string("a dog"), rows=part * (400_000 // len(part)))))
    with suppress(InvalidDocument, TooLarge):
        translated(Opened(rewrite, workbook(string("a dog"), more={"w/one.xml": part * (400_000 // len(part))})))


def test_hostile_workbooks_are_refused() -> None:
    with pytest.raises(InvalidDocument, match="its main part is missing"):
        Opened(rewrite, office("book.xml", WORKBOOK, {}))
    with pytest.raises(TooLarge, match="limit"):
        Opened(rewrite, workbook(string("x" * 10_000)), ReadOptions(max_bytes=5_000))


def test_names_that_collide_in_a_chain_are_put_back_quickly() -> None:
    names = [f"name {i}" for i in range(2_000)]
    data = workbook(*map(string, names), links=TABLE, more=table(*names))
    new = Opened(rewrite, data).write([*names[1:], names[-1]])
    assert columns_of(new) == names
