"""Which kind of document a file is: what it is called tells, and what is in it where that is certain."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath

from service.base.errors import InvalidDocument, UnsupportedFileType
from service.documents import html, markdown, plain, subtitles, word
from service.documents.archive import is_zip, names
from service.documents.contents import Contents


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Args:
        endings: of its names; the first one is the usual one.
        read: of the file's bytes and of the largest size that it may have unpacked.
    """

    endings: tuple[str, ...]
    media_type: str
    read: Callable[[bytes, int], Contents]

    @property
    def name(self) -> str:
        return self.endings[0].removeprefix(".")


def _text(read: Callable[[bytes], Contents]) -> Callable[[bytes, int], Contents]:
    return lambda data, _: read(data)


WORD = Kind((".docx",), "application/vnd.openxmlformats-officedocument.wordprocessingml.document", word.read)
KINDS = (
    Kind((".txt", ".text"), "text/plain", _text(plain.read)),
    Kind((".html", ".htm"), "text/html", _text(html.read)),
    Kind((".md", ".markdown"), "text/markdown", _text(markdown.read)),
    Kind((".srt",), "application/x-subrip", _text(subtitles.read)),
    WORD,
)
BY_NAME = {kind.name: kind for kind in KINDS}
BY_ENDING = {ending: kind for kind in KINDS for ending in kind.endings}

OTHERS = {
    b"%PDF": "a PDF",
    b"\xd0\xcf\x11\xe0": "of an older Office, or encrypted: save it as .docx without a password",
    b"{\\rtf": "RTF",
}
"""What some files begin with that are often taken for documents that can be translated."""


def kind_of(file_name: str, data: bytes) -> Kind:
    """The kind of a file.

    Raises:
        UnsupportedFileType: it is none of those that can be read.
        InvalidDocument: it is damaged.
    """
    ending = PurePath(file_name).suffix.lower()
    if is_zip(data):
        if any(map(word.MAIN.fullmatch, names(data))):
            return WORD
        raise UnsupportedFileType(f"The file is a zip without word/document.xml, so not a Word document; {_served()}")
    what = next((what for begins, what in OTHERS.items() if data.startswith(begins)), None)
    if what is not None:
        raise UnsupportedFileType(f"The file is {what}; {_served()}")
    kind = BY_ENDING.get(ending)
    if kind is None:
        named = f"The file's name ends in {ending}" if ending else "The file's name has no ending"
        raise UnsupportedFileType(f"{named}; {_served()}")
    if kind is WORD:
        raise InvalidDocument(f"The file is called {ending} and is damaged: it is not a zip")
    return kind


def _served() -> str:
    return f"supported: {', '.join(sorted(BY_ENDING))}"
