import re

import pytest

from docs.generate import ROOT
from service.base.errors import InvalidDocument, RequestError, UnsupportedFileType
from service.documents.contents import DEFAULT_OPTIONS
from service.documents.kinds import KINDS, KINDS_BY_ENDING, LISTED_GROUPS, kind_of
from tests.service.documents.translating import Opened
from tests.service.documents.word_files import by_hand, files_in, paragraph, run, zipped

SERVED = f"supported: {LISTED_GROUPS}"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.txt", "txt"),
        ("A B.TXT", "txt"),
        ("a.docx.md", "md"),
        ("a/b.html", "html"),
        ("a.HTM", "html"),
        ("film.srt", "srt"),
        ("messages.pot", "po"),
        ("a.xliff", "xlf"),
        ("film.vtt", "vtt"),
        ("film.SSA", "ass"),
        ("film.sbv", "sbv"),
    ],
)
def test_a_name_tells_the_kind(name: str, kind: str) -> None:
    assert kind_of(name, b"text").name == kind


def test_a_word_document_is_one_whatever_its_name() -> None:
    assert kind_of("a.txt", by_hand("")).name == kind_of("", by_hand("")).name == "docx"


def test_a_pdf_is_one_whatever_its_name() -> None:
    assert kind_of("a.txt", b"%PDF-1.4").name == kind_of("", b"%PDF-2.0").name == "pdf"


def test_a_zip_that_says_nothing_is_what_its_name_says() -> None:
    data = zipped({"word/document.xml": files_in(by_hand(paragraph(run("the dog"))))["word/document.xml"]})
    kind = kind_of("a.docx", data)
    assert kind.name == "docx"
    assert Opened(kind.rewrite, data, DEFAULT_OPTIONS).texts == ["the dog"]


@pytest.mark.parametrize(
    ("name", "data", "error", "part"),
    [
        ("a.zip", zipped({"content.xml": ""}), UnsupportedFileType, f"does not say what it is; {SERVED}"),
        ("a.docx", zipped({"mimetype": "image/openraster"}), UnsupportedFileType, f"type image/openraster; {SERVED}"),
        ("a.docx", b"{\\rtf1", UnsupportedFileType, f"RTF; {SERVED}"),
        ("a.doc", b"\xd0\xcf\x11\xe0\xa1\xb1", UnsupportedFileType, "older Office, or encrypted"),
        ("a.docx", b"text", InvalidDocument, ".docx .*damaged"),
        ("a.pdf", b"text", InvalidDocument, ".pdf .*damaged: it is not a PDF"),
        ("a.docx", b"PK\x03\x04", InvalidDocument, "damaged zip: File is not a zip file"),
        ("a.pages", b"x", UnsupportedFileType, f".pages; {SERVED}"),
        ("README", b"x", UnsupportedFileType, f"no ending; {SERVED}"),
    ],
)
def test_unreadable_files_are_refused_in_words(name: str, data: bytes, error: type[RequestError], part: str) -> None:
    with pytest.raises(error, match=part):
        kind_of(name, data)


def test_endings_are_of_one_kind_each() -> None:
    endings = [ending for kind in KINDS for ending in kind.endings]
    assert len(endings) == len(set(endings))


def test_the_table_of_documents_has_every_ending() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    _, _, table = page.partition("| kind | what is translated |")
    rows = re.findall(r"^\| (`\..*?) \|", table.partition("\n\n")[0], re.MULTILINE)
    assert sorted(re.findall(r"`(.*?)`", " ".join(rows))) == sorted(KINDS_BY_ENDING)
