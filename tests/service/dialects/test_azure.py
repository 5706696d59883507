"""Azure's client calls a real server by API 3.0. Requests of the newest API are sent as its client writes them: both
versions of the client cannot be installed together."""

from typing import Any

import httpx
import pytest
from azure.ai.translation.text import TextTranslationClient
from azure.core.credentials import AccessToken, AzureKeyCredential
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError, ResourceNotFoundError

from service.tasks.translation.leg import NUMBERS_OF_ALIGNED_TOKEN
from tests.service.dialects.conftest import Listen, post_json

KEY = "a-key-of-a-user"
TRANSLATORS = {
    "from-fr": (3, "fr", "en"),
    "from-en": (11, "en", "fr zh_Hans zh_Hant ar nb pt_BR"),
    "better": (5, "en", "fr"),
}
TEXTS = ["the red dog runs", "a cat sees the beach"]
NEWEST = "2026-06-06"


@pytest.fixture(scope="module")
def address(listen: Listen) -> str:
    return listen(max_text_characters=1000, max_texts=6, max_answer_numbers=30 * NUMBERS_OF_ALIGNED_TOKEN)


@pytest.fixture(scope="module")
def with_keys(listen: Listen) -> str:
    return listen(api_keys=KEY)


def client_of(address: str, key: str = "any") -> TextTranslationClient:
    return TextTranslationClient(endpoint=f"{address}/azure", credential=AzureKeyCredential(key), retry_total=0)


@pytest.fixture
def client(address: str) -> TextTranslationClient:
    return client_of(address)


def native(address: str, texts: Any = TEXTS, **options: Any) -> list[dict[str, Any]]:
    answer = post_json(f"{address}/translate", **{"text": texts, "source": "en", "target": "fr"} | options)
    found: list[dict[str, Any]] = answer["translations"]
    return found


def ask(address: str, path: str, body: Any, **query: Any) -> httpx.Response:
    return httpx.post(f"{address}/azure/{path}", json=body, params={"api-version": "3.0"} | query)


def ask_newest(address: str, *inputs: Any) -> httpx.Response:
    return ask(address, "translate", {"inputs": [*inputs]}, **{"api-version": NEWEST})


def wrong(answer: httpx.Response, code: int) -> str:
    assert answer.status_code == code // 1000, answer.text
    assert answer.json()["error"]["code"] == code, answer.text
    message: str = answer.json()["error"]["message"]
    return message


def test_the_client_translates_into_several_languages(client: TextTranslationClient, address: str) -> None:
    found = client.translate(body=TEXTS, to_language=["fr", "zh-Hans", "pt"], from_language="en")
    for i, text in enumerate(TEXTS):
        assert [translation.to for translation in found[i].translations] == ["fr", "zh-Hans", "pt"]
        expected = [native(address, [text], target=target)[0]["text"] for target in ("fr", "zh_Hans", "pt_BR")]
        assert [translation.text for translation in found[i].translations] == expected
        assert found[i].detected_language is None


def test_the_language_of_each_text_is_detected(client: TextTranslationClient) -> None:
    found = client.translate(
        body=["the dog runs on the beach", "le chien court sur la plage", "42", ""], to_language=["en"]
    )
    detected = [one.detected_language for one in found]
    assert [one.language for one in detected if one] == ["en", "fr", "en", "en"]
    assert [one.score > 0 for one in detected if one] == [True, True, False, False]
    assert [one.translations[0].text for one in found][2:] == ["42", ""]


def test_alignment_counts_utf_16_units_and_includes_both_ends(client: TextTranslationClient, address: str) -> None:
    text = "\U0001f600 the dog runs. a cat sees"
    [expected] = native(address, [text], alignment=True)
    [found] = client.translate(body=[text], to_language=["fr"], from_language="en", include_alignment=True)
    [translation] = found.translations
    assert translation.alignment is not None

    def units(text: str) -> bytes:
        return text.encode("utf-16-le")

    pairs = []
    for pair in translation.alignment.proj.split():
        ends = [[int(number) for number in side.split(":")] for side in pair.split("-")]
        texts = [
            units(side)[2 * first : 2 * last + 2].decode("utf-16-le")
            for side, (first, last) in zip((text, translation.text), ends, strict=True)
        ]
        pairs.append(tuple(texts))
    spans = expected["alignment"]["words"]["spans"]
    assert pairs
    assert pairs == [(text[a:b], expected["text"][c:d]) for (a, b), (c, d) in spans]


def test_a_text_that_is_not_aligned_is_translated(client: TextTranslationClient, address: str) -> None:
    long = " ".join(["the red dog runs on the beach."] * 10)
    asked: Any = {"to_language": ["fr"], "from_language": "en", "include_alignment": True}
    [found] = client.translate(body=[long], **asked)
    assert found.translations[0].text == native(address, [long])[0]["text"]
    assert found.translations[0].alignment is None
    [found] = client.translate(body=["<b>the dog</b>"], text_type="Html", **asked)
    assert found.translations[0].text == native(address, ["<b>the dog</b>"], format="html")[0]["text"]
    [found] = client.translate(body=["the dog"], to_language=["en"], from_language="en", include_alignment=True)
    assert found.translations[0].text == "the dog"


def test_lengths_of_sentences_sum_up_to_the_text(client: TextTranslationClient) -> None:
    text = "  the dog runs. a cat sees \U0001f600!  the man rides\n"
    [found] = client.translate(body=[text], to_language=["fr"], from_language="en", include_sentence_length=True)
    lengths = found.translations[0].sent_len
    assert lengths is not None
    assert len(lengths.src_sent_len) == len(lengths.trans_sent_len) == 3
    for of, lengths_of in ((text, lengths.src_sent_len), (found.translations[0].text, lengths.trans_sent_len)):
        assert sum(lengths_of) == len(of.encode("utf-16-le")) // 2
    [bounds] = client.find_sentence_boundaries(body=[text], language="en")
    assert bounds.sent_len == lengths.src_sent_len
    [bounds] = client.find_sentence_boundaries(body=["How are you? I am fine. What did you do today?"])
    assert (bounds.sent_len, bounds.detected_language and bounds.detected_language.language) == ([13, 11, 22], "en")


def test_languages_have_names_in_any_language_and_need_no_key(with_keys: str) -> None:
    listed = client_of(with_keys, "wrong").get_supported_languages(accept_language="de-DE,de;q=0.9")
    assert listed.translation is not None
    assert listed.translation.keys() == {"en", "fr", "zh-Hans", "zh-Hant", "ar", "nb", "pt"}
    arabic = listed.translation["ar"]
    assert (arabic.name, arabic.native_name, arabic.dir) == ("Arabisch", "العربية", "rtl")
    assert listed.translation["fr"].dir == "ltr"
    scoped = client_of(with_keys).get_supported_languages(scope="dictionary")
    assert (scoped.translation, scoped.dictionary) == (None, {})
    newest = httpx.get(f"{with_keys}/azure/languages", params={"api-version": NEWEST}).json()
    assert newest.keys() == {"translation", "transliteration", "models"}
    assert newest["translation"]["fr"] == {"name": "French", "nativeName": "français", "dir": "ltr", "models": []}


def test_detection_lists_alternatives(address: str) -> None:
    [one, other] = ask(address, "detect", [{"Text": "the dog runs on the beach"}, {"text": "42"}]).json()
    assert (one["language"], one["isTranslationSupported"]) == ("en", True)
    assert 0.5 < one["score"] <= 1
    assert {alternative["language"] for alternative in one["alternatives"]} <= {"fr", "zh-Hans", "ar"}
    assert (other["language"], other["score"], other["alternatives"]) == ("en", 0, [])


def test_a_model_may_be_named_as_the_category(client: TextTranslationClient, address: str) -> None:
    asked: Any = {"body": TEXTS[:1], "to_language": ["fr"], "from_language": "en"}
    for category, options in (("better", {"model": "better"}), ("general", {}), ("unknown", {})):
        [found] = client.translate(category=category, **asked)
        assert found.translations[0].text == native(address, TEXTS[:1], **options)[0]["text"]
    with pytest.raises(HttpResponseError) as raised:
        client.translate(category="unknown", allow_fallback=False, **asked)
    assert raised.value.error is not None
    assert raised.value.error.code == 400079


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"to_language": ["xx"]}, 400036),
        ({"to_language": []}, 400036),
        ({"from_language": "xx"}, 400035),
        ({"to_language": ["zh-Hant"], "from_language": "ar"}, 400035),
        ({"body": ["a"] * 7}, 400072),
        ({"body": ["a"] * 3, "to_language": ["fr", "pt", "ar"]}, 400072),
        ({"body": ["a" * 1001]}, 400050),
        ({"text_type": "pdf"}, 400071),
        ({"profanity_action": "Marked"}, 400042),
        ({"from_language": "en", "from_script": "Cyrl"}, 400018),
        ({"to_script": "Cyrl"}, 400004),
        ({"body": ['<mstrans:dictionary translation="x">y</mstrans:dictionary>']}, 400042),
    ],
)
def test_errors_are_the_clients_own(client: TextTranslationClient, asked: Any, code: int) -> None:
    with pytest.raises(HttpResponseError) as raised:
        client.translate(**{"body": TEXTS, "to_language": ["fr"]} | asked)
    assert (raised.value.status_code, raised.value.error and raised.value.error.code) == (400, code)
    assert raised.value.error is not None
    assert raised.value.error.message


def test_the_clients_exceptions_tell_keys_and_paths(address: str, with_keys: str) -> None:
    class Token:
        def get_token(self, *_: Any, **__: Any) -> AccessToken:
            return AccessToken(KEY, 2**40)

    assert client_of(with_keys, KEY).translate(body=["the dog"], to_language=["fr"])
    for place in (
        {"params": {"api-version": "3.0", "to": "fr", "subscription-key": KEY}},
        {"params": {"api-version": "3.0", "to": "fr"}, "headers": {"Authorization": f"Bearer {KEY}"}},
    ):
        assert httpx.post(f"{with_keys}/azure/translate", json=[{"Text": "a"}], **place).status_code == 200  # type: ignore[arg-type]
    for key in ("wrong", ""):
        with pytest.raises(ClientAuthenticationError):
            client_of(with_keys, key).translate(body=["the dog"], to_language=["fr"])
    with pytest.raises(ResourceNotFoundError):
        client_of(address).transliterate(body=["a"], language="ja", from_script="Jpan", to_script="Latn")


def test_bodies_and_versions_that_are_wrong_have_their_codes(address: str) -> None:
    url, query = f"{address}/azure/translate", {"api-version": "3.0", "to": "fr"}
    assert "not JSON" in wrong(httpx.post(url, params=query, content=b"["), 400074)
    wrong(httpx.post(url, params=query, json={"Text": "a"}), 400000)
    wrong(httpx.post(url, params=query, json=[{"Txt": "a"}]), 400005)
    wrong(httpx.post(url, params=query, json=["a"]), 400000)
    wrong(httpx.post(url, params=query, json=[{"Text": 1}]), 400005)
    for version in ({}, {"api-version": "2.0"}):
        wrong(httpx.post(url, params=version, json=[]), 400021)
    wrong(httpx.get(f"{address}/azure/languages", params={"api-version": "3.0", "scope": "all"}), 400001)
    wrong(httpx.get(url), 405000)
    wrong(httpx.get(f"{address}/azure/nowhere"), 404000)


def test_a_source_may_be_suggested(address: str) -> None:
    text = "собака бежит по берегу моря и видит кошку"  # noqa: RUF001
    assert "probably in Russian (ru)" in wrong(ask(address, "translate", [{"Text": text}], to="fr"), 400000)
    answer = ask(address, "translate", [{"Text": text}], to="fr", suggestedFrom="en", **{"from": ""}).json()
    assert answer[0]["translations"][0]["text"] == native(address, [text])[0]["text"]


def test_the_newest_api_has_targets_for_each_text(address: str) -> None:
    two = [{"language": "fr"}, {"language": "fr", "deploymentName": "better"}]
    html = {"text": "<b>le chien</b> court sur la plage", "textType": "Html"}
    answer = ask_newest(
        address,
        {"text": TEXTS[0], "language": "en", "targets": two},
        html | {"targets": [{"language": "en", "tone": "neutral"}]},
    ).json()
    [one, other] = answer["value"]
    expected = [native(address, TEXTS[:1], **options)[0]["text"] for options in ({}, {"model": "better"})]
    assert one == {
        "translations": [{"language": "fr", "text": text, "sourceCharacters": len(TEXTS[0])} for text in expected]
    }
    assert other["detectedLanguage"]["language"] == "fr"
    assert "<b>" in other["translations"][0]["text"]


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"language": "xx"}, 400035),
        ({"targets": [{"language": "xx"}]}, 400036),
        ({"targets": []}, 400000),
        ({"targets": [{"language": "fr", "tone": "formal"}]}, 400042),
        ({"targets": [{"language": "fr", "adaptiveDatasetId": "a"}]}, 400042),
        ({"targets": [{"language": "fr", "deploymentName": "gpt", "allowFallback": False}]}, 400079),
        ({"text": 1}, 400005),
    ],
)
def test_errors_of_the_newest_api_have_its_fields(address: str, changed: Any, code: int) -> None:
    one = {"text": "the dog", "targets": [{"language": "fr"}]} | changed
    wrong(ask_newest(address, one), code)


def test_gone_paths_and_lists_are_refused_by_the_newest_api(address: str) -> None:
    wrong(ask(address, "translate", [{"text": "a"}], **{"api-version": NEWEST}), 400000)
