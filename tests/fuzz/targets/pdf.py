"""PDF files."""

import zlib
from collections.abc import Callable
from random import Random

from tests.fuzz.documents import ALLOWED, mutate_document, read_document, seed
from tests.fuzz.mutation import mutate_lines
from tests.fuzz.target import MutateBytes, Target
from tests.service.documents import test_pdf
from tests.service.documents.pdf_files import Text, pdf_from, pdf_of, with_objects

RULES = b"0 0 200 300 re S 100 0 m 100 300 l S\n"


def _seeds() -> list[bytes]:
    compressed = zlib.compress(b"BT /F0 12 Tf 72 700 Td (a dog) Tj 0 -14 Td (runs) Tj ET")
    return [
        seed("pdf fr", test_pdf.REPORT),
        seed("pdf ja", pdf_of([Text("one"), Text("two", 200), Text("three", 72, 680), Text("four", 200, 680)], drawn=RULES)),
        seed("pdf fr", pdf_from([compressed], stream_fields=b"/Filter /FlateDecode")),
        seed("pdf fr", with_objects(test_pdf.CYCLE)),
        seed("pdf fr", pdf_of([Text("- a", y=700), Text("1. b", y=680), Text("(c) d", y=660)] * 2, [Text("Page 2", y=30)])),
    ]  # fmt: skip


def _stream(piece: Callable[[int], bytes], before: bytes = b"", after: bytes = b"") -> Callable[[int], bytes]:
    """Return PDFs of one page with pieces of operators, each by its number."""

    def grow(size: int) -> bytes:
        n = size // len(piece(0))
        return seed("pdf fr", pdf_from([before + b"".join(map(piece, range(n))) + after]))

    return grow


def _at(x: float, y: float, text: bytes = b"a dog", size: float = 12) -> bytes:
    return b"BT /F0 %g Tf %g %g Td (%s) Tj ET\n" % (size, x, y, text)


def _pages(size: int) -> bytes:
    return seed("pdf fr", pdf_of(*[[Text("a dog")]] * (size // 250)))


def _nested_pages(size: int) -> bytes:
    n = size // 60
    kids = [b"<< /Type /Pages /Kids [%d 0 R] /Count 1 >>" % (i + 3) for i in range(n)]
    return seed("pdf fr", with_objects([b"<< /Type /Catalog /Pages 2 0 R >>", *kids]))


def _nested_arrays(size: int) -> bytes:
    return seed("pdf fr", with_objects([b"<< /Type /Catalog /Pages 2 0 R >>", b"[" * size]))


GROWN = {
    "lines": _stream(lambda i: _at(72, 700 - 14 * (i % 45))),
    "lines downwards": _stream(lambda i: _at(72, 700 - 14 * i)),
    "lines upwards": _stream(lambda i: _at(72, 14 * i)),
    "columns": _stream(lambda i: _at(72 + 100 * i, 700)),
    "steps": _stream(lambda i: _at(72 + 100 * i, 700 - 3 * i)),
    "rows": _stream(lambda i: _at(72 + 200 * (i % 3), 700 - 14 * (i // 3))),
    "cells one above the other": _stream(lambda i: _at(72 + 300 * (i % 2), 700 - 5 * i)),
    "sizes": _stream(lambda i: _at(72, 700 - 14 * i, size=1 + i / 3)),
    "headings": _stream(lambda i: _at(72, 1_000_000 - 100 * i, size=10 + i)),
    "one place": _stream(lambda _: _at(72, 700)),
    "one line": _stream(lambda _: b"(a dog ) Tj ", b"BT /F0 12 Tf 72 700 Td ", b"ET"),
    "one word": _stream(lambda _: b"(aaaaaaaaaaaaaaaa) Tj ", b"BT /F0 12 Tf 72 700 Td ", b"ET"),
    "hyphens": _stream(lambda i: _at(72, 700 - 14 * i, b"one-")),
    "markers": _stream(lambda i: _at(72, 700 - 14 * i, b"- a")),
    "numbers": _stream(lambda i: _at(72, 700 - 14 * i, b"%d. a" % i)),
    "dots": _stream(lambda i: _at(72, 700 - 14 * i, b"a. . . . . . . b")),
    "one line of dots": _stream(lambda _: b"(. ) Tj ", b"BT /F0 12 Tf 72 700 Td ", b"ET"),
    "rules": _stream(lambda i: b"%d 0 m %d 300 l S\n" % (i, i), after=_at(72, 700)),
    "turned": _stream(lambda i: b"BT /F0 12 Tf 0 1 -1 0 %d 100 Tm (a dog) Tj ET\n" % (i % 500)),
    "saved states": _stream(lambda _: b"q ", after=_at(72, 700)),
    "fonts": _stream(lambda i: b"/F%d 12 Tf " % (i % 2), b"BT 72 700 Td ", b"(a) Tj ET"),
    "pages": _pages,
    "nested pages": _nested_pages,
    "nested arrays": _nested_arrays,
}


def _mutate_file(file: bytes, random: Random, mutate_bytes: MutateBytes) -> bytes:
    """Change the operators of a page more often than the objects around them."""
    start, end = file.find(b"stream\n") + 7, file.rfind(b"\nendstream")
    if random.random() < 0.6 and 7 <= start < end:
        return file[:start] + mutate_lines(file[start:end], random, mutate_bytes) + file[end:]
    return mutate_lines(file, random, mutate_bytes)


TARGET = Target(
    read=read_document,
    seeds=_seeds,
    allowed=ALLOWED,
    mutate=mutate_document(_mutate_file),
    words=[
        b" Tf ", b" Td ", b" Tj ", b" Tm ", b"BT ", b"ET ", b" cm ", b" Tr ", b" Ts ", b" Tw ", b" Tz ", b"0 0 0 0 0 0 Tm ",
        b"1e38", b"99999999999999999999999999999999999999999", b"-1", b"0.0000000001", b"/FlateDecode", b"/ToUnicode 3 0 R",
        b"/Rotate 90", b"/MediaBox [0 0 0 0]", b"5 0 R", b"<< >>", b"<feff0041d800>", b"\\002", b"\\255", b"/Kids [2 0 R]",
    ],
    grown=GROWN,
)  # fmt: skip
