"""The words of a PDF's pages, with their places and the look of their letters."""

import ctypes
import math
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import pypdfium2
import pypdfium2.raw as pdfium

from service.base.errors import InvalidDocument, TooLarge

MAX_PAGES = 5_000
HYPHEN = "\x02"
"""PDFium's sign for a hyphen at the end of a line."""
SOFT_HYPHEN = "\xad"
LIGATURES = {code: unicodedata.normalize("NFKC", chr(code)) for code in range(0xFB00, 0xFB07)}
BOLD_WEIGHT = 600
MAX_NAME = 128
MAX_OBJECTS, MAX_RULES, MIN_RULE = 20_000, 500, 5.0
"""The limits of objects and of lines that are read on a page, and the least length of a line, in points."""


@dataclass(frozen=True)
class Word:
    """A word on a page. Lengths are in points, from the lower left corner. Its letters stand on the height `base`."""

    text: str
    left: float
    right: float
    base: float
    size: float
    is_bold: bool


@dataclass(frozen=True)
class Rule:
    """A vertical line that is drawn on a page, between the columns of a table for example."""

    x: float
    bottom: float
    top: float


@dataclass(frozen=True)
class Page:
    words: list[Word]
    """The words, in the order of the file."""
    rules: list[Rule]
    """The vertical lines, from left to right."""


def read_pages(data: bytes, max_bytes: int) -> Iterator[Page]:
    """Yield the pages of a PDF. All its words together have at most `max_bytes`. Raises InvalidDocument: the file is
    damaged or encrypted. TooLarge: it has too many pages or words."""
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if error.err_code == pdfium.FPDF_ERR_PASSWORD:
            raise InvalidDocument("The PDF is encrypted: save it without a password") from None
        raise InvalidDocument("The PDF is damaged: it cannot be opened") from None
    with document:
        if len(document) > MAX_PAGES:
            raise TooLarge(f"The PDF has {len(document)} pages, the limit is {MAX_PAGES}")
        for i in range(len(document)):
            page = pdfium.FPDF_LoadPage(document, i)
            if not page:
                raise InvalidDocument(f"The PDF is damaged: page {i + 1} cannot be read")
            text = pdfium.FPDFText_LoadPage(page)
            try:
                direction, words = _words(text) if text else (0, [])
                rules = _rules(page) if direction == 0 else []
            finally:
                pdfium.FPDFText_ClosePage(text)
                pdfium.FPDF_ClosePage(page)
            max_bytes -= sum(len(word.text) for word in words)
            if max_bytes < 0:
                raise TooLarge("The PDF has too much text")
            yield Page(words, rules)


def _rules(page: pdfium.FPDF_PAGE) -> list[Rule]:
    rules: set[tuple[float, float, float]] = set()
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    for i in range(min(pdfium.FPDFPage_CountObjects(page), MAX_OBJECTS)):
        drawn = pdfium.FPDFPage_GetObject(page, i)
        if pdfium.FPDFPageObj_GetType(drawn) == pdfium.FPDF_PAGEOBJ_PATH:
            pdfium.FPDFPageObj_GetBounds(drawn, left, bottom, right, top)
            if top.value - bottom.value > MIN_RULE:
                rules |= {(x, bottom.value, top.value) for x in (left.value, right.value)}
    return [Rule(*rule) for rule in sorted(rules)[:MAX_RULES]]


def _words(page: pdfium.FPDF_TEXTPAGE) -> tuple[int, list[Word]]:
    """Return the usual direction of words, in quarter turns, and the words in it. Other words may be watermarks."""
    n_characters = pdfium.FPDFText_CountChars(page)
    by_direction: defaultdict[int, list[Word]] = defaultdict(list)
    first = 0
    text = ""
    for i in range(n_characters + 1):
        code = pdfium.FPDFText_GetUnicode(page, i) if i < n_characters else 0x20
        character = LIGATURES.get(code) or chr(code)
        if character == HYPHEN:
            text += SOFT_HYPHEN
        elif not (character.isspace() or code < 0x20 or 0xD800 <= code < 0xE000):
            text += character
            continue
        if text:
            placed = _word(page, text, first, i if character == HYPHEN else i - 1)
            if placed is not None:
                by_direction[placed[0]].append(placed[1])
        first, text = i + 1, ""
    return max(by_direction.items(), key=lambda item: len(item[1]), default=(0, []))


def _word(page: pdfium.FPDF_TEXTPAGE, text: str, first: int, last: int) -> tuple[int, Word] | None:
    """Return the direction of a word in quarter turns, and the word as if horizontal; None without height or place."""
    matrix, start, end = pdfium.FS_MATRIX(), pdfium.FS_RECTF(), pdfium.FS_RECTF()
    pdfium.FPDFText_GetMatrix(page, first, matrix)
    pdfium.FPDFText_GetLooseCharBox(page, first, start)
    pdfium.FPDFText_GetLooseCharBox(page, last, end)
    x, y = ctypes.c_double(), ctypes.c_double()
    pdfium.FPDFText_GetCharOrigin(page, first, x, y)
    size = pdfium.FPDFText_GetFontSize(page, first) * math.hypot(matrix.c, matrix.d)
    places = (start.left, start.bottom, start.right, start.top, end.left, end.bottom, end.right, end.top)
    if not all(map(math.isfinite, (matrix.a, matrix.b, size, x.value, y.value, *places))) or size <= 0:
        return None
    direction = round(math.atan2(matrix.b, matrix.a) / (math.pi / 2)) % 4
    left, right, base = (
        (start.left, end.right, y.value),
        (start.bottom, end.top, -x.value),
        (-start.right, -end.left, -y.value),
        (-start.top, -end.bottom, x.value),
    )[direction]
    name = ctypes.create_string_buffer(MAX_NAME)
    pdfium.FPDFText_GetFontInfo(page, first, name, MAX_NAME, None)
    is_bold = b"bold" in name.value.lower() or pdfium.FPDFText_GetFontWeight(page, first) >= BOLD_WEIGHT
    return direction, Word(text, left, max(left, right), base, size, is_bold)
