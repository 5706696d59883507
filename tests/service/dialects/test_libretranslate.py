"""LibreTranslate's client calls a real server. Requests of other clients are sent as those write them."""

import json
import re
from typing import Any
from urllib.error import HTTPError

import httpx
import pytest
from libretranslatepy import LibreTranslateAPI

from tests.service.dialects.conftest import Listen, post_json
from tests.service.encoded_names import NAMES, form

KEY = "a-key-of-a-user"
TEXT = "the red dog runs. a cat sees!"
TRANSLATORS = {"from-fr": (3, "fr", "en"), "from-en": (11, "en", "de zh_Hans")}


@pytest.fixture(scope="module")
def address(listen: Listen) -> str:
    return f"{listen(max_text_characters=1000, max_texts=5)}/libretranslate"


@pytest.fixture(scope="module")
def with_keys(listen: Listen) -> str:
    return f"{listen(api_keys=KEY, rate_limit='40/minute')}/libretranslate"


def native(address: str, **body: Any) -> list[dict[str, Any]]:
    answer: dict[str, Any] = post_json(f"{address.removesuffix('/libretranslate')}/translate", **body)
    return answer["translations"]


def post(address: str, **body: Any) -> Any:
    return post_json(f"{address}/translate", **body)


def refused(response: httpx.Response, status: int, error: str) -> None:
    assert response.status_code == status
    assert response.json() == {"error": error}
    assert response.headers["content-type"] == "application/json"


@pytest.mark.parametrize("slash", ["", "/"])
@pytest.mark.parametrize("key", [None, "any"])
def test_the_client_translates_detects_and_lists(address: str, slash: str, key: str | None) -> None:
    client = LibreTranslateAPI(address + slash, key)
    (expected,) = native(address, text=TEXT, source="en", target="de")
    assert client.translate(TEXT, "en", "de") == expected["text"]
    assert client.translate(TEXT, "EN", "DE") == expected["text"]
    assert client.translate(" 😀\n", "en", "de") == " 😀\n"
    (through,) = native(address, text=TEXT, source="fr", target="de")
    assert client.translate(TEXT, "fr", "de") == through["text"]
    first, *_ = client.detect("the dog runs on the beach")
    assert first["language"] == "en"
    assert 50 < first["confidence"] <= 100
    assert client.detect("42") == [{"confidence": 0, "language": "en"}]
    assert client.languages() == [
        {"code": "de", "name": "German", "targets": ["de"]},
        {"code": "en", "name": "English", "targets": ["de", "en", "zh"]},
        {"code": "fr", "name": "French", "targets": ["de", "en", "fr", "zh"]},
        {"code": "zh", "name": "Chinese", "targets": ["zh"]},
    ]


def test_confidences_are_written_as_whole_numbers(address: str) -> None:
    for path, more in (("detect", {}), ("translate", {"source": "auto", "target": "de"})):
        for text in ("the dog runs on the beach", "le chien", "42"):
            answer = httpx.post(f"{address}/{path}", json={"q": text} | more).raise_for_status()
            numbers = re.findall(r'"confidence":([^,}]*)', answer.text)
            assert numbers
            assert all(number.isdecimal() and 0 <= int(number) <= 100 for number in numbers), answer.text


def test_the_client_shows_the_reason(address: str) -> None:
    with pytest.raises(HTTPError) as raised:
        LibreTranslateAPI(address).translate("a", "zz", "de")
    assert raised.value.code == 400
    assert json.load(raised.value) == {"error": "zz is not supported"}


def test_a_list_is_answered_by_lists(address: str) -> None:
    texts = ["the dog runs", "", "le chien court sur la plage", "42"]
    named = native(address, text=["the dog runs"], source="en", target="de")
    answer = post(address, q=texts, source="auto", target="de", alternatives=2)
    assert answer["translatedText"][0] == named[0]["text"]
    assert answer["translatedText"][1::2] == ["", "42"]
    assert [one["language"] for one in answer["detectedLanguage"]] == ["en", "en", "fr", "en"]
    assert [one["confidence"] == 0 for one in answer["detectedLanguage"]] == [False, True, False, True]
    assert [len(alternative) > 0 for alternative in answer["alternatives"]] == [True, False, True, False]
    assert post(address, q=["the dog runs"], source="en", target="de") == {"translatedText": [named[0]["text"]]}
    assert post(address, q=["", "\n", ""], source="en", target="de") == {"translatedText": ["", "\n", ""]}


def test_alternatives_are_those_of_a_beam_that_holds_them(address: str) -> None:
    (expected,) = native(address, text=TEXT, source="en", target="de", beam_size=8, alternatives=7)
    answer = post(address, q=TEXT, source="en", target="de", alternatives="7")
    assert answer == {
        "translatedText": expected["text"],
        "alternatives": [alternative["text"] for alternative in expected["alternatives"]],
    }
    html = post(address, q="<b>the dog</b>", source="en", target="de", format="html", alternatives=3)
    (expected,) = native(address, text="<b>the dog</b>", source="en", target="de", format="html")
    assert html == {"translatedText": expected["text"], "alternatives": []}


def test_forms_and_queries_are_read(address: str) -> None:
    fields = {
        "q": TEXT,
        "source": "auto",
        "target": "de",
        "format": "text",
        "alternatives": "0",
        "api_key": "",
        "secret": "x",
    }
    (expected,) = native(address, text=TEXT, source="en", target="de")
    parts: Any = {name: (None, value) for name, value in fields.items()}
    for sent in ({"data": fields}, {"files": parts}, {"params": fields}, {"json": fields}):
        answer = httpx.post(f"{address}/translate", **sent).raise_for_status().json()
        assert answer["translatedText"] == expected["text"]
        assert answer["detectedLanguage"]["language"] == "en"


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"q": ""}, "Invalid request: missing q parameter"),
        ({"q": []}, "Invalid request: missing q parameter"),
        ({"source": ""}, "Invalid request: missing source parameter"),
        ({"target": None}, "Invalid request: missing target parameter"),
        ({"target": "zz"}, "zz is not supported"),
        ({"source": "auto", "target": "zz"}, "zz is not supported"),
        ({"target": "auto"}, "auto is not supported"),
        ({"format": "pdf"}, "pdf format is not supported"),
        ({"alternatives": "many"}, "Invalid request: alternatives parameter is not a number"),
        ({"alternatives": float("inf")}, "Invalid request: alternatives parameter is not a number"),
        ({"alternatives": 8}, "Invalid request: alternatives parameter must be <= 7"),
        ({"source": "de", "target": "fr"}, "French (fr) is not available as a target language from German (de)"),
        ({"q": "a" * 1001}, "Invalid request: request (1001) exceeds text limit (1000)"),
        ({"q": ["a"] * 6}, "Invalid request: request (6) exceeds text limit (5)"),
        ({"q": "\ud800"}, "`q` must not have half of a surrogate pair"),
    ],
)
def test_refusals_are_in_libretranslates_words(address: str, changed: dict[str, Any], error: str) -> None:
    body = {"q": "the dog", "source": "en", "target": "de"} | changed
    refused(httpx.post(f"{address}/translate", content=json.dumps(body)), 400, error)


@pytest.mark.parametrize("unset", [None, ""])
def test_unset_fields_have_their_defaults(address: str, unset: Any) -> None:
    (expected,) = native(address, text=TEXT, source="en", target="de")
    body = {"q": TEXT, "source": "en", "target": "de", "format": unset, "alternatives": unset, "api_key": unset}
    answer = httpx.post(f"{address}/translate", json=body).raise_for_status().json()
    assert answer == {"translatedText": expected["text"]}


def test_errors_below_its_path_are_in_libretranslates_words(address: str) -> None:
    refused(httpx.post(f"{address}/translate", content="{"), 400, "Invalid JSON format")
    refused(httpx.post(f"{address}/translate", json=[1]), 400, "Invalid JSON format")
    refused(httpx.post(f"{address}/detect", json={}), 400, "Invalid request: missing q parameter")
    suggestion = {"q": "A dog.", "s": "Un clebs.", "source": "en", "target": "fr"}
    refused(httpx.post(f"{address}/suggest", json=suggestion), 403, "Suggestions are disabled on this server.")
    refused(httpx.post(f"{address}/languages"), 405, "/libretranslate/languages does not take POST; allowed: GET")
    refused(httpx.get(f"{address}/detect"), 405, "/libretranslate/detect does not take GET; allowed: POST")
    refused(httpx.get(f"{address}/nothing"), 404, "Nothing is at /libretranslate/nothing")


def test_a_file_is_translated_and_fetched(address: str) -> None:
    content, form = b"the dog runs.\r\na cat!\r\n", {"source": "EN", "target": "de"}
    answer = httpx.post(f"{address}/translate_file", data=form, files={"file": ("a b.txt", content)}, timeout=60)
    url = answer.raise_for_status().json()["translatedFileUrl"]
    assert url.startswith(f"{address}/download_file/")
    assert url.endswith("/a%20b.de.txt")
    (expected,) = native(address, text=content.decode(), source="en", target="de")
    assert httpx.get(url).raise_for_status().text == expected["text"]
    refused(
        httpx.get(url.replace("/download_file/", "/download_file/x")),
        404,
        "No document has this id and key; it may have been deleted",
    )


@pytest.mark.parametrize("name", NAMES)
def test_the_name_of_a_file_may_be_encoded(address: str, name: str) -> None:
    sent = form(name, b"the dog runs.", source="en", target="de")
    answer = httpx.post(f"{address}/translate_file", **sent, timeout=60).raise_for_status()
    assert answer.json()["translatedFileUrl"].endswith("/%C3%A9t%C3%A9.de.txt")


def test_a_file_is_fetched_below_a_proxys_path_too(listen: Listen) -> None:
    root = f"{listen(root_path='/attend')}/attend"
    form, files = {"source": "en", "target": "de"}, {"file": ("a.txt", b"the dog runs.")}
    answer = httpx.post(f"{root}/libretranslate/translate_file", data=form, files=files, timeout=60).raise_for_status()
    url = answer.json()["translatedFileUrl"]
    assert url.startswith(f"{root}/libretranslate/download_file/")
    assert httpx.get(url).raise_for_status().text


@pytest.mark.parametrize(
    ("changed", "name", "error"),
    [
        ({}, None, "Invalid request: missing file parameter"),
        ({"source": ""}, "a.txt", "Invalid request: missing source parameter"),
        ({"target": ""}, "a.txt", "Invalid request: missing target parameter"),
        ({"target": "zz"}, "a.txt", "zz is not supported"),
        (
            {"source": "de", "target": "fr"},
            "a.txt",
            "French (fr) is not available as a target language from German (de)",
        ),
        ({}, "a.rtf", "Invalid request: file format not supported"),
    ],
)
def test_files_are_refused_in_its_words(address: str, changed: dict[str, str], name: str | None, error: str) -> None:
    form = {"source": "en", "target": "de"} | changed
    files: Any = {"file": (name, b"the dog")} if name else {"other": (None, "x")}
    refused(httpx.post(f"{address}/translate_file", data=form, files=files), 400, error)


def test_a_page_gets_its_settings(address: str) -> None:
    found = httpx.get(f"{address}/frontend/settings").raise_for_status().json()
    assert found["charLimit"] == 1000
    assert (found["keyRequired"], found["apiKeys"], found["suggestions"]) == (False, False, False)
    assert found["filesTranslation"] is True
    assert {".docx", ".srt", ".txt"} < {*found["supportedFilesFormat"]}
    assert found["language"]["source"] == {"code": "auto", "name": "Auto Detect"}
    assert httpx.get(f"{address}/health").json() == {"status": "ok"}


def test_pages_of_every_origin_may_ask(address: str) -> None:
    origin = {"Origin": "https://example.org"}
    asked = origin | {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    before = httpx.options(f"{address}/translate", headers=asked)
    assert before.status_code == 200
    for answer in (
        before,
        httpx.post(f"{address}/translate", json={}, headers=origin),
        httpx.get(f"{address}/x", headers=origin),
    ):
        assert answer.headers["Access-Control-Allow-Origin"] == "*"


@pytest.mark.slow
def test_keys_are_in_the_body_and_each_has_its_rate(with_keys: str) -> None:
    assert LibreTranslateAPI(with_keys, KEY).translate("the dog", "en", "de")
    body = {"q": "the dog", "source": "en", "target": "de"}
    for key in ({}, {"api_key": ""}, {"api_key": "other"}, {"api_key": "\ud800"}):
        refused(httpx.post(f"{with_keys}/translate", content=json.dumps(body | key)), 403, "Invalid API key")
    refused(httpx.post(f"{with_keys}/translate", content="{"), 400, "Invalid JSON format")
    assert LibreTranslateAPI(with_keys).languages()
    settings = httpx.get(f"{with_keys}/frontend/settings").json()
    assert (settings["keyRequired"], settings["apiKeys"]) == (True, True)
    answers = [httpx.post(f"{with_keys}/translate", params=body | {"api_key": KEY}) for _ in range(41)]
    assert answers[-1].status_code == 429
    assert answers[-1].json()["error"].startswith("Slowdown: ")


def test_its_setting_turns_it_off(listen: Listen) -> None:
    answer = httpx.get(f"{listen(dialects='none')}/libretranslate/languages")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_suggestion_is_kept_where_a_memory_is_named_for_it_and_used_once_it_is_reviewed(address: str) -> None:
    native = address.removesuffix("/libretranslate")
    pair = {"source": "en", "target": "de"}
    memory = httpx.post(f"{native}/memories", json={"name": "suggestions", **pair}).raise_for_status().json()["id"]
    path, text = f"{native}/memories/{memory}", "A dog suggests."
    try:
        assert httpx.get(f"{address}/frontend/settings").json()["suggestions"] is True
        suggestion = {"q": text, "s": "Ein Köter.", **pair}
        assert httpx.post(f"{address}/suggest", json=suggestion).json() == {"success": True}
        (kept,) = httpx.get(f"{path}/segments?reviewed=false").json()["segments"]
        assert (kept["source"], kept["target"]) == (text, "Ein Köter.")
        asked = {"text": text, "memory_id": memory, **pair}
        answer = httpx.post(f"{native}/translate", json=asked)
        assert answer.status_code == 200, answer.text
        answer = answer.json()
        assert "memory" not in answer["translations"][0]
        segments = {"segments": [{"source": text, "target": "Ein Hund."}]}
        httpx.post(f"{path}/segments", json=segments).raise_for_status()
        httpx.post(f"{address}/suggest", json=suggestion).raise_for_status()
        translation = httpx.post(f"{native}/translate", json=asked).raise_for_status().json()["translations"][0]
        assert translation["text"] == "Ein Hund.", "a suggestion does not replace what was reviewed"
    finally:
        httpx.delete(path)
