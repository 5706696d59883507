"""The kinds of documents. The ending of a file's name tells its kind, and its content where that is certain."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath

from service.base.errors import InvalidDocument, UnsupportedFileType
from service.documents import html, markdown, plain, subtitles, word
from service.documents.archive import file_names, is_zip
from service.documents.contents import Contents


@dataclass(frozen=True)
class FileKind:
    """A kind of document file.

    Args:
        endings: endings of file names, in lower case, the usual one first.
        media_type: the type of answers that have such a file.
        read_file: reads a file from its bytes; its second argument is the size limit of the unpacked file.
    """

    endings: tuple[str, ...]
    media_type: str
    read_file: Callable[[bytes, int], Contents]

    @property
    def name(self) -> str:
        return self.endings[0].removeprefix(".")


def _without_limit(read_file: Callable[[bytes], Contents]) -> Callable[[bytes, int], Contents]:
    return lambda data, _: read_file(data)


WORD = FileKind((".docx",), "application/vnd.openxmlformats-officedocument.wordprocessingml.document", word.read_file)
KINDS = (
    FileKind((".txt", ".text"), "text/plain", _without_limit(plain.read_file)),
    FileKind((".html", ".htm"), "text/html", _without_limit(html.read_file)),
    FileKind((".md", ".markdown"), "text/markdown", _without_limit(markdown.read_file)),
    FileKind((".srt",), "application/x-subrip", _without_limit(subtitles.read_file)),
    WORD,
)
KINDS_BY_NAME = {kind.name: kind for kind in KINDS}
KINDS_BY_ENDING = {ending: kind for kind in KINDS for ending in kind.endings}
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
        if any(map(word.MAIN.fullmatch, file_names(data))):
            return WORD
        raise UnsupportedFileType(f"The file is a zip without word/document.xml, so not a Word document; {_known()}")
    what = next((what for begins, what in UNSUPPORTED.items() if data.startswith(begins)), None)
    if what is not None:
        raise UnsupportedFileType(f"The file is {what}; {_known()}")
    kind = KINDS_BY_ENDING.get(ending)
    if kind is None:
        named = f"The file's name ends in {ending}" if ending else "The file's name has no ending"
        raise UnsupportedFileType(f"{named}; {_known()}")
    if kind is WORD:
        raise InvalidDocument(f"The file is called {ending} and is damaged: it is not a zip")
    return kind


def _known() -> str:
    return f"supported: {', '.join(sorted(KINDS_BY_ENDING))}"
