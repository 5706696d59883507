"""Documents that are zips of XML: Word, PowerPoint, Excel, OpenDocument and EPUB."""

import io
import zipfile
from collections.abc import Mapping
from random import Random

from tests.fuzz.documents import ALLOWED, mutate_document, read_document, seed
from tests.fuzz.mutation import mutate_zip
from tests.fuzz.structures import Grow, nested, repeated
from tests.fuzz.target import MutateBytes, Target
from tests.service.documents import test_epub, test_excel, test_open_document, test_powerpoint, test_word
from tests.service.documents.open_document_files import content, open_document
from tests.service.documents.word_files import by_hand, field, marks, paragraph, related, run, zipped

FORMULA = '<row><c t="str"><v>yes</v></c><c t="s"><f>IF(A1="yes",T[a b],1)</f><v>0</v></c><c t="inlineStr"><is><t>x</t></is></c></row>'
HEADERS = (
    "<headerFooter><oddHeader>&amp;LA page &amp;P&amp;R&amp;12 b</oddHeader></headerFooter>"
    '<dataValidation promptTitle="a b" prompt="c d"/>'
)
CELLS = (
    '<table:table><table:table-row><table:table-cell office:value-type="string" office:string-value="a dog"><text:p>a dog'
    '</text:p></table:table-cell><table:table-cell table:formula="of:=IF([.A1]=&quot;a&quot;;1)"/></table:table-row></table:table>'
)


def _seeds() -> list[bytes]:
    chart = {
        **related(
            ("header", "h.xml"), ("chart", "c.xml"), ("core-properties", "/core.xml"), source="word/document.xml"
        ),
        "word/h.xml": f'<w:hdr xmlns:w="{test_word.W}"><w:p>{run("a header")}</w:p></w:hdr>',
    }
    word = by_hand(
        paragraph(run("The "), run("red", test_word.BOLD), "<w:r><w:br/><w:t>dog</w:t><w:tab/></w:r>", run("one-two"))
        + paragraph(field(' HYPERLINK "http://a.b" ', run("a link")), marks("bookmark", 1).format(run("in it")))
        + paragraph('<w:hyperlink r:id="r1">' + run("here") + "</w:hyperlink>", "<w:ins>" + run("new") + "</w:ins>")
        + "<w:tbl><w:tr><w:tc><w:p>" + run("a cell   b") + "</w:p></w:tc></w:tr></w:tbl>"
        + paragraph('<w:r><w:lang w:val="en-US"/><w:t>A</w:t><w:noBreakHyphen/><w:t>B</w:t><w:sym/></w:r>'),
        more=chart,
    )  # fmt: skip
    slides = test_powerpoint.presentation(
        {"one.xml": test_powerpoint.slide(test_powerpoint.shape("the title", description="a picture"))},
        {**related(("notesSlide", "n.xml"), source="one.xml"), "n.xml": test_powerpoint.slide(name="notes")},
    )
    excel = test_excel.workbook(
        test_excel.string("Name"), test_excel.string("Two words\nlines"),
        "<si>" + test_excel.run("a ") + test_excel.run("red", test_excel.BOLD) + "</si>",
        rows=FORMULA, after=HEADERS, links=test_excel.TABLE, more=test_excel.table("Name", "Two"),
    )  # fmt: skip
    odt = test_open_document.odt(
        test_open_document.paragraph(
            "the " + test_open_document.span("B", "red") + '<text:s text:c="4"/>dog<text:line-break/>'
            '<text:a xlink:href="x">link</text:a><text:bookmark-start text:name="m"/>in<text:bookmark-end text:name="m"/>'
            "<text:note><text:note-body><text:p>a note</text:p></text:note-body></text:note>"
        )
    )
    ods = open_document(content(CELLS, kind="spreadsheet"), ".ods")
    odp = open_document(
        content('<draw:page><draw:frame><draw:text-box><text:p>a title</text:p></draw:text-box><svg:desc>a picture</svg:desc></draw:frame></draw:page>', kind="presentation"),
        ".odp",
    )  # fmt: skip
    return [
        seed("docx fr", word), seed("docx ja backwards", word), seed("pptx fr backwards", slides),
        seed("xlsx ru signs", excel), seed("odt fr backwards", odt), seed("ods ar signs", ods), seed("odp fr", odp),
        seed("epub fr", test_epub.book()),
    ]  # fmt: skip


def _mutate_zip(data: bytes, random: Random, mutate_bytes: MutateBytes) -> bytes:
    return mutate_zip(data, random, mutate_bytes)


def _word(grow: Grow, before: str = "<w:p>", after: str = "</w:p>") -> Grow:
    """Return documents with a structure in their body."""
    return lambda size: seed("docx ru", by_hand(before + grow(size).decode() + after))


def _excel_cell(grow: Grow) -> Grow:
    return lambda size: seed("xlsx ru", test_excel.workbook(grow(size).decode()))


def _excel(grow: Grow, before: str = "", after: str = "") -> Grow:
    """Return workbooks with a structure in their sheet."""
    return lambda size: seed(
        "xlsx ru", test_excel.workbook(test_excel.string("a dog"), rows=before + grow(size).decode() + after)
    )


def _slide(grow: Grow) -> Grow:
    return lambda size: seed(
        "pptx ru", test_powerpoint.presentation({"one.xml": test_powerpoint.slide(grow(size).decode())})
    )


def _text(grow: Grow, before: str = "<text:p>", after: str = "</text:p>") -> Grow:
    return lambda size: seed("odt ru", test_open_document.odt(before + grow(size).decode() + after))


def _sheet(grow: Grow) -> Grow:
    return lambda size: seed("ods ru", open_document(content(grow(size).decode(), kind="spreadsheet"), ".ods"))


def _book(changed: Mapping[str, Grow]) -> Grow:
    return lambda size: seed("epub ru", test_epub.book({name: grow(size).decode() for name, grow in changed.items()}))


def _many_files(kind: str, data: bytes, name: str, content: bytes = b"") -> Grow:
    """Return a zip with further files, about 100 bytes each."""

    def grow(size: int) -> bytes:
        buffer = io.BytesIO(data)
        with zipfile.ZipFile(buffer, "a") as writing:
            for i in range(size // 100):
                writing.writestr(name.replace("§", str(i)), content)
        return seed(f"{kind} ru", buffer.getvalue())

    return grow


def _long_name(size: int) -> bytes:
    """Return a zip with a name in an old encoding, which would be longer in UTF-8."""
    n = min(size // 2, 40_000)
    name = b"_" * n
    data = _many_files("docx", by_hand(paragraph(RUN)), name.decode())(100)
    return data.replace(name, b"\x82" * n)


def _same_name(name: str) -> Grow:
    """Return a zip whose directory has one file of a megabyte again and again."""

    def grow(size: int) -> bytes:
        data = zipped({name: bytes(2**20 - 1)})
        end = data.rindex(b"PK\5\6")
        begin = data.index(b"PK\1\2")
        directory = data[begin:end]
        n = max(1, size // len(directory))
        n = min(n, 65_000)
        directory *= n
        last = b"PK\5\6\0\0\0\0" + n.to_bytes(2, "little") * 2 + len(directory).to_bytes(4, "little")
        return seed("docx ru", data[:begin] + directory + last + begin.to_bytes(4, "little") + b"\0\0")

    return grow


RUN, BOLD_RUN = run("a dog "), run("red ", "<w:b/>")
TEXT_RUN = "<w:r><w:t>a</w:t>{}</w:r>"
GROWN = {
    "word paragraphs": _word(repeated("", paragraph(RUN)), "", ""),
    "word runs": _word(repeated("", RUN)),
    "word styles": _word(repeated("", RUN + BOLD_RUN)),
    "word different styles": _word(repeated("", run("a ", '<w:sz w:val="§"/>'))),
    "word breaks": _word(repeated("", "<w:r><w:t>a</w:t><w:br/></w:r>")),
    "word breaks in a sentence": _word(repeated("", "<w:r><w:t>and a dog of the</w:t><w:br/></w:r>")),
    "word breaks alone": _word(repeated("", "<w:r><w:br/></w:r>")),
    "word tabs": _word(repeated("", "<w:r><w:t>a</w:t><w:tab/></w:r>")),
    "word nested": _word(nested("", "<w:ins>", run("deep"), "</w:ins>")),
    "word text boxes": lambda size: seed("docx ru", by_hand(
        "<w:p><w:r><w:pict><w:txbxContent>" * 60 + paragraph(RUN) * (size // 150) + "</w:txbxContent></w:pict></w:r></w:p>" * 60
    )),
    "word bookmarks": _word(repeated("", marks("bookmark", 1).format(RUN))),
    "word nested bookmarks": _word(nested("", "<w:bookmarkStart w:id='1'/>", RUN, "<w:bookmarkEnd w:id='1'/>")),
    "word different bookmarks": _word(repeated("", "<w:bookmarkStart w:id='§'/>" + RUN)),
    "word fields": _word(repeated("", field("PAGE", RUN))),
    "word open fields": _word(repeated("", '<w:r><w:fldChar w:fldCharType="begin"/></w:r>' + RUN)),
    "word links": _word(repeated("", f"<w:hyperlink>{RUN}</w:hyperlink>")),
    "word proofs": _word(repeated("", "<w:proofErr/>" + RUN)),
    "word hyphens": _word(repeated("", "<w:r><w:t>a</w:t><w:noBreakHyphen/></w:r>")),
    "word hyphens in a text": _word(repeated("<w:r><w:t>", "a-", "</w:t></w:r>")),
    "word spaces": _word(repeated("<w:r><w:t xml:space='preserve'>", "a     ", "</w:t></w:r>")),
    "word attributes": _word(repeated("<w:r ", 'w:a§="b" ', "><w:t>a</w:t></w:r>")),
    "word properties": _word(repeated("<w:r><w:rPr>", '<w:a w:b="§"/>', "</w:rPr><w:t>a</w:t></w:r>")),
    "word one long text": _word(repeated("<w:r><w:t>", "a dog ", "</w:t></w:r>")),
    "word one long word": _word(repeated("<w:r><w:t>", "a", "</w:t></w:r>")),
    "word controls": _word(repeated("", f"<w:sdt><w:sdtPr><w:dataBinding/></w:sdtPr><w:sdtContent>{RUN}</w:sdtContent></w:sdt>")),
    "word namespaces": _word(repeated("", "<w:r xmlns:a§='urn:§'><w:t>a </w:t></w:r>")),
    "word references": _word(repeated("<w:r><w:t>", "&amp;", "</w:t></w:r>")),
    "word comments": _word(repeated("", "<!-- a -->", RUN)),
    "word links to parts": lambda size: seed("docx ru", by_hand("", more=related(*(("header", f"h{i}.xml") for i in range(size // 100))))),
    "word parts": lambda size: seed("docx ru", by_hand("", more={
        **related(*(("header", f"h{i}.xml") for i in range(size // 300))),
        **{f"word/h{i}.xml": f'<w:p xmlns:w="{test_word.W}">{RUN}</w:p>' for i in range(size // 300)},
    })),
    "word links in a circle": lambda size: seed("docx ru", by_hand("", more={
        key: value for i in range(size // 400) for key, value in {
            **related(("chart", f"c{i + 1}.xml"), ("chart", f"c{i}.xml"), source=f"word/c{i}.xml"),
            f"word/c{i}.xml": "<a/>",
        }.items()
    } | related(("chart", "c0.xml")))),
    "zip of files": _many_files("docx", by_hand(paragraph(RUN)), "a§"),
    "zip of a long name": _long_name,
    "zip of one name": _same_name("mimetype"),
    "zip of content types": _same_name("[Content_Types].xml"),
    "excel strings": _excel_cell(repeated("", "<si><t>a dog §</t></si>")),
    "excel lines": _excel_cell(repeated("<si><t>", "a\n", "</t></si>")),
    "excel cells of lines": _excel_cell(repeated("", "<si><t>" + "a\n" * 16_000 + "</t></si>")),
    "excel cells of columns": _excel_cell(repeated("", "<si><t>" + "a\t" * 16_000 + "</t></si>")),
    "excel runs": _excel_cell(repeated("<si>", "<r><t>a</t></r>", "</si>")),
    "excel quoted str": _excel_cell(repeated("<si><t>", '"str"', "</t></si>")),
    "excel quoted inline": _excel(repeated("", '<c t="str" ')),
    "excel cells": _excel(repeated("", '<c t="inlineStr"><is><t>a dog</t></is></c>'), "<row>", "</row>"),
    "excel values": _excel(repeated("", '<c t="str"><v>a dog</v></c>'), "<row>", "</row>"),
    "excel formulas": _excel(repeated("", '<c><f>IF(A1="a§",1)</f></c>'), "<row>", "</row>"),
    "excel one formula": _excel(repeated("<c><f>", '"a""', "</f></c>"), "<row>", "</row>"),
    "excel brackets": _excel(repeated("<c><f>", "[a", "</f></c>"), "<row>", "</row>"),
    "excel apostrophes": _excel(repeated("<c><f>[", "'a", "</f></c>"), "<row>", "</row>"),
    "excel commas": _excel(repeated('<c><f>"', "a,", '"</f></c>'), "<row>", "</row>"),
    "excel columns": lambda size: seed("xlsx ru", test_excel.workbook(
        *(test_excel.string(f"a name {i}") for i in range(size // 100)), links=test_excel.TABLE,
        more=test_excel.table(*(f"a name {i}" for i in range(size // 100))),
    )),
    "excel columns of one name": lambda size: seed("xlsx ru", test_excel.workbook(
        *(test_excel.string("a name") for _ in range(size // 100)), links=test_excel.TABLE,
        more=test_excel.table(*(["a name"] * (size // 100))),
    )),
    "powerpoint shapes": _slide(repeated("", test_powerpoint.shape("a dog"))),
    "powerpoint paragraphs": _slide(repeated("", test_powerpoint.paragraph("a dog"))),
    "powerpoint runs": _slide(repeated("<a:p>", "<a:r><a:t>a dog</a:t></a:r>", "</a:p>")),
    "powerpoint breaks": _slide(repeated("<a:p>", "<a:r><a:t>and a</a:t></a:r><a:br/>", "</a:p>")),
    "powerpoint groups": _slide(nested("", "<p:grpSp>", test_powerpoint.shape("a dog"), "</p:grpSp>")),
    "odt paragraphs": _text(repeated("", "<text:p>a dog</text:p>"), "", ""),
    "odt spans": _text(repeated("", '<text:span text:style-name="B">a</text:span> b ')),
    "odt nested spans": _text(nested("", '<text:span text:style-name="B">', "a", "</text:span>")),
    "odt texts in nested spans": _text(repeated("<text:span>" * 200, 'a<text:s text:c="3"/>', "</text:span>" * 200)),
    "odt styles in nested spans": _text(repeated("<text:span>" * 200, 'a<text:span text:style-name="B">b</text:span>', "</text:span>" * 200)),
    "odt spaces": _text(repeated("", 'a<text:s text:c="3"/>')),
    "odt short spaces": _text(repeated("", "a <text:s/>")),
    "odt breaks": _text(repeated("", "and a<text:line-break/>")),
    "odt marks": _text(repeated("", '<text:bookmark text:name="§"/>a ')),
    "odt comments": _text(repeated("", "<!-- a -->a ")),
    "odt long text": _text(repeated("", "a  dog  ")),
    "odt descriptions": _text(repeated("", "<svg:desc>a dog</svg:desc>"), "<text:p/>", ""),
    "odt styles": lambda size: seed("odt ru", open_document(content("<text:p>a</text:p>", '<style:style style:name="§" style:family="text"/>' * (size // 60)))),
    "ods cells": _sheet(repeated("<table:table-row>", "<table:table-cell><text:p>a dog</text:p></table:table-cell>", "</table:table-row>")),
    "ods formulas": _sheet(repeated("<table:table-row>", '<table:table-cell table:formula="=&quot;a§&quot;"><text:p>a dog</text:p></table:table-cell>', "</table:table-row>")),
    "odt entries": lambda size: seed("odt ru", open_document(content("<text:p>a</text:p>"), entries='<manifest:file-entry manifest:full-path="a/" manifest:media-type="application/vnd.oasis.x"/>' * (size // 90))),
    "epub files named": _book({"META-INF/container.xml": repeated("<container>", '<rootfile full-path="O B/book.opf"/>', "</container>")}),
    "epub files named and long": _book({
        "META-INF/container.xml": repeated("<container>", '<rootfile full-path="O B/book.opf"/>', "</container>"),
        "O B/book.opf": repeated("<package>", '<item id="a" href="b"/>', "</package>"),
    }),
    "epub items": _book({"O B/book.opf": repeated("<package>", '<item id="a§" href="notes.xhtml" media-type="application/xhtml+xml"/>', "</package>")}),
    "epub spine": _book({"O B/book.opf": repeated('<package><item id="a" href="x"/>', '<itemref idref="a"/>', "</package>")}),
    "epub titles": _book({"O B/book.opf": repeated("<package>", "<dc:title>a dog</dc:title>", "</package>")}),
    "epub page": _book({"notes.xhtml": repeated("<html>", "<p>a dog</p>", "</html>")}),
    "epub attributes": _book({"O B/toc.ncx": repeated("<ncx ", "xml:lang='en' ", "></ncx>")}),
    "epub quotes": _book({"O B/toc.ncx": repeated("<ncx>", "<a b='", "</ncx>")}),
    "epub texts": _book({"O B/toc.ncx": repeated("<ncx>", "<text>a dog</text>", "</ncx>")}),
}  # fmt: skip

TARGET = Target(
    read=read_document,
    seeds=_seeds,
    allowed=ALLOWED,
    mutate=mutate_document(_mutate_zip),
    words=[
        b"<w:br/>", b"<w:tab/>", b"xml:space='preserve'", b"<w:vanish/>", b"<w:noBreakHyphen/>", b"<w:p/>", b"w:val='en-US'",
        b"HYPERLINK", b"<a:br/>", b"<text:s text:c='9'/>", b"<text:line-break/>", b"text:name='m'", b"_x000a_", b"_x000D_",
        b"&amp;P", b"&amp;K", b"&#x2011;", b"&#xD;", b"TargetMode='External'", b"../", b"%41", b"mimetype", b"zxx", b"-9",
    ],
    grown=GROWN,
)  # fmt: skip
