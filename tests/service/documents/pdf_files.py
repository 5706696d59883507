"""PDF files, made by hand."""

from collections.abc import Sequence
from dataclasses import dataclass

OBJECT = b"%d 0 obj\n%s\nendobj\n"
FONTS = (b"Helvetica", b"Helvetica-Bold")


@dataclass(frozen=True)
class Text:
    """A piece of text on a page, from its lower left corner."""

    text: str
    x: float = 72
    y: float = 700
    size: float = 12
    is_bold: bool = False

    def drawn(self) -> bytes:
        text = self.text.encode("cp1252").replace(b"\\", b"\\\\").replace(b"(", rb"\(").replace(b")", rb"\)")
        return b"BT /F%d %g Tf %g %g Td (%s) Tj ET" % (self.is_bold, self.size, self.x, self.y, text)


def paragraph(text: str, x: float = 72, y: float = 700, size: float = 12) -> list[Text]:
    """Return a piece for each line of a text."""
    return [Text(line, x, y - 1.2 * size * i, size) for i, line in enumerate(text.splitlines())]


def pdf_of(*pages: Sequence[Text], drawn: bytes = b"", trailer: bytes = b"") -> bytes:
    """Return a PDF.

    Args:
        drawn: what is drawn on every page, as PDF's operators.
    """
    streams = [b"\n".join([drawn, *(piece.drawn() for piece in page)]) for page in pages]
    return pdf_from(streams, trailer)


def pdf_from(streams: Sequence[bytes], trailer: bytes = b"", stream_fields: bytes = b"") -> bytes:
    """Return a PDF with a page for each stream of operators."""
    fonts = [b"<< /Type /Font /Subtype /Type1 /BaseFont /%s /Encoding /WinAnsiEncoding >>" % name for name in FONTS]
    kids = b" ".join(b"%d 0 R" % (5 + 2 * i) for i in range(len(streams)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, len(streams)),
        *fonts,
    ]
    for i, stream in enumerate(streams):
        objects += [
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R"
            b" /Resources << /Font << /F0 3 0 R /F1 4 0 R >> >> >>" % (6 + 2 * i),
            b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(stream), stream_fields, stream),
        ]
    return with_objects(objects, trailer)


def with_objects(objects: Sequence[bytes], trailer: bytes = b"") -> bytes:
    """Return a PDF of these objects; the first one is the catalog."""
    data = b"%PDF-1.7\n"
    offsets = []
    for number, content in enumerate(objects, 1):
        offsets.append(len(data))
        data += OBJECT % (number, content)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size = len(objects) + 1
    return (
        data
        + b"xref\n0 %d\n0000000000 65535 f \n%strailer << /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF"
        % (size, table, size, trailer, len(data))
    )
