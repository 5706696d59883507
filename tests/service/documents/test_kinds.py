import pytest

from service.base.errors import RequestError, UnprocessableRequest, UnsupportedMediaType
from service.documents.kinds import KINDS, kind_of
from tests.service.documents.word_files import by_hand, zipped

SERVED = "documents are .docx, .htm, .html, .markdown, .md, .srt, .text, .txt"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.txt", "txt"),
        ("A B.TXT", "txt"),
        ("a.docx.md", "md"),
        ("a/b.html", "html"),
        ("a.HTM", "html"),
        ("film.srt", "srt"),
    ],
)
def test_a_name_tells_the_kind(name: str, kind: str) -> None:
    assert kind_of(name, b"text").name == kind


def test_a_word_document_is_one_whatever_its_name() -> None:
    assert kind_of("a.txt", by_hand("")).name == kind_of("", by_hand("")).name == "docx"


@pytest.mark.parametrize(
    ("name", "data", "error", "detail"),
    [
        ("a.odt", zipped({"content.xml": ""}), UnsupportedMediaType, "the file is a zip without word/document.xml"),
        ("a.docx", b"%PDF-1.7", UnsupportedMediaType, f"the file is a PDF; {SERVED}"),
        ("a.doc", b"\xd0\xcf\x11\xe0\xa1\xb1", UnsupportedMediaType, "the file is of an older Office, or encrypted"),
        ("a.docx", b"text", UnprocessableRequest, "the file is called .docx and is damaged: it is no zip"),
        ("a.docx", b"PK\x03\x04", UnprocessableRequest, "the file is a damaged zip: File is not a zip file"),
        ("a.pages", b"x", UnsupportedMediaType, f"the file's name ends in .pages; {SERVED}"),
        ("README", b"x", UnsupportedMediaType, f"the file's name has no ending; {SERVED}"),
    ],
)
def test_what_cannot_be_read_is_refused_in_words(
    name: str, data: bytes, error: type[RequestError], detail: str
) -> None:
    with pytest.raises(error, match=detail):
        kind_of(name, data)


def test_endings_are_of_one_kind_each() -> None:
    endings = [ending for kind in KINDS for ending in kind.endings]
    assert len(endings) == len(set(endings))
