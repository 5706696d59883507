"""Word documents, made by python-docx or by hand."""

import io
import zipfile
from collections.abc import Mapping

import docx
from docx.document import Document

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
STRICT = "http://purl.oclc.org/ooxml/wordprocessingml/main"
TYPES = (
    '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/word/document.xml" ContentType='
    '"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
)
RELATIONS = (
    '<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="r1" Target="word/document.xml" Type='
    '"http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"/></Relationships>'
)


def saved(document: Document) -> bytes:
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def opened(data: bytes) -> Document:
    return docx.Document(io.BytesIO(data))


def by_hand(body: str, namespace: str = W, more: Mapping[str, str | bytes] | None = None) -> bytes:
    """A document with this in its body, in a zip with more files."""
    document = (
        f'<?xml version="1.0" encoding="UTF-8"?><w:document xmlns:w="{namespace}" '
        'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" '
        'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
        'xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing" '
        'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math" xmlns:v="urn:schemas-microsoft-com:vml" '
        f'xmlns:x="urn:x" mc:Ignorable="x"><w:body>{body}</w:body></w:document>'
    )
    return packed(document, more)


def packed(main: str | bytes, more: Mapping[str, str | bytes] | None = None) -> bytes:
    """A document with this main part, in a zip with more files."""
    return zipped({"[Content_Types].xml": TYPES, "_rels/.rels": RELATIONS, "word/document.xml": main, **(more or {})})


def related(*parts: tuple[str, str], source: str = "word/document.xml") -> dict[str, str]:
    """The file with a part's relationships: of each the kind and the target."""
    folder, _, name = source.rpartition("/")
    inside = "".join(
        f'<Relationship Id="r{i}" Type="http://example.org/relationships/{kind}" Target="{target}"/>'
        for i, (kind, target) in enumerate(parts)
    )
    xmlns = "http://schemas.openxmlformats.org/package/2006/relationships"
    return {f"{folder}/_rels/{name}.rels".lstrip("/"): f'<Relationships xmlns="{xmlns}">{inside}</Relationships>'}


def zipped(files: Mapping[str, str | bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as writing:
        for name, content in files.items():
            writing.writestr(name, content)
    return buffer.getvalue()


def files_in(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def run(text: str, properties: str = "") -> str:
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def paragraph(*inside: str) -> str:
    return f'<w:p><w:pPr><w:jc w:val="center"/></w:pPr>{"".join(inside)}</w:p>'


def field(instruction: str, result: str, hidden: str = "") -> str:
    return (
        f'<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>{instruction}</w:instrText></w:r>{hidden}'
        f'<w:r><w:fldChar w:fldCharType="separate"/></w:r>{result}<w:r><w:fldChar w:fldCharType="end"/></w:r>'
    )


def marks(name: str, number: int) -> str:
    """Those of a range, to be formatted with what is in it."""
    return f"<w:{name}Start w:id='{number}'/>{{}}<w:{name}End w:id='{number}'/>"
