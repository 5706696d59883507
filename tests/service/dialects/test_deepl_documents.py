"""DeepL's client lets a real server translate documents."""

import io
from pathlib import Path
from typing import Any

import deepl
import docx
import httpx
import pytest

from tests.service.encoded_names import NAMES, form

KEY = "a-key"
SETTINGS = {"api_keys": KEY}
TRANSLATORS = {"from": (3, "en", "de"), "into": (3, "fr", "en")}
ENGLISH = "the dog runs on the beach\n\na cat sees the horse\n"
FRENCH = "le chien court sur la plage\n"


def translated(client: deepl.DeepLClient, text: str, **options: Any) -> str:
    return str(client.translate_text(text, **{"source_lang": "en", "target_lang": "de"} | options))


def test_a_file_is_translated_as_its_texts_are(client: deepl.DeepLClient, tmp_path: Path) -> None:
    (tmp_path / "dogs.txt").write_text(ENGLISH)
    before = client.get_usage().character.count
    status = client.translate_document_from_filepath(tmp_path / "dogs.txt", tmp_path / "Hunde.txt", target_lang="de")
    assert (status.done, status.billed_characters, status.error_message) == (True, len(ENGLISH), None)
    assert client.get_usage().character.count == (before or 0) + len(ENGLISH)
    assert (tmp_path / "Hunde.txt").read_text() == translated(client, ENGLISH)


@pytest.mark.parametrize(
    ("name", "translated_name", "text"),
    [("a.yml", "b.yaml", "en: {a: the dog}"), ("a.pot", "b.po", 'msgid "the dog"\nmsgstr ""\n')],
)
def test_the_translated_file_may_have_any_ending_of_its_kind(
    client: deepl.DeepLClient, tmp_path: Path, name: str, translated_name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    client.translate_document_from_filepath(
        tmp_path / name, tmp_path / translated_name, source_lang="en", target_lang="de"
    )
    assert translated(client, "the dog") in (tmp_path / translated_name).read_text()


@pytest.mark.parametrize("name", NAMES)
def test_the_name_of_a_file_may_be_encoded(client: deepl.DeepLClient, address: str, name: str) -> None:
    sent = form(name, b"the dog", source_lang="EN", target_lang="DE")
    sent["headers"]["authorization"] = f"DeepL-Auth-Key {KEY}"
    card = httpx.post(f"{address}/v2/document", **sent, timeout=60).raise_for_status().json()
    handle = deepl.DocumentHandle(**card)
    assert client.translate_document_wait_until_done(handle).done
    fetched = client.translate_document_download(handle)
    assert fetched.headers["content-disposition"].endswith("%C3%A9t%C3%A9.de.txt")


def test_its_language_is_detected_and_may_be_that_of_the_target(client: deepl.DeepLClient) -> None:
    for text, target in ((FRENCH, "EN-GB"), (ENGLISH, "EN-US")):
        out = io.BytesIO()
        status = client.translate_document(text, out, target_lang=target, filename="a.txt")
        assert status.ok
        assert (out.getvalue().decode() == text) == (text == ENGLISH)


def test_formatting_and_glossaries_are_followed(client: deepl.DeepLClient) -> None:
    glossary = client.create_glossary("Animals", "en", "de", {"dog": "Köter"})
    document = docx.Document()
    document.add_paragraph("the ").add_run("dog").bold = True
    sent = io.BytesIO()
    document.save(sent)
    sent.seek(0)
    sent.name = "dogs.docx"
    out = io.BytesIO()
    client.translate_document(sent, out, source_lang="en", target_lang="de", glossary=glossary, formality="prefer_more")
    (paragraph,) = docx.Document(out).paragraphs
    assert [run.text for run in paragraph.runs if run.bold] == ["Köter"]
    client.delete_glossary(glossary)


def test_a_document_is_known_by_its_id_and_its_key(client: deepl.DeepLClient) -> None:
    handle = client.translate_document_upload(ENGLISH, source_lang="en", target_lang="de", filename="dogs.txt")
    wrong = deepl.DocumentHandle(handle.document_id, "0" * 64)
    for call in (client.translate_document_get_status, client.translate_document_download):
        with pytest.raises(deepl.DeepLException, match="Not found") as raised:
            call(wrong)
        assert raised.value.http_status_code == 404
    assert client.translate_document_wait_until_done(handle).done
    response = client.translate_document_download(handle)
    assert response is not None
    assert response.headers["content-type"] == "text/plain"
    assert "dogs.de.txt" in response.headers["content-disposition"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"target_lang": "XX"}, "Value for 'target_lang' not supported."),
        ({"formality": "less"}, "Target language 'DE' doesn't support formality."),
        ({"output_format": "docx"}, "Value for 'output_format' not supported., detail: must be txt"),
        ({"output_format": "pdf", "filename": "a.pdf"}, "must be html"),
        ({"style_rule": "s"}, "Value for 'style_id' not supported."),
        ({"filename": "a.rtf"}, "Invalid file data., detail: The file's name ends in .rtf; supported: "),
        ({"input_document": b"\\x00" * 9, "filename": "a.docx"}, "docx"),
        ({"glossary": "nothing", "source_lang": "en"}, "nothing"),
    ],
)
def test_invalid_documents_are_refused_at_upload(client: deepl.DeepLClient, given: Any, message: str) -> None:
    sent = {"input_document": ENGLISH, "target_lang": "de", "filename": "a.txt"} | given
    with pytest.raises(deepl.DeepLException) as raised:
        client.translate_document_upload(**sent)
    assert raised.value.http_status_code in (400, 404)
    assert message in str(raised.value)


def test_forms_without_a_file_or_a_key_are_refused(address: str) -> None:
    url, headers = f"{address}/v2/document", {"Authorization": f"DeepL-Auth-Key {KEY}"}
    assert httpx.post(url, files={"file": ("a.txt", b"a")}).status_code == 403
    for sent in ({"data": {"target_lang": "de", "file": "a"}}, {"json": {"target_lang": "de"}}):
        refused = httpx.post(url, headers=headers, **sent)  # type: ignore[arg-type]
        assert (refused.status_code, refused.json()["message"]) == (400, "Invalid file data.")
    for path in ("nothing", "nothing/result"):
        nothing = httpx.post(f"{url}/{path}", headers=headers, data={"document_key": "a"})
        assert (nothing.status_code, nothing.json().keys()) == (404, {"message"})
        missing = httpx.post(f"{url}/{path}", headers=headers)
        assert missing.json()["message"] == "Value for 'document_key' not supported."
