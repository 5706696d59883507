import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.base.errors import InvalidDocument
from service.documents.contents import ReadOptions
from service.documents.kinds import kind_of
from service.documents.office.powerpoint import PACKAGE_TYPES, rewrite
from tests.service.documents.office_files import A, C, P, R, office
from tests.service.documents.translating import Opened, translated
from tests.service.documents.word_files import files_in, related

ENGLISH = ReadOptions(source="en", target="de")
PRESENTATION = "application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml"
XMLNS = f'xmlns:a="{A}" xmlns:p="{P}" xmlns:r="{R}" xmlns:c="{C}"'


def paragraph(text: str, properties: str = "") -> str:
    return f"<a:p><a:r><a:rPr{properties}/><a:t>{text}</a:t></a:r></a:p>"


def shape(text: str, placeholder: str = "", description: str = "") -> str:
    return (
        f'<p:sp><p:nvSpPr><p:cNvPr id="2" name="Shape 1" descr="{description}"/><p:nvPr>{placeholder}</p:nvPr>'
        f"</p:nvSpPr><p:txBody>{paragraph(text)}</p:txBody></p:sp>"
    )


def slide(*shapes: str, name: str = "sld") -> str:
    return f"<p:{name} {XMLNS}><p:cSld><p:spTree>{''.join(shapes)}</p:spTree></p:cSld></p:{name}>"


def presentation(slides: dict[str, str], more: dict[str, str] | None = None, ids: str = "") -> bytes:
    """A presentation with these slides, by the names of their parts, and other parts."""
    main = f'<p:presentation {XMLNS}><p:sldIdLst>{ids}</p:sldIdLst><a:defRPr lang="en-US"/></p:presentation>'
    links = related(*(("slide", f"/{name}") for name in slides), source="deck/show.xml")
    return office("deck/show.xml", PRESENTATION, {"deck/show.xml": main, **links, **slides, **(more or {})})


def text_of(data: bytes, part: str) -> list[str]:
    return re.findall(r"<[ac]:(?:t|v)>([^<]*)<", files_in(data)[part].decode())


def test_texts_of_all_parts_of_a_slide_are_translated_and_names_and_numbers_are_not() -> None:
    table = f"<a:tbl><a:tr><a:tc><a:txBody>{paragraph('a cell')}</a:txBody></a:tc></a:tr></a:tbl>"
    group = f"<p:grpSp>{shape('in a group', description='a picture')}</p:grpSp>"
    chart = (
        f"<c:chartSpace {XMLNS}><c:title><c:tx><c:rich>{paragraph('the sales')}</c:rich></c:tx></c:title><c:ser><c:cat>"
        "<c:strRef><c:f>Sheet1!A1</c:f><c:strCache><c:pt><c:v>east</c:v></c:pt></c:strCache></c:strRef></c:cat><c:val>"
        "<c:numRef><c:numCache><c:pt><c:v>5</c:v></c:pt></c:numCache></c:numRef></c:val></c:ser></c:chartSpace>"
    )
    more = {
        **related(("chart", "c.xml"), ("notesSlide", "n.xml"), ("comments", "k.xml"), ("diagramData", "d.xml"),
                  ("tags", "t.xml"), source="one.xml"),
        "c.xml": chart,
        "n.xml": slide(shape("the notes"), name="notes"),
        "k.xml": f"<p:cmLst {XMLNS}><p:cm><p:text>a comment</p:text></p:cm></p:cmLst>",
        "d.xml": f"<p:any {XMLNS}>{paragraph('a step')}</p:any>",
        "t.xml": slide(shape("a tag")),
    }  # fmt: skip
    data = presentation({"one.xml": slide(shape("the title"), table, group)}, more)
    contents = Opened(rewrite, data)
    expected = ["the title", "a cell", "a picture", "in a group"]
    expected += ["the sales", "east", "5", "the notes", "a comment", "a step"]
    assert sorted(contents.texts) == sorted(set(expected) - {"5"})
    new = translated(contents)
    assert text_of(new, "one.xml") == ["THE TITLE", "A CELL", "IN A GROUP"]
    assert text_of(new, "c.xml") == ["THE SALES", "EAST", "5"]
    assert 'name="Shape 1" descr="A PICTURE"' in files_in(new)["one.xml"].decode()
    assert "<p:text>A COMMENT</p:text>" in files_in(new)["k.xml"].decode()
    assert files_in(new)["t.xml"] == files_in(data)["t.xml"]


def test_the_tip_of_a_link_is_translated_with_the_text_around_it() -> None:
    link = paragraph("the house").replace("<a:rPr/>", '<a:rPr><a:hlinkClick r:id="r1" tooltip="a tip"/></a:rPr>')
    contents = Opened(rewrite, presentation({"one.xml": slide(link)}))
    assert contents.texts == ["the house", "a tip"]
    new = translated(contents)
    assert text_of(new, "one.xml") == ["THE HOUSE"]
    assert 'tooltip="A TIP"' in files_in(new)["one.xml"].decode()


def test_an_escaped_line_end_in_a_sentence_is_not_read_and_comes_back() -> None:
    contents = Opened(rewrite, presentation({"one.xml": slide(shape("The yearly report_x000B_of the town"))}))
    assert contents.texts == ["The yearly report of the town"]
    assert text_of(translated(contents), "one.xml") == ["THE YEARLY REPORT", "_x000B_", "OF THE TOWN"]


def test_slides_are_read_in_the_order_of_the_presentation_and_each_once() -> None:
    slides = {f"s{i}.xml": slide(shape(f"slide {i}")) for i in range(3)}
    more = {**related(("slide", "s1.xml"), ("slide", "s0.xml"), source="s0.xml")}
    ids = '<p:sldId r:id="r2"/><p:sldId r:id="r0"/><p:sldId r:id="r1"/>'
    assert Opened(rewrite, presentation(slides, more, ids)).texts == ["slide 2", "slide 0", "slide 1"]


def test_layouts_and_masters_are_read_but_for_their_placeholders() -> None:
    behind = slide(shape("click to edit", '<p:ph type="title"/>'), shape("the company"))
    more = {
        **related(("slideLayout", "layout.xml"), source="one.xml"),
        **related(("slideMaster", "master.xml"), source="layout.xml"),
        **related(("slideLayout", "unused.xml"), source="master.xml"),
        **dict.fromkeys(("layout.xml", "master.xml", "unused.xml"), behind),
    }
    data = presentation({"one.xml": slide(shape("the title", '<p:ph type="title"/>'))}, more)
    assert Opened(rewrite, data).texts == ["the title", "the company", "the company"]


def test_marks_of_the_source_language_become_marks_of_the_target_also_beside_the_slides() -> None:
    english, french = paragraph("a dog", ' lang="en-GB"'), paragraph("un chien", ' lang="fr-FR"')
    body = slide(f"<p:sp>{english}{french}</p:sp>")
    new = files_in(translated(Opened(rewrite, presentation({"one.xml": body}), ENGLISH)))
    assert re.findall('lang="([^"]*)"', new["one.xml"].decode()) == ["de-DE", "fr-FR"]
    assert re.findall('lang="([^"]*)"', new["deck/show.xml"].decode()) == ["de-DE"]


@pytest.mark.parametrize("media_type", sorted(PACKAGE_TYPES))
def test_presentations_are_known_by_the_type_of_their_main_part(media_type: str) -> None:
    data = office("any/name.xml", media_type, {"any/name.xml": slide()})
    assert kind_of("a.zip", data).name == "pptx"


RUN = st.builds(
    lambda text, properties: f"<a:r><a:rPr{properties}/><a:t>{text}</a:t></a:r>",
    st.sampled_from(["one ", "two", " ", "3"]),
    st.sampled_from(["", ' b="1"', ' lang="en-US"']),
)


@given(st.lists(RUN | st.sampled_from(["<a:br/>", '<a:fld id="{1}"><a:t>9</a:t></a:fld>']), max_size=8), st.booleans())
def test_nothing_but_text_is_changed_lost_or_doubled(runs: list[str], backwards: bool) -> None:
    data = presentation({"one.xml": slide(f"<p:sp><a:p><a:pPr/>{''.join(runs)}<a:endParaRPr/></a:p></p:sp>")})
    contents = Opened(rewrite, data)
    assert contents.write(contents.texts) == data
    before, after = (files_in(file)["one.xml"].decode() for file in (data, translated(contents, backwards)))
    assert re.findall(r"<a:(?:pPr|br|fld|endParaRPr)\b", before)[-1] == re.findall(r"<a:\w+", after)[-1]
    letters = [
        sorted("".join(re.findall(r"<a:t[^>]*>([^<]*)<", xml)).lower().replace(" ", "")) for xml in (before, after)
    ]
    assert letters[0] == letters[1]
    assert before.count("<a:br/>") == after.count("<a:br/>")


def letters(xml: str) -> list[str]:
    return sorted("".join(re.findall(r"<a:t[^>]*>([^<]*)<", xml)).lower().replace(" ", ""))


def test_hostile_presentations_are_refused_or_read() -> None:
    with pytest.raises(InvalidDocument, match=r"one\.xml is damaged"):
        Opened(rewrite, presentation({"one.xml": "<a>"}))
    with pytest.raises(InvalidDocument, match="document type definition"):
        Opened(rewrite, presentation({"one.xml": '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'}))
    with pytest.raises(InvalidDocument, match="its main part is missing"):
        Opened(rewrite, office("deck/show.xml", PRESENTATION, {}))
    links = related(*[("slide", "one.xml")] * 20_000, source="one.xml")
    assert Opened(rewrite, presentation({"one.xml": slide(shape("a dog"))}, links)).texts == ["a dog"]
