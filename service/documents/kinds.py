"""The kinds of documents. The ending of a file's name tells its kind, and its content where the content is certain."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from service.base.errors import InvalidDocument, UnsupportedFileType
from service.documents import json_lines, markdown, plain
from service.documents.archive import is_zip
from service.documents.contents import Contents, ReadOptions, Rewrite, write
from service.documents.localization import (
    android_strings,
    apple_strings,
    json_messages,
    po,
    properties,
    resx,
    string_catalog,
    xliff,
    yaml_messages,
)
from service.documents.office import excel, open_document, powerpoint, word
from service.documents.packages import type_of_package
from service.documents.pdf import pdf
from service.documents.subtitles import subrip, substation, webvtt
from service.documents.tables import table
from service.documents.web import epub, html


@dataclass(frozen=True)
class FileKind:
    """A kind of document file.

    Args:
        endings: endings of file names, in lower case, the usual one first.
        media_type: the type of answers that have such a file.
        rewrite: reads a file, and writes it with translations.
        package_types: the media types that a zip of this kind declares for itself or for its main part; () if a file of
            this kind is no zip.
        written_as: the ending of the translated file, where it is of another kind.
        begins: the first bytes of a file of this kind; b"" if they are not certain.
        options: names of the `DocumentOptions` that this kind obeys.
    """

    endings: tuple[str, ...]
    media_type: str
    rewrite: Rewrite
    package_types: frozenset[str] = frozenset()
    written_as: str | None = None
    begins: bytes = b""
    options: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        return self.endings[0].removeprefix(".")

    def translated_name(self, file_name: str, target: str) -> str:
        """Return the name of the translated file: report.docx becomes report.fr.docx."""
        name = PurePath(file_name)
        return f"{name.stem}.{target}{self.written_as or name.suffix or self.endings[0]}"

    def read(self, data: bytes, options: ReadOptions) -> Contents:
        """Return the texts of a file. Raises InvalidDocument, TooLarge."""
        return next(self.rewrite(data, options))

    def write(self, data: bytes, options: ReadOptions, translations: Sequence[str]) -> bytes:
        """Return the file with one translation for each text that `read` returns with the same options."""
        return write(self.rewrite(data, options), translations)


MISSING, COLUMNS, STATES = frozenset({"only_missing"}), frozenset({"columns"}), frozenset({"fuzzy_below"})
OFFICE = "application/vnd.openxmlformats-officedocument"
KINDS = (
    FileKind((".txt", ".text"), "text/plain", plain.rewrite),
    FileKind((".html", ".htm", ".xhtml"), "text/html", html.rewrite),
    FileKind((".epub",), "application/epub+zip", epub.rewrite, epub.PACKAGE_TYPES),
    FileKind((".md", ".markdown"), "text/markdown", markdown.rewrite),
    FileKind((".pdf",), "text/html", pdf.rewrite, written_as=".html", begins=b"%PDF-"),
    FileKind((".srt",), "application/x-subrip", subrip.rewrite),
    FileKind((".vtt",), "text/vtt", webvtt.rewrite),
    FileKind((".ass", ".ssa"), "text/x-ssa", substation.rewrite),
    FileKind((".sbv",), "text/plain", subrip.rewrite_youtube),
    FileKind((".csv",), "text/csv", table.rewrite_csv, options=MISSING | COLUMNS),
    FileKind((".tsv",), "text/tab-separated-values", table.rewrite_tsv, options=MISSING | COLUMNS),
    FileKind((".jsonl", ".ndjson"), "application/jsonl", json_lines.rewrite, options=MISSING),
    FileKind((".po", ".pot"), "text/x-gettext-translation", po.rewrite, written_as=".po", options=MISSING | STATES),
    FileKind((".xlf", ".xliff"), "application/xliff+xml", xliff.rewrite, options=MISSING | STATES),
    FileKind((".json",), "application/json", json_messages.rewrite),
    FileKind((".arb",), "application/json", json_messages.rewrite_arb),
    FileKind((".xcstrings",), "application/json", string_catalog.rewrite, options=MISSING | STATES),
    FileKind((".yaml", ".yml"), "application/yaml", yaml_messages.rewrite),
    FileKind((".properties",), "text/x-java-properties", properties.rewrite),
    FileKind((".strings",), "text/plain", apple_strings.rewrite),
    FileKind((".resx",), "text/microsoft-resx", resx.rewrite),
    FileKind((".xml",), "application/xml", android_strings.rewrite),
    FileKind((".docx",), f"{OFFICE}.wordprocessingml.document", word.rewrite, word.PACKAGE_TYPES),
    FileKind((".pptx",), f"{OFFICE}.presentationml.presentation", powerpoint.rewrite, powerpoint.PACKAGE_TYPES),
    FileKind((".xlsx",), f"{OFFICE}.spreadsheetml.sheet", excel.rewrite, excel.PACKAGE_TYPES),
    *(
        FileKind((ending,), media_type, open_document.rewrite, frozenset((media_type, f"{media_type}-template")))
        for ending, media_type in open_document.MEDIA_TYPES.items()
    ),
)
KINDS_BY_NAME = {kind.name: kind for kind in KINDS}
KINDS_BY_ENDING = {ending: kind for kind in KINDS for ending in kind.endings}
KINDS_BY_PACKAGE_TYPE = {package_type: kind for kind in KINDS for package_type in kind.package_types}
*_FIRST, _LAST = (f".{name}" for name in sorted(KINDS_BY_NAME))
LISTED_KINDS = f"{', '.join(_FIRST)} or {_LAST}"
"""The usual ending of each kind, for descriptions: `.docx, .html or .txt`."""
LISTED_GROUPS = (
    "Word, Excel, PowerPoint, OpenDocument, PDF, text, Markdown, web pages, books, subtitles, tables and messages of "
    "programs"
)
SUPPORTED = f"supported: {LISTED_GROUPS}"
UNSUPPORTED = {
    b"\xd0\xcf\x11\xe0": "of an older Office, or encrypted: save it as .docx, .pptx or .xlsx without a password",
    b"{\\rtf": "RTF",
}
"""Unsupported files that clients often send, by their first bytes."""


def is_text(data: bytes) -> bool:
    """Tell whether a file is of a kind that is text. A file of another kind may do harm while it is read."""
    return not is_zip(data) and not any(kind.begins and data.startswith(kind.begins) for kind in KINDS)


def kind_of(file_name: str, data: bytes) -> FileKind:
    """Find the kind of a file. Raises UnsupportedFileType: no kind can read it. InvalidDocument: it is damaged."""
    ending = PurePath(file_name).suffix.lower()
    kind = KINDS_BY_ENDING.get(ending)
    if is_zip(data):
        declared = type_of_package(data)
        if declared in KINDS_BY_PACKAGE_TYPE:
            return KINDS_BY_PACKAGE_TYPE[declared]
        if declared is None and kind is not None and kind.package_types:
            return kind
        what = f"a zip of the type {declared}" if declared else "a zip that does not say what it is"
        raise UnsupportedFileType(f"The file is {what}; {SUPPORTED}")
    begun = next((kind for kind in KINDS if kind.begins and data.startswith(kind.begins)), None)
    if begun:
        return begun
    what = next((what for begins, what in UNSUPPORTED.items() if data.startswith(begins)), "")
    if what:
        raise UnsupportedFileType(f"The file is {what}; {SUPPORTED}")
    if kind is None:
        named = f"The file's name ends in {ending}" if ending else "The file's name has no ending"
        raise UnsupportedFileType(f"{named}; {SUPPORTED}")
    if kind.package_types or kind.begins:
        what = "a zip" if kind.package_types else f"a {kind.name.upper()}"
        raise InvalidDocument(f"The file is called {ending} and is damaged: it is not {what}")
    return kind
