"""Requests of add-ons of browsers and of apps, as these write them: MTranServer's, Immersive Translate's, KISS
Translator's, Selection Translator's, DeepLX's and Lingva's."""

from typing import Any
from urllib.parse import quote

import deepl
import httpx
import pytest

from tests.service.dialects.conftest import Listen, post_json

KEY = "a-key-of-a-user"
TRANSLATORS = {"from-fr": (3, "fr", "en"), "from-en": (11, "en", "fr zh_Hans zh_Hant heb nb")}
TEXT = "the red dog runs"
AUTO = "le chien court sur la plage"


@pytest.fixture(scope="module")
def address(listen: Listen) -> str:
    return listen(max_text_characters=1000, max_texts=5)


@pytest.fixture(scope="module")
def with_keys(listen: Listen) -> str:
    return listen(api_keys=KEY)


def native(address: str, text: str = TEXT, **options: Any) -> str:
    answer = post_json(f"{address}/translate", **{"text": text, "source": "en", "target": "fr"} | options)
    return str(answer["translations"][0]["text"])


def wrong(answer: httpx.Response, status: int, **body: Any) -> None:
    assert (answer.status_code, answer.json()) == (status, body)


def test_mtranserver_translates_detects_and_lists(address: str) -> None:
    url, pair = f"{address}/mtran", {"from": "en", "to": "fr"}
    assert post_json(f"{url}/translate", text=TEXT, **pair) == {"result": native(address)}
    assert post_json(f"{url}/translate", text=AUTO, **{"from": "auto", "to": "en"})["result"]
    html = "<b>the dog</b>"
    expected = native(address, html, format="html")
    assert post_json(f"{url}/translate", text=html, html=True, **pair) == {"result": expected}
    batch = post_json(f"{url}/translate/batch", texts=[TEXT, "", "42"], **pair)
    assert batch == {"results": [native(address), "", "42"]}
    assert post_json(f"{url}/detect", text=AUTO) == {"language": "fr"}
    assert 0.5 < post_json(f"{url}/detect", text=AUTO, minConfidence=0.1)["confidence"] <= 1
    assert post_json(f"{url}/detect", text="42") == {"language": ""}
    listed = httpx.get(f"{url}/languages").json()
    assert listed["languages"] == ["en", "fr", "he", "no", "zh-Hans", "zh-Hant"]
    assert {"from": "fr", "to": "zh-Hant"} in listed["pairs"]
    assert httpx.get(f"{url}/health").json() == {"status": "ok"}
    assert httpx.get(f"{url}/version").json().keys() == {"version"}
    for path in ("__heartbeat__", "__lbheartbeat__"):
        beat = httpx.get(f"{url}/{path}")
        assert (beat.status_code, beat.content) == (200, b"")


@pytest.mark.parametrize(
    ("code", "meant"),
    [("zh", "zh_Hans"), ("zh-CN", "zh_Hans"), ("zh-TW", "zh_Hant"), ("iw", "heb"), ("no", "nb"), ("nb", "nb")],
)
def test_codes_mean_what_they_mean_there(address: str, code: str, meant: str) -> None:
    found = post_json(f"{address}/mtran/translate", text=TEXT, **{"from": "en", "to": code})
    assert found["result"] == native(address, target=meant)


@pytest.mark.parametrize("path", ["/immersive", "/mtran/imme"])
def test_immersive_translate_gets_its_tags_back(address: str, path: str) -> None:
    texts = [TEXT, "the <b0>dog</b0> runs", "", AUTO]
    fields = {"source_lang": "auto", "target_lang": "zh-CN", "text_list": texts}
    found = post_json(f"{address}{path}", **fields)["translations"]
    assert [one["detected_source_lang"] for one in found] == ["en", "en", "zh-CN", "fr"]
    assert found[0]["text"] == native(address, target="zh_Hans")
    assert found[1]["text"] == native(address, texts[1], target="zh_Hans", format="html")
    assert (found[1]["text"].count("<b0>"), found[1]["text"].count("</b0>"), found[2]["text"]) == (1, 1, "")


def test_kiss_translator_sends_a_text_or_texts(address: str) -> None:
    url, pair = f"{address}/mtran/kiss", {"from": "auto", "to": "zh-TW"}
    expected = {"text": native(address, "the red dog runs on the beach", target="zh_Hant"), "src": "en"}
    assert post_json(url, text="the red dog runs on the beach", **pair) == expected
    assert post_json(url, texts=["the red dog runs on the beach"], **pair) == {"translations": [expected]}
    texts = post_json(url, texts=[], **pair)
    assert texts == {"translations": []}
    # its services of Google and DeepL take addresses too
    query = {"client": "gtx", "dt": "t", "sl": "auto", "tl": "fr", "q": "the red dog runs on the beach"}
    single = f"{address}/mtran/google/translate_a/single"
    expected_text = native(address, query["q"])
    assert httpx.get(single, params=query | {"dj": "1"}).json() == {
        "sentences": [{"trans": expected_text, "orig": query["q"]}],
        "src": "en",
    }
    assert httpx.get(single, params=query).json() == [[[expected_text, query["q"], None, None, 1]], None, "en"]
    found = post_json(f"{address}/mtran/deepl", text=[TEXT], source_lang="EN", target_lang="FR")
    assert found == {"translations": [{"detected_source_language": "EN", "text": native(address)}]}


def test_selection_translator_names_languages_in_chinese(address: str) -> None:
    url, names = f"{address}/mtran/hcfy", ["中文(简体)", "英语"]
    text = "the dog runs on the beach\n\nthe cat"
    found = post_json(url, name="x", text=text, destination=names)
    assert (found["from"], found["to"], found["text"]) == ("英语", "中文(简体)", text)
    assert found["result"] == [native(address, line, target="zh_Hans") if line else "" for line in text.split("\n")]
    found = post_json(url, name="x", text="the dog runs on the beach", destination=["英语", "法语"])
    assert (found["from"], found["to"]) == ("英语", "法语")
    found = post_json(url, name="x", text="the dog", destination=["中文(繁体)"], source="英语")
    assert found["result"] == [native(address, "the dog", target="zh_Hant")]


@pytest.mark.parametrize("path", ["/deeplx/translate", "/deeplx/v1/translate", "/mtran/deeplx"])
def test_deeplx_answers_one_text(address: str, path: str) -> None:
    for source in ("EN", "auto", "", None):
        text = "the red dog runs on the beach"
        found = post_json(f"{address}{path}", text=text, source_lang=source, target_lang="ZH-HANT")
        assert isinstance(found.pop("id"), int)
        assert found == {
            "code": 200,
            "data": native(address, text, target="zh_Hant"),
            "alternatives": [],
            "source_lang": "EN",
            "target_lang": "ZH-HANT",
            "method": "Free",
        }


def test_deeplx_has_deepls_shape_too(address: str, with_keys: str) -> None:
    client = deepl.DeepLClient("any", server_url=f"{address}/deeplx")
    assert str(client.translate_text(TEXT, source_lang="EN", target_lang="FR")) == native(address)
    for slash in ("", "/"):
        assert httpx.get(f"{with_keys}/deeplx{slash}").json()["code"] == 200


def test_errors_of_deeplx_have_their_status_as_code(address: str) -> None:
    def ask(**changed: Any) -> httpx.Response:
        return httpx.post(f"{address}/deeplx/translate", json={"text": TEXT, "target_lang": "FR"} | changed)

    wrong(ask(text=""), 404, code=404, message="No text to translate")
    for changed in ({"tag_handling": "markdown"}, {"target_lang": "XX"}, {"source_lang": "XX"}, {"text": "a" * 1001}):
        answer = ask(**changed)
        assert answer.json().keys() == {"code", "message"}
        assert (answer.status_code, answer.json()["code"]) == (400, 400)
        assert next(iter(changed)) in answer.json()["message"] or "limit" in answer.json()["message"]
    assert httpx.get(f"{address}/deeplx/nowhere").json()["code"] == 404


def test_lingva_reads_the_text_from_the_path(address: str) -> None:
    url = f"{address}/lingva/api/v1"
    for text in (TEXT, "the dog/the cat?", "the dog\nthe cat // runs", "100% of the dog & <b>"):
        found = httpx.get(f"{url}/en/fr/{quote(text, safe='')}").json()
        assert found["translation"] == native(address, text)
        assert "detectedSource" not in found["info"]
    found = httpx.get(f"{url}/auto/zh_HANT/{quote(AUTO)}").json()
    assert found["info"]["detectedSource"] == "fr"
    assert found["translation"] == native(address, AUTO, source="fr", target="zh_Hant")
    listed = httpx.get(f"{url}/languages").json()["languages"]
    assert listed[0] == {"code": "auto", "name": "Detect"}
    assert {"code": "iw", "name": "Hebrew"} in listed
    assert {one["code"] for one in listed} == {"auto", "en", "fr", "zh", "zh_HANT", "iw", "no"}
    assert {one["code"] for one in httpx.get(f"{url}/languages/source").json()["languages"]} == {"auto", "en", "fr"}
    targets = {one["code"] for one in httpx.get(f"{url}/languages/target").json()["languages"]}
    assert targets == {"en", "fr", "zh", "zh_HANT", "iw", "no"}


def test_errors_of_lingva_have_its_words(address: str) -> None:
    url = f"{address}/lingva/api/v1"
    wrong(httpx.get(f"{url}/en/xx/a"), 400, error="Invalid target language")
    wrong(httpx.get(f"{url}/xx/en/a"), 400, error="Invalid source language")
    wrong(httpx.get(f"{url}/en/fr"), 404, error="Not Found")
    wrong(httpx.get(f"{url}/languages/all"), 404, error="Not Found")
    wrong(httpx.post(f"{url}/en/fr/a"), 405, error="Method Not Allowed")
    assert "limit" in httpx.get(f"{url}/en/fr/{'a' * 1001}").json()["error"]


PLACES: tuple[dict[str, Any], ...] = (
    {"headers": {"Authorization": f"Bearer {KEY}"}},
    {"headers": {"Authorization": KEY}},
    {"headers": {"Authorization": f"DeepL-Auth-Key {KEY}"}},
    {"headers": {"X-API-Token": KEY}},
    {"params": {"token": KEY}},
    {"params": {"api_token": KEY}},
)


@pytest.mark.parametrize(
    ("path", "body", "error"),
    [
        ("/mtran/translate", {"from": "en", "to": "fr", "text": "a"}, {"error": "Unauthorized"}),
        ("/immersive", {"target_lang": "fr", "text_list": ["a"]}, {"error": "Unauthorized"}),
        ("/deeplx/translate", {"target_lang": "FR", "text": "a"}, {"code": 401, "message": "Invalid access token"}),
    ],
)
def test_keys_may_be_in_many_places(with_keys: str, path: str, body: Any, error: Any) -> None:
    for place in PLACES:
        assert httpx.post(f"{with_keys}{path}", json=body, **place).status_code == 200, place
    wrong(httpx.post(f"{with_keys}{path}", json=body), 401, **error)
    wrong(httpx.post(f"{with_keys}{path}", json=body, params={"token": "wrong"}), 401, **error)


def test_lingvas_key_is_a_name_before_the_host(with_keys: str) -> None:
    url = f"{with_keys}/lingva/api/v1"
    assert httpx.get(f"{url}/en/fr/a", auth=(KEY, "")).status_code == 200
    assert httpx.get(f"{url}/en/fr/a", auth=("any", "wrong")).status_code == 401
    assert httpx.get(f"{url}/en/fr/a", headers={"Authorization": "Basic ?"}).status_code == 401
    assert httpx.get(f"{url}/languages").status_code == 200


@pytest.mark.parametrize("path", ["/mtran/translate", "/immersive", "/deeplx/translate", "/lingva/api/v1/en/xx/a"])
def test_pages_of_every_origin_may_ask_and_read_errors(address: str, path: str) -> None:
    origin = {"Origin": "https://example.org", "Sec-Fetch-Site": "cross-site"}
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type,x-api-token"}
    assert httpx.options(f"{address}{path}", headers=origin | asked).status_code == 200
    answer = httpx.post(f"{address}{path}", json={}, headers=origin)
    assert answer.status_code in (400, 405)
    assert answer.headers["access-control-allow-origin"] == "*"


def test_wrong_requests_of_mtranserver_are_refused(address: str) -> None:
    url = f"{address}/mtran"
    for path, body, says in (
        ("translate", {"to": "xx", "text": "a"}, "`to` must be a language"),
        ("translate", {"from": "xx", "to": "fr", "text": "a"}, "`from` must be a language"),
        ("translate", {"text": "a"}, "`to` is required"),
        ("translate/batch", {"to": "fr", "texts": ["a"] * 6}, "6 texts; the limit is 5"),
        ("imme", {"target_lang": "xx", "text_list": ["a"]}, "`target_lang` must be a language"),
        ("hcfy", {"text": "a", "destination": ["火星语"]}, "must be a language"),
    ):
        answer = httpx.post(f"{url}/{path}", json=body)
        assert answer.status_code == 400
        assert says in answer.json()["error"]
    assert httpx.get(f"{url}/nowhere").json().keys() == {"error"}
