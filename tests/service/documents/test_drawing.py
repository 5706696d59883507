import re
from collections.abc import Callable

import pytest
from lxml import etree

from service.documents.contents import ReadOptions
from service.documents.office.drawing import office_texts
from service.documents.office.languages import mark_languages
from tests.service.documents.translating import in_capitals

ENGLISH = ReadOptions(source="en", target="de")
NAMESPACES = (
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    'xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart" '
    'xmlns:x="http://schemas.microsoft.com/office/drawing/2014/chartex" '
    'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" xmlns:v="urn:schemas-microsoft-com:vml"'
)


def whole(inside: str) -> str:
    return f"<root {NAMESPACES}>{inside}</root>"


def texts(inside: str) -> list[str]:
    return [text.html for text in office_texts(etree.fromstring(whole(inside)), ENGLISH)]


def written(inside: str, translate: Callable[[str], str] = lambda html: in_capitals(html, "html")) -> str:
    root = etree.fromstring(whole(inside))
    for text in [*office_texts(root, ENGLISH)]:
        text.write(translate(text.html))
    return etree.tostring(root, encoding="unicode").removeprefix(f"<root {NAMESPACES}>").removesuffix("</root>")


def run(text: str, properties: str = "<a:rPr/>") -> str:
    return f"<a:r>{properties}<a:t>{text}</a:t></a:r>"


def paragraph(*inside: str) -> str:
    return f'<a:p><a:pPr/>{"".join(inside)}<a:endParaRPr lang="en-US"/></a:p>'


def test_runs_keep_their_properties_and_the_end_of_a_paragraph_stays_behind_them() -> None:
    body = paragraph(run("the "), run("red", '<a:rPr b="1"/>'), run(" house"))
    assert texts(body) == ['the <g0 id="0">red</g0> house']
    assert written(body) == paragraph(run("THE "), run("RED", '<a:rPr b="1"/>'), run(" HOUSE"))


@pytest.mark.parametrize(
    ("inside", "html"),
    [
        (run("a", '<a:rPr lang="en-GB" dirty="0"/>') + run("b", '<a:rPr err="1" spc="-3" kern="12"/>'), "ab"),
        (run("a", '<a:rPr lang="en-US"/>') + run("mot", '<a:rPr lang="fr-FR"/>'), '<g0 id="0">a</g0>mot'),
        (run("the 2") + run("nd", '<a:rPr baseline="30000"/>'), 'the 2<sup id="0">nd</sup>'),
        (run("water") + run("2", '<a:rPr baseline="-25000"/>'), 'water<sub id="0">2</sub>'),
        (run("one") + "<a:br><a:rPr/></a:br>" + run("Two"), 'one<br id="0">Two'),
        (run("slide ") + '<a:fld id="{1}" type="slidenum"><a:t>3</a:t></a:fld>', 'slide <x id="0"/>'),
        (run("a   b ") + run("non\u2011stop"), 'a<br id="0">b non-stop'),
    ],
)
def test_content_of_a_paragraph_is_read_as_html(inside: str, html: str) -> None:
    assert texts(paragraph(inside)) == [html]
    shown = etree.fromstring(whole(written(paragraph(inside))))
    assert "".join(shown.itertext()) == "".join(etree.fromstring(whole(inside)).itertext()).upper()
    assert "xml:space" not in etree.tostring(shown).decode()


def test_strings_of_charts_are_translated_and_their_numbers_stay() -> None:
    values = "<c:pt><c:v>{}</c:v></c:pt>"
    body = (
        f"<c:title><c:tx><c:rich>{paragraph(run('Sales'))}</c:rich></c:tx></c:title>"
        f"<c:ser><c:tx><c:strRef><c:f>A1</c:f><c:strCache>{values.format('North')}</c:strCache></c:strRef></c:tx>"
        f"<c:cat><c:multiLvlStrRef><c:multiLvlStrCache><c:lvl>{values.format('May')}</c:lvl></c:multiLvlStrCache>"
        f"</c:multiLvlStrRef></c:cat><c:val><c:numCache><c:formatCode>General</c:formatCode>{values.format('1.5')}"
        f"</c:numCache></c:val></c:ser><c:ser><c:tx><c:v>South</c:v></c:tx></c:ser>"
        f"<c:strLit>{values.format('West')}</c:strLit><x:tx><x:txData><x:v>East</x:v></x:txData></x:tx>"
        "<x:strDim><x:lvl><x:pt>Top</x:pt></x:lvl></x:strDim><x:numDim><x:lvl><x:pt>2</x:pt></x:lvl></x:numDim>"
    )
    names = ["Sales", "North", "May", "South", "West", "East", "Top"]
    assert texts(body) == names
    expected = body
    for name in names:
        expected = expected.replace(name, name.upper())
    assert written(body) == expected


def test_descriptions_of_pictures_are_translated() -> None:
    body = '<p:cNvPr name="Picture 1" descr="a &lt;car&gt;"/><v:shape alt="a dog"/><v:textpath string="DRAFT"/>'
    assert texts(body) == ["a &lt;car&gt;", "a dog", "DRAFT"]
    shown = re.sub("(a &lt;|a dog|DRAFT)", r"1 \1", body).replace("&gt;", ">")
    assert etree.fromstring(whole(written(body, lambda html: "1 " + html))).xpath("//@*") == etree.fromstring(
        whole(shown)
    ).xpath("//@*")


def test_the_language_of_the_source_becomes_the_target() -> None:
    root = etree.fromstring(whole(paragraph(run("a", '<a:rPr lang="en-GB"/>'), run("b", '<a:rPr lang="fr-FR"/>'))))
    assert mark_languages(root, ENGLISH)
    assert [element.get("lang") for element in root.iter() if element.get("lang")] == ["de-DE", "fr-FR", "de-DE"]
    assert not mark_languages(root, ENGLISH)


def test_a_chart_has_one_mark_of_its_language() -> None:
    root = etree.fromstring(whole('<c:lang val="en-US"/>'))
    assert mark_languages(root, ENGLISH)
    assert root[0].attrib == {"val": "de-DE"}
