"""DeepL's client calls a real server. Requests of other clients are sent as those write them."""

import json
from typing import Any

import deepl
import httpx
import pytest

from tests.service.dialects.conftest import Listen, post_json
from tests.service.fakes import PATIENCE_S

KEY = "a-key:fx"
ENGLISH = "the dog runs on the beach"
FRENCH = "le chien court sur la plage"
TRANSLATORS = {"into": (3, "fr pb", "en"), "from": (11, "en", "de zh_Hans pt nb")}
SETTINGS = {"max_texts": 5}
XML = "<Doc><p>the <b>red dog</b> runs.</p>\n<p>a <x>CAT</x> sees</p></Doc>"


@pytest.fixture(scope="module")
def with_keys(listen: Listen) -> str:
    return listen(api_keys=KEY, rate_limit="3/hour")


@pytest.fixture(autouse=True)
def no_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turn off the client's retries: it waits for seconds before each one."""
    monkeypatch.setattr("deepl.http_client.max_network_retries", 0)


def native(address: str, **body: Any) -> list[str]:
    return [translation["text"] for translation in post_json(f"{address}/translate", **body)["translations"]]


def post(address: str, **body: Any) -> Any:
    answer = post_json(f"{address}/v2/translate", **body)
    assert answer.keys() == {"translations"}
    return answer["translations"]


def refused(response: httpx.Response, status: int, message: str, detail: str | None = None) -> None:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert body.keys() == ({"message"} if detail is None else {"message", "detail"})
    assert message in body["message"]
    assert (detail or "") in body.get("detail", "")


@pytest.mark.parametrize("client", ["", "/"], indirect=True)
def test_the_client_translates_with_and_without_a_source_language(client: deepl.DeepLClient, address: str) -> None:
    texts = [ENGLISH, "", FRENCH, "42 😀"]
    found = client.translate_text(texts, target_lang="de")
    assert isinstance(found, list)
    (english,) = native(address, text=ENGLISH, source="en", target="de")
    (french,) = native(address, text=FRENCH, source="fr", target="de")
    assert [one.text for one in found] == [english, "", french, "42 😀"]
    assert [one.detected_source_lang for one in found] == ["EN", "DE", "FR", "DE"]
    assert [one.billed_characters for one in found] == [*map(len, texts)]
    one = client.translate_text(ENGLISH, source_lang="en", target_lang=deepl.Language.GERMAN)
    assert isinstance(one, deepl.TextResult)
    assert (one.text, one.detected_source_lang, one.model_type_used) == (english, "EN", None)


@pytest.mark.parametrize(
    ("source", "target", "native_source", "native_target"),
    [
        ("EN", "PT-BR", "en", "pt"),
        ("EN", "PT-PT", "en", "pt"),
        ("EN", "ZH", "en", "zh"),
        ("EN", "ZH-HANS", "en", "zh"),
        ("EN", "NB", "en", "nb"),
        ("FR", "EN-GB", "fr", "en"),
        ("PT", "EN-US", "pt-BR", "en"),
        ("PT", "DE", "pt-BR", "de"),
        ("EN-US", "DE", "en", "de"),
        ("pt-br", "DE", "pt-BR", "de"),
    ],
)
def test_a_region_or_script_chooses_a_served_language(
    client: deepl.DeepLClient, address: str, source: str, target: str, native_source: str, native_target: str
) -> None:
    found = client.translate_text(ENGLISH, source_lang=source, target_lang=target)
    assert [str(found)] == native(address, text=ENGLISH, source=native_source, target=native_target)
    assert found.detected_source_lang == source[:2].upper()


def test_the_client_lists_languages(client: deepl.DeepLClient) -> None:
    assert [(language.code, language.name) for language in client.get_source_languages()] == [
        ("EN", "English"),
        ("FR", "French"),
        ("PT", "Portuguese"),
    ]
    targets = client.get_target_languages()
    assert [target.code for target in targets] == ["DE", "EN-GB", "EN-US", "NB", "PT-BR", "PT-PT", "ZH", "ZH-HANS"]
    assert targets[1].name == "English (British)"
    assert {target.supports_formality for target in targets} == {False}


@pytest.mark.parametrize(
    "asked",
    [
        {"params": {"type": "target"}},
        {"data": {"type": "target"}},
        {"json": {"type": "target"}},
        {"data": {"type": "target", "enable_beta_languages": "1"}},
    ],
)
def test_the_type_of_languages_is_read_from_query_form_and_json(address: str, asked: Any) -> None:
    found = httpx.request("GET", f"{address}/v2/languages", **asked).raise_for_status().json()
    assert found[1] == {"language": "EN-GB", "name": "English (British)", "supports_formality": False}
    assert "supports_formality" not in httpx.get(f"{address}/v2/languages?type=source").json()[0]
    refused(httpx.get(f"{address}/v2/languages?type=all"), 400, "Value for 'type' not supported.", "source or target")


def test_usage_counts_the_characters_of_all_translations(client: deepl.DeepLClient, address: str) -> None:
    before = client.get_usage().character.count
    client.translate_text([ENGLISH, "42"], target_lang="de")
    native(address, text="犬", source="en", target="de")
    usage = client.get_usage()
    assert usage.character.count == (before or 0) + len(ENGLISH) + 3
    assert not usage.any_limit_reached
    metrics = httpx.get(f"{address}/metrics").text
    assert f"attend_characters_total {float(usage.character.count)}" in metrics


@pytest.mark.parametrize(
    ("given", "native_fields"),
    [
        ({"tag_handling": "html"}, {"format": "html"}),
        ({"tag_handling": "html", "ignore_tags": "b"}, {"format": "html", "tags": {"keep": ["b"]}}),
        ({"tag_handling": "xml"}, {"format": "xml"}),
        ({"tag_handling": "xml", "tag_handling_version": "v2"}, {"format": "xml"}),
        ({"tag_handling": "xml", "ignore_tags": ["x", "y,p"]}, {"format": "xml", "tags": {"keep": ["x", "p"]}}),
        (
            {"tag_handling": "xml", "outline_detection": False, "splitting_tags": "b, z", "non_splitting_tags": ["p"]},
            {"format": "xml", "tags": {"detect": False, "blocks": ["b"], "inline": ["p"]}},
        ),
        ({"split_sentences": deepl.SplitSentences.OFF}, {"split_sentences": False}),
        ({"split_sentences": "nonewlines", "context": "c", "preserve_formatting": True, "formality": "default"}, {}),
        ({"formality": deepl.Formality.PREFER_MORE, "extra_body_parameters": {"debug": "1", "style_id": None}}, {}),
    ],
)
def test_options_are_followed(client: deepl.DeepLClient, address: str, given: Any, native_fields: Any) -> None:
    found = client.translate_text(XML, source_lang="en", target_lang="de", **given)
    assert [str(found)] == native(address, text=XML, source="en", target="de", **native_fields)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"target_lang": "XX"}, "Value for 'target_lang' not supported., detail: must be one of DE, EN-GB, "),
        ({"target_lang": "ZH-HANT"}, "Value for 'target_lang' not supported."),
        ({"source_lang": "XX"}, "Value for 'source_lang' not supported., detail: must be one of EN, FR, PT, not XX"),
        ({"source_lang": "DE", "target_lang": "FR"}, "Value for 'target_lang' not supported."),
        ({"split_sentences": "2"}, "Value for 'split_sentences' not supported."),
        ({"formality": "more"}, "Target language 'DE' doesn't support formality."),
        ({"formality": "rude"}, "Value for 'formality' not supported."),
        ({"tag_handling": "sgml"}, "Value for 'tag_handling' not supported."),
        ({"style_rule": "s"}, "Value for 'style_id' not supported., detail: is not supported here"),
        ({"custom_instructions": ["be brief"]}, "Value for 'custom_instructions' not supported."),
        (
            {"text": "犬は速い。そして、とても大きいです。"},
            "is probably in Japanese (ja), which is not translated to German; `source_lang` may be: ",
        ),
        ({"text": ["a"] * 6}, "6 texts; the limit is 5"),
        ({"text": "<b>a</i>", "tag_handling": "xml", "tag_handling_version": "v2"}, "Tag handling parsing failed"),
        ({"tag_handling": "xml", "ignore_tags": ["b" * 201]}, "Value for 'ignore_tags' not supported."),
        ({"tag_handling": "xml", "splitting_tags": ["b"] * 101}, "Value for 'splitting_tags' not supported."),
        ({"text": []}, "Value for 'text' not supported."),
    ],
)
def test_the_client_shows_what_is_not_supported(client: deepl.DeepLClient, given: Any, message: str) -> None:
    with pytest.raises(deepl.DeepLException) as raised:
        client.translate_text(**{"text": ENGLISH, "target_lang": "DE"} | given)
    assert raised.value.http_status_code == 400
    assert not raised.value.should_retry
    assert message in str(raised.value)


@pytest.mark.parametrize(
    "sent",
    [
        {"json": {"text": [ENGLISH, "42"], "target_lang": "DE", "show_billed_characters": "1"}},
        {"json": {"text": [ENGLISH, "42"], "target_lang": "de", "source_lang": None, "show_billed_characters": True}},
        {"data": {"text": [ENGLISH, "42"], "target_lang": "de", "source_lang": "", "show_billed_characters": "1"}},
        {"files": [("text", (None, ENGLISH)), ("text", (None, "42")), ("target_lang", (None, "DE")),
                   ("show_billed_characters", (None, "true"))]},
        {"params": {"text": [ENGLISH, "42"], "target_lang": "De", "show_billed_characters": 1}},
    ],
)  # fmt: skip
def test_forms_and_queries_are_read(address: str, sent: Any) -> None:
    answer = httpx.post(f"{address}/v2/translate", **sent).raise_for_status().json()
    (expected,) = native(address, text=ENGLISH, source="en", target="de")
    assert answer["translations"] == [
        {"detected_source_language": "EN", "text": expected, "billed_characters": len(ENGLISH)},
        {"detected_source_language": "DE", "text": "42", "billed_characters": 2},
    ]


def test_answers_have_only_the_requested_fields(address: str) -> None:
    (plain,) = post(address, text="42", target_lang="EN")
    assert plain == {"detected_source_language": "EN", "text": "42"}
    (tagged,) = post(address, text=["a <b>dog"], source_lang="en", target_lang="ZH-Hans", tag_handling="xml",
                     split_sentences=0, model_type="prefer_quality_optimized")  # fmt: skip
    assert tagged["text"].count("<b>") == 1
    assert {name: tagged[name] for name in tagged if name != "text"} == {
        "detected_source_language": "EN",
        "model_type_used": "quality_optimized",
        "tag_handling_version": "v1",
    }
    assert post(address, text="", target_lang="DE") == [{"detected_source_language": "DE", "text": ""}]


def test_errors_have_deepls_shape_below_its_paths_alone(address: str) -> None:
    url = f"{address}/v2/translate"
    refused(httpx.post(url, json={"text": "a"}), 400, "Value for 'target_lang' not supported.", "required")
    refused(httpx.post(url, json={"text": [1], "target_lang": "DE"}), 400, "Value for 'text' not supported.", "string")
    refused(httpx.post(url, content=b"{"), 400, "not JSON")
    refused(httpx.post(url, json={"text": "a" * 50_001, "target_lang": "DE"}), 413, "the limit is 50000")
    refused(httpx.get(url), 405, "does not take GET")
    refused(httpx.get(f"{address}/v3/style_rules"), 404, "/v3/style_rules")
    unknown = httpx.post(f"{address}/v2/write/rephrase", json={})
    assert (unknown.status_code, unknown.json().keys()) == (404, {"message", "error"})
    assert all("/v2/write/rephrase" in said for said in unknown.json().values())
    assert httpx.get(f"{address}/v2").json()["name"] == "attend"


HALF = r"\ud83d"
"""Half of a surrogate pair, which is no character."""


@pytest.mark.parametrize(
    "fields",
    [
        f'"text": "{HALF}"',
        f'"text": "{HALF}", "tag_handling": "xml", "tag_handling_version": "v2"',
        f'"text": "a", "target_lang": "{HALF}"',
        f'"text": "a", "source_lang": "{HALF}"',
        f'"text": "a", "source_lang": "en", "glossary_id": "{HALF}"',
        f'"text": "a", "tag_handling": "{HALF}"',
        '"text": "a", "split_sentences": 1e999',
        f'"text": "a", "split_sentences": {"1" * 4000}',
        f'"text": "a", "split_sentences": {"1" * 5000}',
        '"text": {"a": 1}',
        '"text": "a", "ignore_tags": {"a": 1}, "tag_handling": "xml"',
        '"text": "a", "ignore_tags": [["a"]], "tag_handling": "xml"',
        f'"text": "a", "tag_handling": "xml", "ignore_tags": "{",".join(map(str, range(101)))}"',
    ],
)
def test_odd_values_are_refused(address: str, fields: str) -> None:
    target = "" if '"target_lang"' in fields else ', "target_lang": "DE"'
    response = httpx.post(f"{address}/v2/translate", content=f"{{{fields}{target}}}".encode())
    assert response.status_code in (400, 404), response.text
    assert isinstance(response.json()["message"], str)


def test_unknown_paths_are_not_found(client: deepl.DeepLClient) -> None:
    with pytest.raises(deepl.DeepLException, match=r"Not found, message: .*/v2/write/rephrase"):
        client.rephrase_text(ENGLISH, target_lang="en-GB")
    with pytest.raises(deepl.DeepLException, match=r"Not found, message: .*/v3/style_rules"):
        client.get_all_style_rules()


def test_keys_missing_and_wrong_are_authorization_failures(with_keys: str) -> None:
    client = deepl.DeepLClient("wrong", server_url=with_keys)
    for call in (client.get_usage, client.get_source_languages, lambda: client.translate_text("a", target_lang="de")):
        with pytest.raises(deepl.AuthorizationException, match="key"):
            call()
    url = f"{with_keys}/v2/translate"
    sent = {"text": [ENGLISH], "target_lang": "DE"}
    hint = "Authorization: DeepL-Auth-Key <key>"
    refused(httpx.post(url, json=sent), 403, hint)
    refused(httpx.post(url, json=sent, headers={"Authorization": f"Bearer {KEY}"}), 403, hint)
    allowed = httpx.post(url, json=sent, headers={"Authorization": f"deepl-auth-key {KEY}"})
    assert allowed.status_code == 200
    client = deepl.DeepLClient(KEY, server_url=with_keys)
    assert client.get_usage().character.count == len(ENGLISH)
    assert client.get_source_languages()
    with pytest.raises(deepl.TooManyRequestsException, match="3 per 1 hour"):
        client.get_usage()


def test_it_can_be_turned_off(listen: Listen) -> None:
    address = listen(dialects="open_inference")
    gone = httpx.post(f"{address}/v2/translate", json={})
    assert (gone.status_code, gone.json().keys()) == (404, {"message", "error"})
    assert httpx.get(f"{address}/v3/glossaries").headers["content-type"] == "application/problem+json"
    alone = listen(dialects="deepl")
    refused(httpx.post(f"{alone}/v2/write/rephrase"), 404, "/v2/write/rephrase")


def test_it_is_described(address: str) -> None:
    document = httpx.get(f"{address}/openapi.json", timeout=PATIENCE_S).json()
    translate = document["paths"]["/v2/translate"]["post"]
    assert translate["tags"] == ["deepl"]
    assert "#/components/schemas/DeepLError" in json.dumps(translate["responses"]["400"])
