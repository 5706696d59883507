"""Google's client calls a real server, in both versions. What the client never sends is sent as others write it."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from google.api_core.client_options import ClientOptions
from google.api_core.exceptions import BadRequest, Forbidden, NotFound, TooManyRequests
from google.auth.credentials import AnonymousCredentials
from google.cloud import translate_v2, translate_v3
from google.oauth2.credentials import Credentials

from tests.service.dialects.conftest import Listen, post_json

KEY = "a-key-of-a-user"
PARENT = "projects/any/locations/global"
TRANSLATORS = {
    "from-fr": (3, "fr", "en"),
    "from-en": (11, "en", "fr zh_Hans zh_Hant heb nb pt_BR"),
    "better": (5, "en", "fr"),
}
TEXTS = ["the red dog runs", "a cat sees the beach"]
V2 = "/language/translate/v2"


@pytest.fixture(scope="module")
def address(listen: Listen) -> str:
    return listen(max_text_characters=1000, max_texts=5)


@pytest.fixture(scope="module")
def with_keys(listen: Listen) -> str:
    return listen(api_keys=KEY, rate_limit="30/hour")


def native(address: str, texts: Any = TEXTS, **options: Any) -> list[dict[str, Any]]:
    answer = post_json(f"{address}/translate", **{"text": texts, "source": "en", "target": "fr"} | options)
    found: list[dict[str, Any]] = answer["translations"]
    return found


def second(address: str, credentials: Any = None) -> Any:
    options = ClientOptions(api_endpoint=address)
    return translate_v2.Client(credentials=credentials or AnonymousCredentials(), client_options=options)  # type: ignore[no-untyped-call]


def third(address: str, key: str = "any") -> Any:
    options = ClientOptions(api_endpoint=address, api_key=key)
    return translate_v3.TranslationServiceClient(transport="rest", client_options=options)


@pytest.mark.parametrize("prefix", ["", "/google", "/mtran/google"])
def test_the_client_of_version_2_translates(address: str, prefix: str) -> None:
    client = second(address + prefix)
    found = client.translate(TEXTS, target_language="fr", source_language="en", format_="text")
    assert [one["translatedText"] for one in found] == [one["text"] for one in native(address)]
    assert not any("detectedSourceLanguage" in one for one in found)
    alone = client.translate("le chien court sur la plage", target_language="en", format_="text")
    assert alone["detectedSourceLanguage"] == "fr"


def test_texts_are_html_unless_the_client_says_otherwise(address: str) -> None:
    text = "<b>the dog</b> &amp; a cat"
    [expected] = native(address, [text], format="html")
    found = second(address).translate(text, target_language="fr", source_language="en")
    assert found["translatedText"] == expected["text"]
    [expected] = native(address, [text])
    found = second(address).translate(text, target_language="fr", source_language="en", format_="text")
    assert found["translatedText"] == expected["text"]


def test_an_empty_text_keeps_its_place(address: str) -> None:
    found = second(address).translate(["", TEXTS[0], "42"], target_language="fr", format_="text")
    assert [one["translatedText"] == "" for one in found] == [True, False, False]
    assert [one["detectedSourceLanguage"] for one in found] == ["und", "en", "und"]


def test_the_client_of_version_2_detects_and_lists(address: str) -> None:
    client = second(address)
    found = client.detect_language(["the dog runs on the beach", "42"])
    assert [one["language"] for one in found] == ["en", "und"]
    assert 0.5 < found[0]["confidence"] <= 1
    assert found[1]["confidence"] == 0
    named = {one["language"]: one["name"] for one in client.get_languages(target_language="de")}
    assert named["fr"] == "Französisch"
    assert named.keys() == {"en", "fr", "zh-CN", "zh-TW", "iw", "no", "pt"}


@pytest.mark.parametrize(
    ("code", "meant"),
    [("iw", "heb"), ("he", "heb"), ("zh-CN", "zh_Hans"), ("zh", "zh_Hans"), ("zh-TW", "zh_Hant"), ("no", "nb"),
     ("pt", "pt_BR"), ("FR", "fr"), ("fr-FR", "fr")],
)  # fmt: skip
def test_codes_mean_what_they_mean_at_google(address: str, code: str, meant: str) -> None:
    found = second(address).translate(TEXTS[0], target_language=code, source_language="en", format_="text")
    assert found["translatedText"] == native(address, TEXTS[:1], target=meant)[0]["text"]


def test_a_model_may_be_named(address: str) -> None:
    ask = second(address).translate
    [expected] = native(address, TEXTS[:1], model="better")
    found = ask(TEXTS[0], target_language="fr", source_language="en", format_="text", model="better")
    assert (found["translatedText"], found["model"]) == (expected["text"], "better")
    assert ask(TEXTS[0], target_language="fr", format_="text", model="nmt")["model"] == "nmt"
    with pytest.raises(BadRequest, match="other"):
        ask(TEXTS[0], target_language="fr", model="other")
    with pytest.raises(BadRequest, match="cid"):
        ask(TEXTS[0], target_language="fr", customization_ids=["a"])


def test_version_2_takes_queries_forms_and_json(address: str) -> None:
    fields = {"q": TEXTS, "source": "en", "target": "fr", "format": "text", "prettyPrint": "false"}
    expected = [{"translatedText": one["text"]} for one in native(address)]
    for method, sent in (("GET", {"params": fields}), ("POST", {"data": fields}), ("POST", {"json": fields})):
        answer = httpx.request(method, f"{address}{V2}", **sent)  # type: ignore[arg-type]
        assert answer.json() == {"data": {"translations": expected}}
    answer = httpx.get(f"{address}{V2}/detect", params={"q": "the dog runs on the beach"})
    assert [one[0]["language"] for one in answer.json()["data"]["detections"]] == ["en"]
    bare = httpx.get(f"{address}{V2}/languages").json()["data"]["languages"]
    assert {"language": "iw"} in bare


@pytest.mark.parametrize(
    ("asked", "kind", "says"),
    [
        ({"target_language": "xx"}, BadRequest, "`target` must be a language"),
        ({"target_language": "fr", "source_language": "xx"}, BadRequest, "`source` must be a language"),
        ({"target_language": "en", "source_language": "iw"}, BadRequest, "`source` must be a language"),
        ({"target_language": "fr", "format_": "pdf"}, BadRequest, "`format`"),
        ({"values": ["a"] * 6, "target_language": "fr"}, BadRequest, "6 texts; the limit is 5"),
        ({"values": "a" * 1001, "target_language": "fr"}, BadRequest, "1001 characters"),
    ],
)
def test_errors_of_version_2_are_the_clients_own(address: str, asked: Any, kind: Any, says: str) -> None:
    with pytest.raises(kind, match=says) as raised:
        second(address).translate(**{"values": TEXTS} | asked)
    assert raised.value.errors[0]["domain"] == "global"
    assert raised.value.errors[0]["message"] in str(raised.value)


def test_a_wrong_path_method_or_body_has_googles_shape(address: str) -> None:
    wrong = (
        (httpx.get(f"{address}/google/nowhere"), 404, "NOT_FOUND"),
        (httpx.delete(f"{address}{V2}"), 405, "UNIMPLEMENTED"),
        (httpx.post(f"{address}{V2}", content=b"{"), 400, "INVALID_ARGUMENT"),
        (httpx.post(f"{address}{V2}", json={"target": "fr"}), 400, "INVALID_ARGUMENT"),
        (httpx.post(f"{address}/v3/{PARENT}:batchTranslateText", json={}), 404, "NOT_FOUND"),
    )
    for answer, status, word in wrong:
        assert answer.status_code == status, answer.text
        error = answer.json()["error"]
        assert (error["code"], error["status"]) == (status, word)
    assert httpx.get(f"{address}/v3/nowhere").json().keys() == {"message"}  # DeepL's


def test_the_client_sends_its_key_in_any_place(with_keys: str) -> None:
    url, body = f"{with_keys}/google{V2}", {"q": "the dog", "target": "fr", "source": "en"}
    places: tuple[dict[str, Any], ...] = (
        {"params": {"key": KEY}},
        {"headers": {"x-goog-api-key": KEY}},
        {"headers": {"Authorization": f"Bearer {KEY}"}},
    )
    for place in places:
        assert httpx.post(url, json=body, **place).status_code == 200
    assert second(with_keys, Credentials(KEY)).translate("the dog", target_language="fr")  # type: ignore[no-untyped-call]
    assert third(with_keys, KEY).get_supported_languages(parent=PARENT).languages
    with pytest.raises(Forbidden, match="valid API key"):
        second(with_keys).translate("the dog", target_language="fr")
    with pytest.raises(BadRequest, match="API key not valid") as raised:
        second(with_keys, Credentials("wrong")).translate("the dog", target_language="fr")  # type: ignore[no-untyped-call]
    assert raised.value.reason == "API_KEY_INVALID"
    with pytest.raises(BadRequest, match="API key not valid"):
        third(with_keys, "wrong").get_supported_languages(parent=PARENT)
    for _ in range(30):
        httpx.get(f"{url}/languages", headers={"x-goog-api-key": KEY})
    with pytest.raises(TooManyRequests):
        second(with_keys, Credentials(KEY)).get_languages()  # type: ignore[no-untyped-call]


def test_pages_of_every_origin_may_ask_with_a_key(address: str) -> None:
    asked = {"Origin": "https://example.org", "Access-Control-Request-Method": "POST"}
    names = "content-type,x-goog-api-key"
    answer = httpx.options(f"{address}/google{V2}", headers=asked | {"Access-Control-Request-Headers": names})
    assert answer.status_code == 200
    refused = httpx.post(f"{address}/google{V2}", json={}, headers=asked)
    assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (400, "*")


@pytest.fixture
def glossary_id(address: str) -> Iterator[str]:
    dictionary = {"source": "en", "target": "fr", "entries": {"dog": "clebs"}}
    made = post_json(f"{address}/glossaries", name="Animals", dictionaries=[dictionary])["id"]
    yield made
    httpx.delete(f"{address}/glossaries/{made}")


@pytest.mark.parametrize("parent", [PARENT, "projects/any"])
@pytest.mark.parametrize("prefix", ["", "/google"])
def test_the_client_of_version_3_translates_detects_and_lists(address: str, prefix: str, parent: str) -> None:
    client = third(address + prefix)
    plain = {"parent": parent, "contents": TEXTS, "mime_type": "text/plain", "target_language_code": "fr"}
    model = f"{parent}/models/general/nmt"
    found = client.translate_text(plain | {"source_language_code": "en", "model": model}).translations
    assert [one.translated_text for one in found] == [one["text"] for one in native(address)]
    assert [one.model for one in found] == [model] * 2
    assert {one.detected_language_code for one in found} == {""}
    assert [one.detected_language_code for one in client.translate_text(plain).translations] == ["en"] * 2
    detected = client.detect_language(parent=parent, content="the dog runs on the beach", mime_type="text/plain")
    assert detected.languages[0].language_code == "en"
    listed = client.get_supported_languages(parent=parent, display_language_code="de").languages
    described = {one.language_code: (one.display_name, one.support_source, one.support_target) for one in listed}
    assert described["fr"] == ("Französisch", True, True)
    assert described["iw"] == ("Hebräisch", False, True)
    assert not client.get_supported_languages(parent=parent).languages[0].display_name


def test_version_3_follows_glossaries(address: str, glossary_id: str) -> None:
    client = third(address)
    name = f"{PARENT}/glossaries/{glossary_id}"
    asked = {
        "parent": PARENT,
        "contents": ["the dog"],
        "mime_type": "text/plain",
        "target_language_code": "fr",
        "glossary_config": {"glossary": name},
    }
    answer = client.translate_text(asked | {"source_language_code": "en"})
    assert "clebs" in answer.glossary_translations[0].translated_text
    assert answer.glossary_translations[0].glossary_config.glossary == name
    with pytest.raises(BadRequest, match="sourceLanguageCode"):
        client.translate_text(asked)
    [listed] = client.list_glossaries(parent=PARENT)
    assert (listed.name, listed.display_name, listed.entry_count) == (name, "Animals", 1)
    assert listed.language_pair.target_language_code == "fr"
    assert client.get_glossary(name=name) == listed
    for ask in (
        lambda: client.get_glossary(name=f"{PARENT}/glossaries/none"),
        lambda: client.translate_text(
            asked | {"source_language_code": "en", "glossary_config": {"glossary": f"{PARENT}/glossaries/none"}}
        ),
    ):
        with pytest.raises(NotFound):
            ask()


def test_version_3_translates_files(address: str) -> None:
    asked = {
        "parent": PARENT,
        "target_language_code": "fr",
        "document_input_config": {"content": TEXTS[0].encode(), "mime_type": "text/plain"},
    }
    found = third(address).translate_document(asked).document_translation
    assert found.byte_stream_outputs[0].decode() == native(address, TEXTS[:1])[0]["text"]
    assert (found.mime_type, found.detected_language_code) == ("text/plain", "en")
    asked["document_input_config"] = {"content": b"a", "mime_type": "image/png"}
    with pytest.raises(BadRequest, match="image/png"):
        third(address).translate_document(asked)
    body = {"targetLanguageCode": "fr", "documentInputConfig": {"content": "?", "mimeType": "text/plain"}}
    assert "base64" in httpx.post(f"{address}/v3/{PARENT}:translateDocument", json=body).json()["error"]["message"]


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"target_language_code": "xx"}, "`targetLanguageCode` must be a language"),
        ({"source_language_code": "xx"}, "`sourceLanguageCode` must be a language"),
        ({"contents": []}, "contents"),
        ({"contents": ["a"] * 6}, "6 texts; the limit is 5"),
        ({"model": f"{PARENT}/models/general/translation-llm"}, "translation-llm"),
        ({"mime_type": "text/markdown"}, "mimeType"),
        ({"transliteration_config": {"enable_transliteration": True}}, "enableTransliteration"),
    ],
)
def test_errors_of_version_3_are_the_clients_own(address: str, changed: Any, says: str) -> None:
    with pytest.raises(BadRequest, match=says):
        third(address).translate_text({"parent": PARENT, "contents": TEXTS, "target_language_code": "fr"} | changed)
