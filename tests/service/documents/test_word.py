import re
import warnings
import zipfile
from contextlib import suppress
from io import BytesIO

import docx
import pytest
from docx.shared import Inches
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lxml import etree

from service.base.errors import InvalidDocument, TooLarge
from service.documents.contents import ReadOptions
from service.documents.kinds import kind_of
from service.documents.office import word
from service.documents.wrapping import visible_text
from service.markup.html import parse
from tests.service.documents.translating import Opened, in_capitals, translated
from tests.service.documents.word_files import (
    RELATIONS,
    STRICT,
    W,
    by_hand,
    field,
    files_in,
    marks,
    opened,
    packed,
    paragraph,
    related,
    run,
    saved,
    zipped,
)

MAX_BYTES = 2**21
LIMIT = ReadOptions(MAX_BYTES)
ENGLISH = ReadOptions(MAX_BYTES, "en", "de")
BOLD, ITALIC = "<w:b/>", "<w:i/>"
A = "http://schemas.openxmlformats.org/drawingml/2006/main"
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415478da63f8cfc000000301010018dd8db0"
    "0000000049454e44ae426082"
)


def shown(data: bytes) -> list[list[tuple[str, str]]]:
    """Of each paragraph the runs, each with its properties and what it shows."""
    root = etree.fromstring(files_in(data)["word/document.xml"])
    found = []
    for one in root.iter("{*}p"):
        runs = []
        for each in one.iter("{*}r"):
            properties = "".join(etree.QName(child).localname for child in each.iterfind("{*}rPr/*"))
            inside = [child for child in each if etree.QName(child).localname != "rPr"]
            runs.append((properties, "".join(child.text or f"[{etree.QName(child).localname}]" for child in inside)))
        found.append(runs)
    return found


def texts(body: str) -> list[str]:
    return Opened(word.rewrite, by_hand(body), LIMIT).texts


def test_a_document_of_python_docx_keeps_all_but_its_words() -> None:
    document = docx.Document()
    document.add_heading("The title", 0)
    sentence = document.add_paragraph("The dog ", style="List Bullet")
    sentence.add_run("runs").bold = True
    sentence.add_run(" on ")
    sentence.add_run("the beach").italic = True
    sentence.add_run().add_picture(BytesIO(PIXEL), Inches(1))
    table = document.add_table(1, 2, style="Table Grid")
    table.cell(0, 0).text, table.cell(0, 1).text = "one\ttwo", "three\nfour"
    table.cell(0, 1).add_table(1, 1).cell(0, 0).text = "inside"
    document.sections[0].header.paragraphs[0].text = "above"
    document.sections[0].footer.paragraphs[0].text = "below"
    data = saved(document)
    new = translated(Opened(word.rewrite, data, LIMIT))
    read = opened(new)
    assert read.paragraphs[0].text == "THE TITLE"
    assert read.paragraphs[0].style == read.styles["Title"]
    runs = [(one.text, one.bold, one.italic) for one in read.paragraphs[1].runs]
    assert runs == [
        ("THE DOG ", None, None),
        ("RUNS", True, None),
        (" ON ", None, None),
        ("THE BEACH", None, True),
        ("", None, None),
    ]
    assert len(read.inline_shapes) == 1
    assert [cell.text for cell in read.tables[0].row_cells(0)] == ["ONE\tTWO", "THREE\nFOUR\n"]
    assert read.tables[0].cell(0, 1).tables[0].cell(0, 0).text == "INSIDE"
    assert read.sections[0].header.paragraphs[0].text == "ABOVE"
    assert read.sections[0].footer.paragraphs[0].text == "BELOW"
    before, after = files_in(data), files_in(new)
    assert [*after] == [*before]
    assert {name for name in before if before[name] != after[name]} == {
        "word/document.xml",
        "word/header1.xml",
        "word/footer1.xml",
    }
    with zipfile.ZipFile(BytesIO(data)) as one, zipfile.ZipFile(BytesIO(new)) as other:
        assert [info.date_time for info in one.infolist()] == [info.date_time for info in other.infolist()]


def test_runs_go_where_their_words_went() -> None:
    body = paragraph(run("the "), run("red", BOLD), run(" house"))
    new = translated(Opened(word.rewrite, by_hand(body), LIMIT), backwards=True)
    assert shown(new) == [[("", "HOUSE "), ("b", "RED"), ("", " THE")]]


def test_the_usual_style_of_a_paragraph_needs_no_tag() -> None:
    assert texts(paragraph(run("all of it is bold", BOLD))) == ["all of it is bold"]
    assert texts(paragraph(run("bold but for ", BOLD), run("this", ITALIC))) == ['bold but for <g0 id="0">this</g0>']
    new = translated(Opened(word.rewrite, by_hand(paragraph(run("bold but for ", BOLD), run("this", ITALIC))), LIMIT))
    assert shown(new) == [[("b", "BOLD BUT FOR "), ("i", "THIS")]]


def test_invisible_properties_part_no_words() -> None:
    parted = paragraph(
        run("sen", '<w:lang w:val="en-GB"/>'),
        '<w:proofErr w:type="spellStart"/>',
        run("ten", "<w:noProof/>"),
        "<w:r><w:lastRenderedPageBreak/><w:softHyphen/><w:t>ce</w:t></w:r>",
        run("s", '<w:rFonts w:hint="eastAsia"/>'),
        run(" 2", BOLD),
        run(" ", ITALIC),
        run("bold", BOLD),
    )
    assert texts(parted) == ['sentences<g0 id="0"> 2 bold</g0>']


def test_exact_places_of_letters_need_no_tag_and_most_letters_decide() -> None:
    spaced = [run(f"word{i} ", f'<w:spacing w:val="{i % 7 - 3}"/><w:kern w:val="{i % 3}"/>') for i in range(600)]
    data = by_hand(paragraph(*spaced, run("most letters " * 30, '<w:position w:val="2"/>')))
    [text] = Opened(word.rewrite, data, LIMIT).texts
    assert "<" not in text
    new = files_in(Opened(word.rewrite, data, LIMIT).write(["Wort"]))["word/document.xml"].decode()
    assert "".join(re.findall("<w:r>.*</w:r>", new)) == run("Wort", '<w:position w:val="2"/>')


LANG = '<w:lang w:val="{}" w:eastAsia="{}" w:bidi="ar-SA"/>'


@pytest.mark.parametrize(
    ("source", "target", "before", "after"),
    [
        ("en", "de", ("en-GB", "en-US"), ("de-DE", "de-DE")),
        ("en", "de", ("fr-FR", "en-US"), ("fr-FR", "en-US")),
        ("en", "pt-BR", ("en-US", "ja-JP"), ("pt-BR", "ja-JP")),
        ("en", "zh-Hant", ("en-US", "en-US"), ("zh-TW", "zh-TW")),
        ("en", "ja", ("en-US", "zh-CN"), ("ja-JP", "ja-JP")),
        ("ja", "en", ("en-US", "ja-JP"), ("en-US", "en-US")),
        ("ja", "de", ("en-US", "ja-JP"), ("de-DE", "de-DE")),
        ("ja", "de", ("en-US", "zh-CN"), ("en-US", "zh-CN")),
        (None, "de", ("en-US", "en-US"), ("en-US", "en-US")),
    ],
)
def test_marks_of_the_source_language_name_the_target(
    source: str | None, target: str, before: tuple[str, str], after: tuple[str, str]
) -> None:
    mark = LANG.format(*before)
    parts = {
        "word/styles.xml": part(f"<w:docDefaults><w:rPrDefault><w:rPr>{mark}</w:rPr></w:rPrDefault></w:docDefaults>"),
        "word/s.xml": part(mark.replace("w:lang", "w:themeFontLang")),
    }
    links = related(("styles", "styles.xml"), ("settings", "s.xml"))
    data = by_hand(paragraph(run("one ", mark)) + paragraph("<w:pPr/>" + run("two")), more=parts | links)
    contents = Opened(word.rewrite, data, ReadOptions(MAX_BYTES, source, target))
    assert contents.write(contents.texts) == data
    new = files_in(contents.write(["x" for _ in contents.texts]))
    for name in ("word/document.xml", *parts):
        marks = [dict(one.attrib) for one in etree.fromstring(new[name]).iter("{*}lang", "{*}themeFontLang")]
        assert [[*one.values()] for one in marks] == [[*after, "ar-SA"]]
    if before == after:
        assert new["word/styles.xml"].decode() == parts["word/styles.xml"]


def test_words_in_another_language_keep_their_mark() -> None:
    foreign = '<w:lang w:val="fr-FR"/>'
    unknown = '<w:lang w:val="x-none"/>'
    body = paragraph(run("He said ", '<w:lang w:val="en-US"/>'), run("bonjour", foreign), run(" to us", unknown))
    contents = Opened(word.rewrite, by_hand(body), ENGLISH)
    assert contents.texts == ['He said <g0 id="0">bonjour</g0> to us']
    new = files_in(contents.write(['Er sagte <g0 id="0">bonjour</g0> zu uns']))["word/document.xml"].decode()
    assert [*re.findall(r'w:val="(..-..)"/></w:rPr><w:t[^>]*>([^<]*)', new)] == [
        ("de-DE", "Er sagte "),
        ("fr-FR", "bonjour"),
        ("de-DE", " zu uns"),
    ]


@pytest.mark.parametrize(
    ("inside", "html"),
    [
        ("<w:hyperlink r:id='r1'>" + run("link", "<w:u/>") + "</w:hyperlink>", '<span id="0">link</span>'),
        (f"<w:hyperlink>{run('a ', BOLD)}{run('link')}</w:hyperlink>", '<span id="0"><g1 id="1">a </g1>link</span>'),
        ("<w:ins w:id='1'>" + run("new") + "</w:ins>", '<ins id="0">new</ins>'),
        ("<w:del w:id='1'><w:r><w:delText>old</w:delText></w:r></w:del>", '<wbr id="0">'),
        ("<w:sdt><w:sdtPr/><w:sdtContent>" + run("in") + "</w:sdtContent></w:sdt>", '<ins id="0">in</ins>'),
        ("<w:smartTag><w:smartTagPr/>" + run("in") + "</w:smartTag>", '<ins id="0">in</ins>'),
        ("<w:fldSimple w:instr=' PAGE '>" + run("3") + "</w:fldSimple>", '<x id="0"/>'),
        ("<w:fldSimple w:instr='HYPERLINK x'>" + run("to") + "</w:fldSimple>", '<span id="0">to</span>'),
        (field(" REF x ", run("Figure 3")), '<x id="0"/>'),
        (field("IF 1", field("PAGE", run("1"))), '<x id="0"/>'),
        (field(' HYPERLINK "u" ', run("to") + field("PAGEREF", run("7"))), '<span id="0">to<x id="1"/></span>'),
        ('<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>TOC</w:instrText></w:r>', '<wbr id="0">'),
        ('<w:r><w:fldChar w:fldCharType="end"/></w:r>', '<wbr id="0">'),
        ("<w:r><w:footnoteReference w:id='2'/></w:r>", '<wbr id="0">'),
        ("<w:bookmarkStart w:id='0' w:name='n'/><w:bookmarkEnd w:id='0'/>", '<wbr id="0">'),
        (marks("bookmark", 0).format(run("it")), '<span id="0">it</span>'),
        (marks("bookmark", 1).format(marks("bookmark", 2).format(run("a ")) + marks("perm", 1).format(run("2"))),
         '<span id="0"><span id="1">a </span><span id="2">2</span></span>'),
        ("<w:permStart w:id='1'/>" + marks("perm", 2).format(run("a") + "<w:permEnd w:id='1'/>"),
         '<span id="0"><span id="1">a</span></span>'),
        ("<w:permStart w:id='1'/>" + run("a ") + marks("perm", 2).format(run("2") + "<w:permEnd w:id='1'/>" + run("!")),
         '<span id="0">a <wbr id="1">2</span>!<wbr id="2">'),
        ("<w:r><w:tab/><w:t>x</w:t><w:br/></w:r>", '<br id="0">x<br id="1">'),
        (run("a    b  c"), 'a<br id="0">b  c'),
        (run("     ", "<w:u/>") + run("x"), '<br id="0">x'),
        ("<w:r><w:sym w:char='F0E0'/></w:r>", '<x id="0"/>'),
        (run("\uf028", "<w:rFonts w:ascii='Wingdings'/>"), '<x id="0"/>'),
        (run("go \uf0e0\uf0e0 on"), 'go <x id="0"/> on'),
        (run("hidden", "<w:vanish/>") + run("seen", "<w:vanish w:val='0'/>"), '<wbr id="0"><g1 id="1">seen</g1>'),
        ("<m:oMath><m:r><m:t>x</m:t></m:r></m:oMath>", '<x id="0"/>'),
        ("<w:r><w:drawing><wp:inline/></w:drawing></w:r>", '<img id="0">'),
        ("<w:r><w:drawing><wp:anchor/></w:drawing></w:r>", '<wbr id="0">'),
        ("<w:r><w:pict><v:rect/></w:pict></w:r>", '<img id="0">'),
        (run("2", "<w:vertAlign w:val='superscript'/>"), '<sup id="0">2</sup>'),
        (run("2", "<w:vertAlign w:val='subscript'/>"), '<sub id="0">2</sub>'),
        ("<w:r><w:t>non</w:t><w:noBreakHyphen/><w:t>stop</w:t></w:r>", "non-stop"),
        ("<w:r><w:t> not kept </w:t></w:r>", "not kept"),
        ("<w:r><w:ruby><w:rt>" + run("inu") + "</w:rt><w:rubyBase>" + run("犬") + "</w:rubyBase></w:ruby></w:r>", "犬"),
        (run("a &lt;b&gt; &amp;amp;"), "a &lt;b&gt; &amp;amp;"),
        ("<!-- c --><x:unknown/>", '<wbr id="0">'),
    ],
)  # fmt: skip
def test_content_of_a_paragraph_is_read_as_html(inside: str, html: str) -> None:
    body = paragraph(run("a long beginning "), inside, run(" and the end"))
    assert texts(body) == [f"a long beginning {html} and the end"]
    contents = Opened(word.rewrite, by_hand(body), LIMIT)
    once = translated(contents)
    assert Opened(word.rewrite, once, LIMIT).texts == [in_capitals(text, "html") for text in contents.texts]


def test_the_marks_of_a_range_stay_around_its_words() -> None:
    reference = "<w:r><w:commentReference w:id='1'/></w:r>"
    body = paragraph(run("a "), marks("commentRange", 1).format(run("red car")), reference, run(" is there"))
    new = files_in(translated(Opened(word.rewrite, by_hand(body), LIMIT), backwards=True))["word/document.xml"].decode()
    tags = re.findall(r"<w:(?:comment|t\b)[^>]*>[^<]*", new)
    assert [re.sub(r"<w:|<?[ >].*>|/>", "", tag) for tag in tags] == [
        *("tTHERE IS ", "commentRangeStart", "tCAR RED", "commentRangeEnd", "commentReference", "t A")
    ]


@pytest.mark.slow
def test_ranges_in_ranges_are_read_as_many_as_there_are() -> None:
    inside = "".join(f"<w:bookmarkStart w:id='{i}'/>{run('a ')}" for i in range(1_000))
    inside += "".join(f"{run('a ')}<w:bookmarkEnd w:id='{i}'/>" for i in reversed(range(1_000)))
    data = by_hand(paragraph(inside))
    assert counted(translated(Opened(word.rewrite, data, LIMIT))) == counted(data)


@pytest.mark.parametrize("group", ["<w:ins w:id='1'>{}</w:ins>", "<w:hyperlink r:id='r1'>{}</w:hyperlink>"])
def test_groups_that_touch_may_share_a_word(group: str) -> None:
    """Word begins a new group for another author or time, also inside of a word."""
    data = by_hand(paragraph(group.format(run("Hel")), group.format(run("lo, how are you?"))))
    [text] = Opened(word.rewrite, data, LIMIT).texts
    assert [passage.text for passage in parse(text).passages] == ["Hello, how are you?"]


def test_a_run_among_the_instructions_of_a_field_stays_there_and_is_not_translated() -> None:
    body = paragraph(run("see "), field(" HYPERLINK ", run("this"), run("u")), run(" now"))
    assert texts(body) == ['see <span id="0">this</span> now']
    new = translated(Opened(word.rewrite, by_hand(body), LIMIT), backwards=True)
    assert "".join(text for _, text in shown(new)[0]) == "NOW [fldChar] HYPERLINK u[fldChar]THIS[fldChar] SEE"


def test_inline_objects_that_a_translation_lost_are_kept() -> None:
    body = paragraph(run("one "), "<w:r><w:footnoteReference w:id='2'/></w:r>", "<w:r><w:tab/></w:r>", run("two"))
    new = Opened(word.rewrite, by_hand(body), LIMIT).write(["eins </b> zwei <g7>"[:14]])
    assert shown(new) == [[("", "eins "), ("", " zwei"), ("", "[footnoteReference]"), ("", "[tab]")]]


def test_spaces_that_part_columns_stay() -> None:
    body = paragraph(run("   Signed:     the man"), run("          ", "<w:u/>"))
    new = translated(Opened(word.rewrite, by_hand(body), LIMIT), backwards=True)
    assert shown(new) == [[("", "   "), ("", ": SIGNED"), ("", "     "), ("", "MAN THE"), ("u", "          ")]]


def test_a_line_break_within_a_sentence_is_not_read_and_comes_back_once() -> None:
    line_break = "<w:r><w:br/></w:r>"
    contents = Opened(
        word.rewrite, by_hand(paragraph(run("The yearly report "), line_break, run("of the town"))), LIMIT
    )
    assert contents.texts == ["The yearly report of the town"]
    assert shown(translated(contents)) == [[("", "THE YEARLY REPORT"), ("", "[br]"), ("", "OF THE TOWN")]]
    page_break = line_break.replace("<w:br/>", '<w:br w:type="page"/>')
    assert texts(paragraph(run("The report"), page_break, run("of the town"))) == ['The report<br id="0">of the town']


def test_a_hyphen_that_does_not_break_is_read_as_a_hyphen_and_comes_back() -> None:
    platform = "<w:r><w:t>Platform K</w:t><w:noBreakHyphen/><w:t>7 is closed, but not A-1.</w:t></w:r>"
    contents = Opened(word.rewrite, by_hand(paragraph(platform)), LIMIT)
    assert contents.texts == ["Platform K-7 is closed, but not A-1."]
    new = contents.write(["Gleis k-7 und K-71 sind zu, A-1 nicht."])
    assert "".join(text for _, text in shown(new)[0]) == "Gleis k[noBreakHyphen]7 und K-71 sind zu, A-1 nicht."


def test_choices_of_a_form_and_captions_of_tables_are_translated() -> None:
    item = "<w:listItem w:displayText='yes' w:value='1'/>"
    form = f"<w:sdt><w:sdtPr><w:dropDownList>{item}</w:dropDownList></w:sdtPr></w:sdt>"
    table = "<w:tbl><w:tblPr><w:tblCaption w:val='towns'/></w:tblPr></w:tbl>"
    new = files_in(translated(Opened(word.rewrite, by_hand(paragraph(form) + table), LIMIT)))[
        "word/document.xml"
    ].decode()
    assert re.findall(r'w:(?:displayText|value|val)="([^"]*)"', new) == ["center", "YES", "1", "TOWNS"]


def test_a_control_shows_the_translation_of_the_item_that_it_has_shown() -> None:
    """Also one around a paragraph, and one whose item has a value alone."""
    items = "<w:listItem w:displayText='red car' w:value='1'/><w:listItem w:value='blue'/>"

    def control(inside: str) -> str:
        properties = f"<w:sdtPr><w:comboBox>{items}</w:comboBox></w:sdtPr>"
        return f"<w:sdt>{properties}<w:sdtContent>{inside}</w:sdtContent></w:sdt>"

    body = [
        paragraph(run("It is the "), control(run("red ") + run("car", BOLD)), run(".")),
        control(paragraph(run("blue"))),
        paragraph(run("Like "), control(run("none of them"))),
    ]
    contents = Opened(word.rewrite, by_hand("".join(body)), LIMIT)
    assert contents.texts == [
        'It is the <x id="0"/>.', "red car", "blue", "red car", "blue",
        'Like <ins id="0">none of them</ins>', "red car", "blue",
    ]  # fmt: skip
    new = translated(contents)
    assert shown(new)[1:] == [[("", "BLUE")], [("", "LIKE "), ("", "NONE OF THEM")]]
    xml = files_in(new)["word/document.xml"].decode()
    assert re.findall(r'listItem ((?:w:\w+="[^"]*" ?)+)', xml)[:2] == [
        'w:displayText="RED CAR" w:value="1"', 'w:value="blue" w:displayText="BLUE"',
    ]  # fmt: skip
    assert re.findall(r"<w:t[ >][^<]*>([^<]*)<", xml)[:4] == ["IT IS THE ", "RED CAR", "", "."]


def test_a_check_box_stays_where_it_was() -> None:
    box = f"<w:sdt><w:sdtPr><w:checkbox/></w:sdtPr><w:sdtContent>{run('☐')}</w:sdtContent></w:sdt>"
    contents = Opened(word.rewrite, by_hand(paragraph(box, run(" I like it."))), LIMIT)
    assert contents.texts == ['<img id="0"> I like it.']
    xml = files_in(translated(contents))["word/document.xml"].decode()
    assert xml.index("<w:checkbox/>") < xml.index("☐</w:t>") < xml.index("I LIKE IT.")


def test_words_of_numbering_are_translated_and_bullets_are_not() -> None:
    levels = [("upperRoman", "Chapter %1."), ("decimal", "%1.%2"), ("bullet", "o")]
    inside = "".join(f"<w:lvl><w:numFmt w:val='{kind}'/><w:lvlText w:val='{text}'/></w:lvl>" for kind, text in levels)
    parts = {"word/n.xml": f'<w:numbering xmlns:w="{W}"><w:abstractNum>{inside}</w:abstractNum></w:numbering>'}
    data = by_hand(paragraph(run("3")), more={**parts, **related(("numbering", "n.xml"))})
    contents = Opened(word.rewrite, data, LIMIT)
    assert contents.texts == ["3", "Chapter %1."]
    xml = files_in(translated(contents))["word/n.xml"].decode()
    assert re.findall(r'lvlText w:val="([^"]*)"', xml) == ["CHAPTER %1.", "%1.%2", "o"]


def test_a_translated_control_does_not_show_the_data_it_was_bound_to() -> None:
    def control(inside: str) -> str:
        return f"<w:sdt><w:sdtPr><w:text/><w:dataBinding/></w:sdtPr><w:sdtContent>{inside}</w:sdtContent></w:sdt>"

    body = paragraph(control(run("one"))) + control(paragraph(run("two"))) + paragraph(control(run("3 %")))
    new = files_in(translated(Opened(word.rewrite, by_hand(body), LIMIT)))["word/document.xml"].decode()
    assert ("ONE" in new, "TWO" in new, new.count("<w:text/>"), new.count("dataBinding")) == (True, True, 3, 1)


def test_text_boxes_are_translated_and_stay_where_they_were() -> None:
    box = f"<w:txbxContent>{paragraph(run('in the box'))}</w:txbxContent>"
    drawing = f"<mc:AlternateContent><mc:Choice><w:drawing><wp:anchor>{box}</wp:anchor></w:drawing></mc:Choice>" \
              f"<mc:Fallback><w:pict>{box}</w:pict></mc:Fallback></mc:AlternateContent>"  # fmt: skip
    contents = Opened(word.rewrite, by_hand(paragraph(run("around "), f"<w:r>{drawing}</w:r>", run("it"))), LIMIT)
    assert contents.texts == ['around <wbr id="0">it', "in the box", "in the box"]
    xml = files_in(translated(contents))["word/document.xml"].decode()
    assert re.sub(r"<[^>]*>", " ", xml).split() == ["AROUND", *["IN", "THE", "BOX"] * 2, "IT"]
    assert xml.count("<w:p>") == 3


def part(inside: str) -> str:
    return f'<w:hdr xmlns:w="{W}">{inside}</w:hdr>'


def test_parts_are_found_by_relationships_whatever_their_names() -> None:
    parts = {
        "word/top.xml": part(paragraph(run("header"))),
        "word/parts/foot_a.xml": part(paragraph(run("footer"))),
        "notes/n.xml": part(f"<w:footnote>{paragraph('<w:r><w:footnoteRef/></w:r>', run(' A note.'))}</w:footnote>"),
        "word/remarks.xml": part(paragraph(run("comment"))),
        "word/header1.xml": part(paragraph(run("a header that nothing shows"))),
        "word/data.xml": f'<d xmlns:a="{A}"><a:p><a:r><a:t>box</a:t></a:r></a:p></d>',
        "word/other.xml": part(paragraph(run("a part of an unknown kind"))),
    }
    links = related(
        *[("header", "top.xml"), ("footer", "/word/parts/foot_a.xml"), ("footnotes", "../notes/n.xml")],
        *[("comments", "remarks.xml"), ("custom", "other.xml"), ("header", "missing.xml"), ("diagramData", "data.xml")],
    )
    contents = Opened(word.rewrite, by_hand(paragraph(run("text")), more=parts | links), LIMIT)
    assert contents.texts == ["text", "header", "footer", '<wbr id="0"> A note.', "comment", "box"]
    new = files_in(translated(contents))
    assert [name for name in parts if new[name].decode() == parts[name]] == ["word/header1.xml", "word/other.xml"]


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("word/top.xml", "Top.XML"),
        ("word/Top.xml", "top.xml"),
        ("word/kopf%20zeile.xml", "kopf%20zeile.xml"),
        ("word/kopf zeile.xml", "kopf%20zeile.xml"),
        ("word/kopf%C3%A9.xml", "kopf%c3%a9.xml"),
    ],
)
def test_capitals_and_percents_make_no_difference_in_names_of_parts(name: str, target: str) -> None:
    parts = {name: part(paragraph(run("header")))}
    contents = Opened(word.rewrite, by_hand(paragraph(run("text")), more=parts | related(("header", target))), LIMIT)
    assert contents.texts == ["text", "header"]
    assert b"HEADER" in files_in(translated(contents))[name]


def test_the_main_part_may_have_any_name() -> None:
    files = files_in(by_hand(paragraph(run("text"))))
    files["doc/main.xml"] = files.pop("word/document.xml")
    files["_rels/.rels"] = files["_rels/.rels"].replace(b"word/document.xml", b"doc/main.xml")
    with pytest.raises(InvalidDocument, match="its main part is missing"):
        Opened(word.rewrite, zipped({name: files[name] for name in files if name != "doc/main.xml"}))
    files["[Content_Types].xml"] = files["[Content_Types].xml"].replace(b"word/document.xml", b"doc/main.xml")
    assert kind_of("a.docx", zipped(files)).name == "docx"
    assert b"TEXT" in files_in(translated(Opened(word.rewrite, zipped(files))))["doc/main.xml"]


def test_parts_that_refer_to_each_other_are_read_once() -> None:
    cycle = related(("header", "a.xml")) | related(("header", "document.xml"), ("header", "a.xml"), source="word/a.xml")
    data = by_hand(paragraph(run("text")), more={"word/a.xml": part(paragraph(run("header")))} | cycle)
    assert Opened(word.rewrite, data, LIMIT).texts == ["text", "header"]


def test_the_title_and_the_subject_are_translated() -> None:
    core = (
        '<c:coreProperties xmlns:c="urn:c" xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>A &amp; B</dc:title>'
        "<dc:subject> </dc:subject><dc:creator>Ann</dc:creator><dc:language>en-US</dc:language></c:coreProperties>"
    )
    links = {
        "_rels/.rels": RELATIONS.replace(
            "</Relationships>", '<Relationship Target="c.xml" Type="x/core-properties"/></Relationships>'
        )
    }
    contents = Opened(word.rewrite, by_hand("", more={"c.xml": core} | links), ENGLISH)
    assert contents.texts == ["A &amp; B"]
    new = files_in(contents.write(["Ä &amp; B"]))["c.xml"].decode()
    assert new.partition("\n")[2] == core.replace("A &amp; B", "Ä &amp; B").replace("en-US", "de-DE")


def test_a_paragraph_without_words_and_a_translation_like_the_text_change_nothing() -> None:
    data = by_hand(paragraph(run(" ... ")) + "<w:p/>" + paragraph(run("word ")) + paragraph(run("more")))
    contents = Opened(word.rewrite, data, LIMIT)
    assert contents.texts == ["word ", "more"]
    assert contents.write(contents.texts) == data
    before, after = (
        etree.fromstring(files_in(one)["word/document.xml"])[0] for one in (data, contents.write(["word ", "x"]))
    )
    assert [etree.tostring(child) for child in before][:3] == [etree.tostring(child) for child in after][:3]


@pytest.mark.parametrize("namespace", [STRICT])
def test_a_strict_document_is_read_and_written(namespace: str) -> None:
    new = translated(Opened(word.rewrite, by_hand(paragraph(run("a "), run("b", BOLD), run(" c")), namespace), LIMIT))
    assert shown(new) == [[("", "A "), ("b", "B"), ("", " C")]]


def test_xml_in_utf_16_is_read() -> None:
    xml = files_in(by_hand(paragraph(run("été"))))["word/document.xml"].decode().replace("UTF-8", "UTF-16")
    contents = Opened(word.rewrite, packed(xml.encode("utf-16")), LIMIT)
    assert contents.texts == ["été"]
    assert "ÉTÉ" in files_in(translated(contents))["word/document.xml"].decode()


RUNS = st.sampled_from(
    [run("one "), run("two    ", BOLD), run(" ", ITALIC), run("3"), "<w:r><w:tab/></w:r>"]
    + [f"<w:{name} w:id='{i}'/>" for name in ("bookmarkStart", "bookmarkEnd") for i in (1, 2)]
    + [f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>' for kind in ("begin", "separate", "end")]
    + ["<w:r><w:instrText> HYPERLINK </w:instrText></w:r>", "<w:r><w:footnoteReference/></w:r>"]
)


def around(inside: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Links and content controls around others. (`st.recursive` sometimes did not end here.)"""
    formats = ["<w:hyperlink>{}</w:hyperlink>", "<w:sdt><w:sdtPr/><w:sdtContent>{}</w:sdtContent></w:sdt>"]
    return st.builds(str.format, st.sampled_from(formats), st.lists(inside, max_size=5).map("".join))


INSIDE = RUNS | around(RUNS | around(RUNS | around(RUNS)))


@pytest.mark.slow
@settings(max_examples=300)
@given(st.lists(INSIDE, max_size=8).map("".join), st.booleans())
@example(f"<w:hyperlink>{run('two', BOLD)}{field(' HYPERLINK ', run('one '), run('one '))}</w:hyperlink>", False)
@example(f"{run('3')}<w:hyperlink>{field(' PAGE ', '')}</w:hyperlink>{run('one ')}", False)
def test_nothing_but_text_is_changed_lost_or_doubled(inside: str, backwards: bool) -> None:
    data = by_hand(paragraph(inside))
    contents = Opened(word.rewrite, data, LIMIT)
    new = translated(contents, backwards)
    assert counted(new) == counted(data)
    assert sorted(letters(new).lower()) == sorted(letters(data))
    words, read = (
        [*filter(str.isupper, letters(new))],
        [*filter(str.isupper, visible_text("".join(contents.texts)).upper())],
    )
    assert (sorted(words) if backwards else words) == (sorted(read) if backwards else read)


def counted(data: bytes) -> dict[str, int]:
    names = [etree.QName(one).localname for one in etree.fromstring(files_in(data)["word/document.xml"]).iter()]
    return {name: names.count(name) for name in names if name not in ("r", "t", "rPr", "b", "i")}


def letters(data: bytes) -> str:
    texts = etree.fromstring(files_in(data)["word/document.xml"]).iter("{*}t")
    return "".join(text.text or "" for text in texts).replace(" ", "")


def test_groups_in_groups_are_read_as_deep_as_xml_may_be() -> None:
    for depth in (100, 240):
        inside = "<w:ins>" * depth + run("deep") + "</w:ins>" * depth
        assert (
            "DEEP"
            in files_in(translated(Opened(word.rewrite, by_hand(paragraph(inside)), LIMIT)))[
                "word/document.xml"
            ].decode()
        )


@pytest.mark.parametrize(
    ("xml", "part"),
    [
        ("<w:document", "word/document.xml is damaged: "),
        ("", "word/document.xml is damaged: "),
        ("<a>" * 1000 + "</a>" * 1000, "word/document.xml is damaged: "),
        ('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "word/document.xml has a document type definition"),
        ('<?xml version="1.0"?><!DOCTYPE a SYSTEM "http://example.org/a.dtd"><a/>', "has a document type definition"),
        ("<a>&b;</a>", "word/document.xml is damaged: Entity 'b' not defined"),
    ],
)
def test_xml_that_is_damaged_or_names_entities_is_refused(xml: str, part: str) -> None:
    for encoding in ("utf-8", "utf-16"):
        with pytest.raises(InvalidDocument, match=re.escape(part)):
            Opened(word.rewrite, packed(xml.encode(encoding)), LIMIT)


def test_a_zip_that_is_too_large_unpacked_is_refused_before_it_is_unpacked() -> None:
    bomb = by_hand("", more={"word/media/zeros.bin": bytes(MAX_BYTES)})
    assert len(bomb) < 10_000
    with pytest.raises(TooLarge, match=f"unpacked .* \\d+ bytes; the limit is {MAX_BYTES}"):
        Opened(word.rewrite, bomb, LIMIT)
    tags = packed("<a>" + "<b/>" * 1_000_001 + "</a>")
    with pytest.raises(TooLarge, match="1000003 tags; the limit is 1000000"):
        Opened(word.rewrite, tags, ReadOptions(2**23))
    many = zipped({f"{i}": "" for i in range(10_001)})
    with pytest.raises(TooLarge, match="10001 files"):
        Opened(word.rewrite, many, LIMIT)


def test_a_bomb_that_lies_about_its_size_is_not_unpacked_further() -> None:
    data = bytearray(by_hand("", more={"zeros.bin": bytes(MAX_BYTES)}))
    size = MAX_BYTES.to_bytes(4, "little")
    while (at := data.find(size)) >= 0:
        data[at : at + 4] = (10).to_bytes(4, "little")
    with pytest.raises(InvalidDocument, match="damaged zip: Bad CRC-32"):
        Opened(word.rewrite, bytes(data), LIMIT)


def test_a_damaged_zip_is_refused_wherever_it_is_damaged() -> None:
    data = by_hand(paragraph(run("text")))
    for end in range(4, len(data), 37):
        with pytest.raises(InvalidDocument, match="damaged zip"):
            Opened(word.rewrite, data[:end], LIMIT)
    for at in range(4, len(data), 11):
        broken = data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]
        with suppress(InvalidDocument, TooLarge):
            Opened(word.rewrite, broken, LIMIT)


def test_zips_that_no_office_writes_are_refused() -> None:
    with warnings.catch_warnings(action="ignore"):
        buffer = BytesIO()
        with zipfile.ZipFile(buffer, "w") as writing:
            writing.writestr("word/document.xml", "<a/>")
            writing.writestr("word/document.xml", "<b/>")
    with pytest.raises(InvalidDocument, match="the same name"):
        Opened(word.rewrite, buffer.getvalue(), LIMIT)
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_LZMA) as writing:
        writing.writestr("word/document.xml", "<a/>")
    with pytest.raises(InvalidDocument, match="compressed"):
        Opened(word.rewrite, buffer.getvalue(), LIMIT)
    encrypted = bytearray(packed("<a/>"))
    encrypted[encrypted.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(InvalidDocument, match="encrypted"):
        Opened(word.rewrite, bytes(encrypted), LIMIT)
