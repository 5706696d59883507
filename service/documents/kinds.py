"""The kinds of documents. The ending of a file's name tells its kind, and its content where that is certain."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath

from service.base.errors import InvalidDocument, UnsupportedFileType
from service.documents import epub, html, markdown, plain, subtitles, word
from service.documents.archive import is_zip
from service.documents.contents import Contents, ReadOptions
from service.documents.packages import type_of_package


@dataclass(frozen=True)
class FileKind:
    """A kind of document file.

    Args:
        endings: endings of file names, in lower case, the usual one first.
        media_type: the type of answers that have such a file.
        read_file: reads a file from its bytes.
        package_types: the media types that a zip of this kind declares for itself or for its main part; () if a file of
            this kind is no zip.
        written_as: the ending of the translated file, where it is of another kind.
    """

    endings: tuple[str, ...]
    media_type: str
    read_file: Callable[[bytes, ReadOptions], Contents]
    package_types: frozenset[str] = frozenset()
    written_as: str | None = None

    @property
    def name(self) -> str:
        return self.endings[0].removeprefix(".")


KINDS = (
    FileKind((".txt", ".text"), "text/plain", plain.read_file),
    FileKind((".html", ".htm", ".xhtml"), "text/html", html.read_file),
    FileKind((".epub",), "application/epub+zip", epub.read_file, epub.PACKAGE_TYPES),
    FileKind((".md", ".markdown"), "text/markdown", markdown.read_file),
    FileKind((".srt",), "application/x-subrip", subtitles.read_file),
    FileKind(
        (".docx",),
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        word.read_file,
        word.PACKAGE_TYPES,
    ),
)
KINDS_BY_NAME = {kind.name: kind for kind in KINDS}
KINDS_BY_ENDING = {ending: kind for kind in KINDS for ending in kind.endings}
KINDS_BY_PACKAGE_TYPE = {one: kind for kind in KINDS for one in kind.package_types}
*_FIRST, _LAST = (f".{name}" for name in sorted(KINDS_BY_NAME))
LISTED_KINDS = f"{', '.join(_FIRST)} or {_LAST}"
"""The usual ending of each kind, for descriptions: `.docx, .html or .txt`."""

UNSUPPORTED = {
    b"%PDF": "a PDF",
    b"\xd0\xcf\x11\xe0": "of an older Office, or encrypted: save it as .docx without a password",
    b"{\\rtf": "RTF",
}
"""First bytes of unsupported files that clients often send, and what such a file is."""


def kind_of(file_name: str, data: bytes) -> FileKind:
    """Find the kind of a file.

    Raises:
        UnsupportedFileType: no kind can read the file.
        InvalidDocument: the file is damaged.
    """
    ending = PurePath(file_name).suffix.lower()
    if is_zip(data):
        declared = type_of_package(data)
        if declared in KINDS_BY_PACKAGE_TYPE:
            return KINDS_BY_PACKAGE_TYPE[declared]
        what = f"a zip of the type {declared}" if declared else "a zip that does not say what it is"
        raise UnsupportedFileType(f"The file is {what}; {_known()}")
    what = next((what for begins, what in UNSUPPORTED.items() if data.startswith(begins)), "")
    if what:
        raise UnsupportedFileType(f"The file is {what}; {_known()}")
    kind = KINDS_BY_ENDING.get(ending)
    if kind is None:
        named = f"The file's name ends in {ending}" if ending else "The file's name has no ending"
        raise UnsupportedFileType(f"{named}; {_known()}")
    if kind.package_types:
        raise InvalidDocument(f"The file is called {ending} and is damaged: it is not a zip")
    return kind


def _known() -> str:
    return f"supported: {', '.join(sorted(KINDS_BY_ENDING))}"
