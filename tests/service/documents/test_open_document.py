import re
import zipfile
from io import BytesIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from service.base.errors import InvalidDocument, RequestError
from service.documents.contents import ReadOptions
from service.documents.kinds import kind_of
from service.documents.office.open_document import MEDIA_TYPES, rewrite
from service.documents.wrapping import visible_text
from tests.service.documents.open_document_files import DECLARATION, XMLNS, content, entry, open_document, style
from tests.service.documents.translating import Opened, in_capitals, translated
from tests.service.documents.word_files import files_in, zipped

STYLES = (
    style("B", 'fo:font-weight="bold"')
    + style("AlsoB", 'fo:font-weight="bold" fo:language="en" fo:country="GB" fo:letter-spacing="0.01cm"')
    + style("Noise", 'style:letter-kerning="true" fo:language="en" fo:country="US"')
    + style("Sub", 'style:text-position="sub 58%"')
    + style("Sup", 'style:text-position="33% 58%"')
)
CHART = "application/vnd.oasis.opendocument.chart"


def paragraph(inside: str) -> str:
    return f'<text:p text:style-name="P">{inside}</text:p>'


def span(name: str, inside: str) -> str:
    return f'<text:span text:style-name="{name}">{inside}</text:span>'


def odt(body: str) -> bytes:
    return open_document(content(body, STYLES))


def texts(body: str) -> list[str]:
    return Opened(rewrite, odt(body)).texts


def body_of(data: bytes, file: str = "content.xml") -> str:
    """The body of a file in a document, without declarations of namespaces."""
    xml = re.sub(r' xmlns:\w+="[^"]*"', "", files_in(data)[file].decode())
    return re.sub(r".*?<office:body><office:\w+>|</office:\w+></office:body>.*", "", xml, flags=re.DOTALL)


def written(body: str, backwards: bool = False) -> str:
    return body_of(translated(Opened(rewrite, odt(body)), backwards))


def test_spans_go_where_their_words_went() -> None:
    body = paragraph(f"the {span('B', 'red')} house")
    assert written(body, backwards=True) == paragraph(f"HOUSE {span('B', 'RED')} THE")


def test_a_link_in_a_span_stays_in_it() -> None:
    """Impress shows no link with a span in it."""
    body = paragraph(f"see {span('B', '<text:a>the page</text:a>')}")
    assert written(body) == body.replace("see", "SEE").replace("the page", "THE PAGE")


@pytest.mark.parametrize(
    ("inside", "html"),
    [
        (span("B", "all of it"), "all of it"),
        (f"no {span('Noise', 'style')} at all", "no style at all"),
        (f"one {span('B', 'bo')}{span('AlsoB', 'ld')} word", 'one <g0 id="0">bold</g0> word'),
        (f"one {span('B', 'a ' + span('I', 'b'))} two words", 'one <g0 id="0">a </g0><g1 id="1">b</g1> two words'),
        (f"much water H{span('Sub', '2')}O", 'much water H<sub id="0">2</sub>O'),
        (f"the water of 2{span('Sup', 'nd')}", 'the water of 2<sup id="0">nd</sup>'),
        ('a <text:a xlink:href="u">link</text:a>', 'a <span id="0">link</span>'),
        ("two\n   <text:s/>spaces", "two  spaces"),
        ('col<text:s text:c="4"/>umns', 'col<br id="0">umns'),
        ("a<text:tab/>b<text:line-break/>c", 'a<br id="0">b<br id="1">c'),
        (f"a<text:note><text:note-body>{paragraph('1')}</text:note-body></text:note>.", 'a<wbr id="0">.'),
        ('a <text:bookmark text:name="n"/>b', 'a <wbr id="0">b'),
        ('a <text:bookmark-start text:name="n"/>b<text:bookmark-end text:name="n"/>', 'a <span id="0">b</span>'),
        ('a <office:annotation office:name="n"/>b<office:annotation-end office:name="n"/>', 'a <span id="0">b</span>'),
        ("a <office:annotation/>b", 'a <wbr id="0">b'),
        ("page <text:page-number>3</text:page-number>", 'page <x id="0"/>'),
        ("a<text:soft-page-break/><!-- c -->b<x:unknown/>", 'ab<wbr id="0">'),
        ("<text:ruby><text:ruby-base>犬</text:ruby-base><text:ruby-text>inu</text:ruby-text></text:ruby>", "犬"),
        ('a <draw:frame text:anchor-type="as-char"/> b', 'a <img id="0"> b'),
        ("a <draw:frame/> b &lt;c&gt;", 'a <wbr id="0"> b &lt;c&gt;'),
    ],
)  # fmt: skip
def test_content_of_a_paragraph_is_read_as_html(inside: str, html: str) -> None:
    [text] = [item for item in texts(paragraph(inside)) if item != "1"]
    assert text == html
    again = Opened(rewrite, translated(Opened(rewrite, odt(paragraph(inside))))).texts
    assert re.sub(" +", " ", in_capitals(html, "html")) in [re.sub(" +", " ", item) for item in again]


def test_spaces_are_written_so_that_none_is_lost() -> None:
    contents = Opened(rewrite, odt(paragraph("a")))
    assert body_of(contents.write(["b  c   d"])) == paragraph('b <text:s text:c="1"/>c <text:s text:c="2"/>d')


def test_visible_text_is_translated_and_nothing_else() -> None:
    number = '<table:table-cell office:value-type="float" office:value="1200">{}</table:table-cell>'
    body = (
        "<text:tracked-changes><text:changed-region><text:deletion>{old}</text:deletion></text:changed-region>"
        "</text:tracked-changes><text:h>{A}</text:h><text:list><text:list-item>{B}</text:list-item></text:list>"
        f"<table:table><table:table-row><table:table-cell>{{C}}</table:table-cell>{number.format('{kept}')}"
        "</table:table-row></table:table>"
        "<draw:frame><draw:text-box>{D}</draw:text-box><svg:title>{E}</svg:title><svg:desc>{F}</svg:desc></draw:frame>"
        "{G<office:annotation><dc:creator>me</dc:creator>{H}</office:annotation>}"
    )
    filled = re.sub(r"\{([^{}<>]*)\}", lambda match: paragraph(f"word {match[1]}"), body).replace(
        "{G", "<text:p>word G"
    )
    filled = re.sub(r"</office:annotation>\}", "</office:annotation></text:p>", filled)
    expected = re.sub(r"word ([A-H])\b", r"WORD \1", filled)
    assert written(filled) == expected
    for part in ("word old", "word kept", "me"):
        assert part in expected


def test_headers_and_footers_are_translated_and_prompts_of_masters_are_not() -> None:
    frame = '<draw:frame presentation:class="{}"><draw:text-box><text:p>{}</text:p></draw:text-box></draw:frame>'
    styles = (
        f"{DECLARATION}<office:document-styles {XMLNS}><office:master-styles><style:master-page>"
        f"<style:header><text:p>the header</text:p></style:header>{frame.format('title', 'Click to edit')}"
        f"{frame.format('footer', 'the footer')}<draw:frame><draw:text-box><text:p>a logo</text:p></draw:text-box>"
        "</draw:frame></style:master-page></office:master-styles></office:document-styles>"
    )
    empty = '<draw:frame presentation:class="title" presentation:placeholder="true"><text:p>Click</text:p></draw:frame>'
    page = f"<draw:page>{empty}<text:p>a slide</text:p></draw:page>"
    body = f"<presentation:footer-decl>the end</presentation:footer-decl>{page}"
    data = open_document(content(body, kind="presentation"), ".odp", {"styles.xml": styles})
    assert Opened(rewrite, data).texts == ["the end", "a slide", "the header", "the footer", "a logo"]


def test_the_titles_of_a_chart_are_translated_and_its_ranges_are_not() -> None:
    chart = content(
        "<chart:chart><chart:title><text:p>Sales of dogs</text:p></chart:title><table:table><table:table-cell "
        'office:value-type="string"><text:p>East</text:p><draw:g><svg:desc>Sheet.A1:Sheet.A1</svg:desc></draw:g>'
        "</table:table-cell></table:table></chart:chart>",
        kind="chart",
    )
    more = {"Graphs/1/content.xml": chart, "Object 9/content.xml": chart}
    data = open_document(content(paragraph("text")), more=more, entries=entry("Graphs/1/", CHART))
    contents = Opened(rewrite, data)
    assert contents.texts == ["text", "Sales of dogs", "East"]
    new = files_in(translated(contents))
    assert ">SALES OF DOGS<" in new["Graphs/1/content.xml"].decode()
    assert new["Object 9/content.xml"].decode() == chart


def cell(text: str, attributes: str = 'office:value-type="string"') -> str:
    return f"<table:table-cell {attributes}><text:p>{text}</text:p></table:table-cell>"


def test_cells_stay_that_are_numbers_or_results_or_that_formulas_look_for() -> None:
    formula = 'table:formula="of:=IF([.A1]=&quot;Yes, it is&quot;;&quot;a&quot;;&quot;b&quot;)"'
    note = "<office:annotation><text:p>a note</text:p></office:annotation>"
    body = "".join(
        [
            '<table:content-validation table:condition="of:is-in-list(&quot;red&quot;;&quot;blue&quot;)"/>',
            '<table:filter-condition table:value="green"/>',
            *map(cell, ("yes, it is", "Red", "green", "a dog")),
            cell("the result", f'{formula} office:value-type="string"'),
            cell("12 dogs", 'office:value-type="float" office:value="12"').replace("<text:p>", f"{note}<text:p>"),
        ]
    )
    assert Opened(rewrite, open_document(content(body, kind="spreadsheet"), ".ods")).texts == ["a dog", "a note"]


def test_the_value_of_a_cell_is_translated_beside_what_it_shows() -> None:
    attributes = 'office:value-type="string" office:string-value="a dog"'
    data = open_document(content(cell("a dog", attributes), kind="spreadsheet"), ".ods")
    assert body_of(translated(Opened(rewrite, data))) == cell("A DOG", attributes.replace("a dog", "A DOG"))


def test_labels_of_forms_and_tips_of_links_are_translated() -> None:
    body = (
        paragraph('<text:a office:title="the tip">a link</text:a>') + '<form:checkbox form:name="c" form:label="yes"/>'
    )
    expected = body.replace("the tip", "THE TIP").replace("a link", "A LINK").replace("yes", "YES")
    assert written(body) == expected


def language_marks(data: bytes) -> list[dict[str, str]]:
    root = etree.fromstring(files_in(data)["content.xml"])
    return [
        {etree.QName(name).localname: value for name, value in item.items() if "font" not in name}
        for item in root.iter("{*}text-properties")
    ]


@pytest.mark.parametrize(
    ("source", "target", "marks"),
    [
        ("en", "de", ["de-DE", "de-DE", "fr-FR", "zh-CN"]),
        ("en", "pt-BR", ["pt-BR", "pt-BR", "fr-FR", "zh-CN"]),
        ("fr", "de", ["en-US", "en-GB", "de-DE", "zh-CN"]),
    ],
)
def test_marks_of_the_source_language_become_marks_of_the_target(source: str, target: str, marks: list[str]) -> None:
    styles = "".join(
        style(f"T{i}", f'fo:language="{language}" fo:country="{country}" {more}')
        for i, (language, country, more) in enumerate(
            [("en", "US", 'style:language-asian="zh" style:country-asian="CN"'), ("en", "GB", ""), ("fr", "FR", "")]
        )
    )
    inside = f"<dc:title>A dog</dc:title><dc:language>{source}-XX</dc:language>"
    meta = f"{DECLARATION}<office:document-meta {XMLNS}><office:meta>{inside}</office:meta></office:document-meta>"
    data = open_document(content(paragraph("a dog"), styles), more={"meta.xml": meta})
    new = translated(Opened(rewrite, data, ReadOptions(source=source, target=target)))
    found = language_marks(new)
    named = [f"{item['language']}-{item['country']}" for item in found]
    assert [*named, f"{found[0]['language-asian']}-{found[0]['country-asian']}"] == marks
    assert f"<dc:title>A DOG</dc:title><dc:language>{target[:2]}-" in files_in(new)["meta.xml"].decode()


def test_a_passage_that_is_marked_as_another_language_keeps_its_mark() -> None:
    styles = style("FR", 'fo:language="fr" fo:country="FR"') + style("GB", 'fo:language="en" fo:country="GB"')
    styles += style("No", 'fo:language="zxx" fo:country="none"')
    body = paragraph(f"the {span('FR', 'mot')} is {span('GB', 'not')} {span('No', 'here')}")
    contents = Opened(rewrite, open_document(content(body, styles)), ReadOptions(source="en", target="de"))
    assert contents.texts == ['the <g0 id="0">mot</g0> is not here']
    assert body_of(translated(contents)) == paragraph(f"THE {span('FR', 'MOT')} IS NOT HERE")


def test_japanese_is_named_where_japanese_letters_are() -> None:
    styles = style("T", 'fo:language="en" fo:country="US" style:language-asian="zh" style:country-asian="CN"')
    new = translated(
        Opened(rewrite, open_document(content(paragraph("a dog"), styles)), ReadOptions(source="en", target="ja"))
    )
    assert language_marks(new)[0]["language-asian"] == "ja"
    assert language_marks(new)[0]["country-asian"] == "JP"


@pytest.mark.parametrize("ending", [".odt", ".ods", ".odp"])
def test_a_file_is_known_by_its_mimetype_and_keeps_it_first_and_stored(ending: str) -> None:
    data = open_document(content(paragraph("text")), ending)
    assert kind_of("a.zip", data).endings == (ending,)
    with zipfile.ZipFile(BytesIO(translated(Opened(rewrite, data)))) as new:
        first, *others = new.infolist()
        assert new.read("META-INF/manifest.xml") == files_in(data)["META-INF/manifest.xml"]
    assert (first.filename, first.compress_type, first.extra) == ("mimetype", zipfile.ZIP_STORED, b"")
    assert [item.filename for item in others] == ["content.xml", "META-INF/manifest.xml"]


def test_the_type_of_an_old_manifest_is_no_reason_to_refuse_it() -> None:
    files = files_in(odt(paragraph("a dog")))
    manifest = files["META-INF/manifest.xml"].decode()
    old = manifest.replace(
        "<manifest:m", '<!DOCTYPE manifest:manifest PUBLIC "-//OpenOffice.org" "M.dtd"><manifest:m', 1
    )
    assert Opened(rewrite, zipped(files | {"META-INF/manifest.xml": old})).texts == ["a dog"]


def test_spans_in_spans_are_read_as_deep_as_xml_may_be() -> None:
    deep = "<text:span>" * 120 + "<text:a>" * 120 + "deep" + "</text:a>" * 120 + "</text:span>" * 120
    assert "DEEP" in written(paragraph(deep))


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (
            open_document("x", entries=entry("content.xml", "text/xml", "<manifest:encryption-data/>")),
            "encrypted: save it without a password",
        ),
        (open_document("<a>"), "content.xml is damaged"),
        (open_document('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'), "content.xml has a document type definition"),
        (open_document("<a>" * 1_000 + "</a>" * 1_000), "content.xml is damaged"),
        (b"PK\x03\x04", "damaged zip"),
    ],
)
def test_files_that_are_encrypted_damaged_or_hostile_are_refused(data: bytes, part: str) -> None:
    with pytest.raises(InvalidDocument, match=part):
        Opened(rewrite, data)


def test_a_bad_number_of_spaces_is_refused_or_read_as_one() -> None:
    for count in ("-1", "x", "1e9", "9" * 5_000):
        data = odt(paragraph(f'a<text:s text:c="{count}"/>b'))
        try:
            assert translated(Opened(rewrite, data))
        except RequestError:
            continue


LEAVES = st.sampled_from(
    ["one ", "two", " ", "<text:s/>", "<text:tab/>", "<text:bookmark/>", "<text:page-number>3</text:page-number>"]
    + [f"<text:bookmark-{side} text:name='{i}'/>" for side in ("start", "end") for i in (1, 2)]
)


def around(inside: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Spans and links around others."""
    formats = [span(name, "{}") for name in ("B", "Noise", "Other")] + ["<text:a>{}</text:a>", "{}"]
    return st.builds(str.format, st.sampled_from(formats), st.lists(inside, max_size=4).map("".join))


@settings(max_examples=40)
@given(st.lists(around(around(LEAVES)), max_size=4).map("".join), st.booleans())
def test_nothing_but_text_is_changed_lost_or_doubled(inside: str, backwards: bool) -> None:
    data = odt(paragraph(inside))
    contents = Opened(rewrite, data)
    assert contents.write(contents.texts) == data
    new = translated(contents, backwards)
    assert counted(new) == counted(data)
    assert sorted(letters(new).lower()) == sorted(letters(data))
    read = visible_text("".join(contents.texts)).upper()
    assert sorted(filter(str.isupper, letters(new))) == sorted(filter(str.isupper, read))


def counted(data: bytes) -> dict[str, int]:
    names = [etree.QName(item).localname for item in etree.fromstring(files_in(data)["content.xml"]).iter()]
    return {name: names.count(name) for name in names if name not in ("span", "s")}


def letters(data: bytes) -> str:
    return re.sub(r"<[^>]*>|\s", "", body_of(data))


def test_media_types_are_of_one_kind_each() -> None:
    assert len({*MEDIA_TYPES.values()}) == len(MEDIA_TYPES)
