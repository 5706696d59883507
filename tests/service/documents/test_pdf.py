import re
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.base.errors import InvalidDocument, TooLarge
from service.documents.contents import ReadOptions
from service.documents.pdf import pdf
from service.documents.pdf.words import read_pages
from tests.service.documents.pdf_files import Text, paragraph, pdf_from, pdf_of, with_objects
from tests.service.documents.translating import Opened, translated


def body(data: bytes) -> str:
    """What the file shows, as HTML."""
    contents = Opened(pdf.rewrite, data)
    html = contents.write(contents.texts).decode()
    return html.partition("<body>\n")[2].partition("\n</body>")[0]


REPORT = pdf_of(
    [
        Text("The harbour", size=24, y=750),
        *paragraph(
            "The harbour was built by some merchants who came from the north-\nern islands & it is < 9 m deep.", y=700
        ),
        *paragraph("This is the second paragraph, and it is long enough for two whole\nlines.", y=660),
        Text("What to see", y=620, is_bold=True),
        Text("•", 80, 600),
        Text("A lighthouse", 100, 600),
        Text("•", 80, 585),
        Text("A museum, which has a collection of boats that were built in the", 100, 585),
        Text("town", 100, 570),
        Text("3. Open it.", 80, 550),
        Text("4. Close it.", 80, 535),
        Text("Town", 72, 500),
        Text("People", 200, 500),
        Text("Old town", 72, 485),
        Text("1,200", 200, 485),
        Text("It is near the", 300, 485),
        Text("river", 300, 471),
        Text("New town", 72, 456),
        Text("34,000", 200, 456),
    ]
)
SHOWN = """<h1>The harbour</h1>
<p>The harbour was built by some merchants who came from the northern islands &amp; it is &lt; 9 m deep.</p>
<p>This is the second paragraph, and it is long enough for two whole lines.</p>
<h2>What to see</h2>
<ul>
<li>A lighthouse</li>
<li>A museum, which has a collection of boats that were built in the town</li>
</ul>
<ol start="3">
<li>Open it.</li>
<li>Close it.</li>
</ol>
<table>
<tr><td>Town</td><td>People</td><td></td></tr>
<tr><td>Old town</td><td>1,200</td><td>It is near the river</td></tr>
<tr><td>New town</td><td>34,000</td><td></td></tr>
</table>"""


def test_headings_paragraphs_lists_and_tables_are_told_apart() -> None:
    assert body(REPORT) == SHOWN


def test_every_text_is_translated_and_the_file_says_its_language() -> None:
    html = translated(Opened(pdf.rewrite, REPORT, ReadOptions(target="fr"))).decode()
    assert '<html lang="fr">' in html
    assert "<title>THE HARBOUR</title>" in html
    assert not re.search("[a-z]", re.sub(r"<style>.*</style>|<[^>]*>|&\w+;", "", html))


def test_headers_footers_and_page_numbers_are_left_out() -> None:
    page = paragraph("This is a line of text that is long enough to go on below, with a\nword.", y=400)
    pages = [
        [
            Text("Annual report", y=770),
            Text(f"Chapter {1 + i // 2}", y=755),
            Text(f"{i + 1}", 500, 755),
            *page,
            Text(f"Page {i + 1} of 6", y=30),
        ]
        for i in range(6)
    ]
    assert body(pdf_of(*pages)).count("<p>") == 6
    assert not re.search("Annual|Chapter|Page", body(pdf_of(*pages)))
    assert "Annual report" in body(pdf_of(pages[0]))


def test_a_paragraph_goes_on_in_the_next_column_and_on_the_next_page() -> None:
    lines = "\n".join(["The old boats in the harbour were red"] * 12)
    page = [*paragraph(lines, 72), *paragraph(lines, 320)]
    assert body(pdf_of(page, paragraph("and green.\nThe end."))) == (
        f"<p>{' '.join([*lines.splitlines()] * 2)} and green.</p>\n<p>The end.</p>"
    )


def test_justified_lines_are_no_table() -> None:
    full = "The boats in the harbour were"
    wide = [Text("The", y=640), Text("harbour", 191, 640), Text("which", y=625), Text("house", 200, 625)]
    page = [*paragraph(f"{full}\n{full}", y=670), *wide]
    ends = [max(word.right for word in next(read_pages(pdf_of([line]), 99)).words) for line in (page[0], *wide[1::2])]
    assert max(ends) - min(ends) < 2
    assert body(pdf_of(page)) == f"<p>{full} {full} The harbour which house</p>"


def test_a_drawn_line_parts_the_cells_of_a_table() -> None:
    rows = [[Text("Tickets", 72, y), Text("Prices", 116, y)] for y in (700, 680)]
    assert "<table>" not in body(pdf_of([*rows[0], *rows[1]]))
    ruled = body(pdf_of([*rows[0], *rows[1]], drawn=b"113 670 m 113 715 l S"))
    assert ruled.count("<tr><td>Tickets</td><td>Prices</td></tr>") == 2


@pytest.mark.parametrize(
    ("lines", "joined"),
    [
        ("a well-known thing and a well-\nknown man", "a well-known thing and a well-known man"),
        ("a state-of-the-\nart thing", "a state-of-the-art thing"),
        ("it is in an organi-\nsation", "it is in an organisation"),
        ("SE-\nQUENCE", "SEQUENCE"),
        ("Jean-\nPaul", "Jean-Paul"),
        ("Contents . . . . . . . . . . 7", "Contents … 7"),
    ],
)
def test_hyphens_at_line_ends_are_undone(lines: str, joined: str) -> None:
    data = pdf_of(paragraph(f"A line of a long text, and {lines}"))
    assert body(data).endswith(f"{joined}</p>")


def test_tables_far_apart_are_two_and_bullets_begin_no_heading() -> None:
    rows = [[Text("Town", 72, y, 8), Text("People", 200, y, 8)] for y in (700, 680, 400, 380)]
    assert body(pdf_of([piece for row in rows for piece in row])).count("<table>") == 2
    slide = [
        Text("• Large words", 72, 700, 30),
        *paragraph("This is text of the usual size,\nand there is more of it.", y=600),
    ]
    assert body(pdf_of(slide)).startswith("<ul>\n<li>Large words</li>\n</ul>")


def test_a_page_on_its_side_is_read() -> None:
    turned = [
        b"BT /F0 12 Tf 0 1 -1 0 %d 72 Tm (%s) Tj ET" % (100 + 14 * i, line)
        for i, line in enumerate((b"One line of a page on its side, which", b"goes on."))
    ]
    assert body(pdf_from([b"\n".join(turned)])) == "<p>One line of a page on its side, which goes on.</p>"


WORDS = st.sampled_from(["dog", "a", "of", "<b>", "&amp;", "Paris.", "1.", "-", "•", "x" * 40, "(b)", "*c*"])
PIECES = st.builds(
    Text, WORDS, st.floats(0, 600), st.floats(0, 780), st.sampled_from([0.5, 8, 12, 30, 400]), st.booleans()
)


@given(st.lists(st.lists(PIECES, max_size=12), min_size=1, max_size=4))
def test_no_page_is_refused_and_the_texts_come_out(pages: list[list[Text]]) -> None:
    data = pdf_of([Text("Zebra stripes")], *pages)
    contents = Opened(pdf.rewrite, data)
    assert "Zebra stripes" in " ".join(contents.texts)
    assert contents.write(contents.texts) == Opened(pdf.rewrite, data).write(contents.texts)
    assert all(text.strip() for text in contents.texts)


ENCRYPTED = b"/ID [<00> <00>] /Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O (%s) /U (%s) >>" % (b"o" * 32, b"u" * 32)
CYCLE = [b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 9999999 >>"]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"%PDF-1.7", "damaged"),
        (REPORT[:400], "damaged"),
        (b"%PDF-1.7" + b"[" * 200_000, "damaged"),
        (pdf_of([Text("x")], trailer=ENCRYPTED), "encrypted: save it without a password"),
        (pdf_of([]), "only pictures"),
        (pdf_of([], [], drawn=b"0 0 100 100 re f"), "only pictures"),
    ],
)
def test_unreadable_files_are_refused_in_words(data: bytes, reason: str) -> None:
    with pytest.raises(InvalidDocument, match=reason):
        Opened(pdf.rewrite, data)


def test_a_file_made_to_take_long_or_much_does_not() -> None:
    with pytest.raises((InvalidDocument, TooLarge)):
        Opened(pdf.rewrite, with_objects(CYCLE))
    blank = zlib.compress(b" " * 20_000_000)
    with pytest.raises(InvalidDocument, match="only pictures"):
        Opened(pdf.rewrite, pdf_from([blank], stream_fields=b"/Filter /FlateDecode"))
    many = zlib.compress(b"\n".join(Text(f"{i} a b", i % 50 * 12, i // 50 * 7, 6).drawn() for i in range(5_000)))
    Opened(pdf.rewrite, pdf_from([many], stream_fields=b"/Filter /FlateDecode"))
    with pytest.raises(TooLarge, match="too much text"):
        Opened(pdf.rewrite, pdf_from([many], stream_fields=b"/Filter /FlateDecode"), ReadOptions(max_bytes=1_000))


def test_letters_without_height_are_left_out() -> None:
    flat = b"".join(b"1 0 0 0 72 %d Tm (word) Tj " % (700 - 2 * i) for i in range(5))
    assert body(pdf_from([b"BT /F0 12 Tf " + flat + b"1 0 0 1 72 600 Tm (a dog) Tj ET"])) == "<p>a dog</p>"
    with pytest.raises(InvalidDocument, match="no text"):
        Opened(pdf.rewrite, pdf_from([b"BT /F0 12 Tf " + flat + b"ET"]))
