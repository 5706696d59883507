"""OpenDocument files, made by hand."""

import io
import zipfile
from collections.abc import Mapping

from service.documents.office.open_document import MEDIA_TYPES

NAMES = {
    "office": "office", "style": "style", "text": "text", "table": "table", "form": "form", "draw": "drawing",
    "chart": "chart", "presentation": "presentation", "svg": "svg-compatible", "fo": "xsl-fo-compatible",
    "manifest": "manifest",
}  # fmt: skip
XMLNS = " ".join(
    [f'xmlns:{prefix}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for prefix, name in NAMES.items()]
    + ['xmlns:xlink="http://www.w3.org/1999/xlink"', 'xmlns:dc="http://purl.org/dc/elements/1.1/"', 'xmlns:x="urn:x"']
)
DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'


def content(body: str, styles: str = "", kind: str = "text") -> str:
    """A file content.xml with this in its body, and these automatic styles."""
    return (
        f"{DECLARATION}<office:document-content {XMLNS}><office:automatic-styles>{styles}</office:automatic-styles>"
        f"<office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>"
    )


def style(name: str, properties: str) -> str:
    return f'<style:style style:name="{name}" style:family="text"><style:text-properties {properties}/></style:style>'


def open_document(
    main: str, ending: str = ".odt", more: Mapping[str, str | bytes] | None = None, entries: str = ""
) -> bytes:
    """A file with this content.xml, in a zip with more files and more entries of the manifest."""
    manifest = (
        f'{DECLARATION}<manifest:manifest {XMLNS}><manifest:file-entry manifest:full-path="/" '
        f'manifest:media-type="{MEDIA_TYPES[ending]}"/>{entries}</manifest:manifest>'
    )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as writing:
        writing.writestr("mimetype", MEDIA_TYPES[ending], zipfile.ZIP_STORED)
        for name, file in {"content.xml": main, **(more or {}), "META-INF/manifest.xml": manifest}.items():
            writing.writestr(name, file)
    return buffer.getvalue()


def entry(path: str, media_type: str, inside: str = "") -> str:
    return (
        f'<manifest:file-entry manifest:full-path="{path}" manifest:media-type="{media_type}">{inside}'
        "</manifest:file-entry>"
    )
