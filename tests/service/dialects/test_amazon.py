"""Amazon's client calls a real server."""

from collections.abc import Iterator
from typing import Any

import boto3
import httpx
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.service.dialects.conftest import Listen, post_json

KEY = "a-key/of-a-user"
TRANSLATORS = {"from-fr": (3, "fr", "en"), "from-en": (11, "en", "fr zh_Hans zh_Hant heb nb pt_BR")}
TEXT = "the red dog runs"


@pytest.fixture(scope="module")
def address(listen: Listen) -> str:
    return listen(max_text_characters=1000)


@pytest.fixture(scope="module")
def with_keys(listen: Listen) -> str:
    return listen(api_keys=KEY, rate_limit="20/hour")


def client_of(address: str, key: str = "any") -> Any:
    return boto3.client(
        "translate",
        endpoint_url=f"{address}/aws",
        region_name="us-east-1",
        aws_access_key_id=key,
        aws_secret_access_key="any",
        config=Config(retries={"total_max_attempts": 1}),
    )


@pytest.fixture
def client(address: str) -> Any:
    return client_of(address)


def native(address: str, text: str = TEXT, **options: Any) -> str:
    answer = post_json(f"{address}/translate", **{"text": text, "source": "en", "target": "fr"} | options)
    return str(answer["translations"][0]["text"])


def refused(client: Any, name: str, call: str, **fields: Any) -> ClientError:
    """Return the error, of which the client has a class of its own."""
    with pytest.raises(getattr(client.exceptions, name, ClientError)) as raised:
        getattr(client, call)(**fields)
    error: ClientError = raised.value
    assert error.response["Error"]["Code"] == name
    assert error.response["Error"]["Message"]
    return error


def test_the_client_translates(client: Any, address: str) -> None:
    pair = {"SourceLanguageCode": "en", "TargetLanguageCode": "fr"}
    found = client.translate_text(Text=TEXT, Settings={"Formality": "FORMAL"}, **pair)
    assert {name: found[name] for name in (*pair, "TranslatedText")} == {"TranslatedText": native(address), **pair}
    found = client.translate_text(
        Text="le chien court sur la plage", SourceLanguageCode="auto", TargetLanguageCode="en"
    )
    assert found["SourceLanguageCode"] == "fr"
    found = client.translate_text(Text="42", SourceLanguageCode="auto", TargetLanguageCode="fr")
    assert (found["TranslatedText"], found["SourceLanguageCode"]) == ("42", "fr")


@pytest.mark.parametrize(
    ("code", "meant"), [("zh", "zh_Hans"), ("zh-TW", "zh_Hant"), ("he", "heb"), ("no", "nb"), ("pt", "pt_BR")]
)
def test_codes_mean_what_they_mean_at_amazon(client: Any, address: str, code: str, meant: str) -> None:
    found = client.translate_text(Text=TEXT, SourceLanguageCode="en", TargetLanguageCode=code)
    assert (found["TranslatedText"], found["TargetLanguageCode"]) == (native(address, target=meant), code)


def test_languages_come_in_pages(client: Any) -> None:
    listed = client.list_languages(DisplayLanguageCode="de")
    assert listed["DisplayLanguageCode"] == "de"
    named = {language["LanguageCode"]: language["LanguageName"] for language in listed["Languages"]}
    assert named.keys() == {"auto", "en", "fr", "zh", "zh-TW", "he", "no", "pt"}
    assert (named["fr"], named["auto"]) == ("Französisch", "Auto")
    codes, token = [], {}
    while True:
        page = client.list_languages(MaxResults=3, **token)
        codes += [language["LanguageCode"] for language in page["Languages"]]
        if "NextToken" not in page:
            break
        token = {"NextToken": page["NextToken"]}
    assert codes == [*named]
    refused(client, "UnsupportedDisplayLanguageCodeException", "list_languages", DisplayLanguageCode="nl")


@pytest.fixture
def glossary_id(address: str) -> Iterator[str]:
    dictionary = {"source": "en", "target": "fr", "entries": {"dog": "clebs"}}
    made = post_json(f"{address}/glossaries", name="Animals", dictionaries=[dictionary])["id"]
    yield made
    httpx.delete(f"{address}/glossaries/{made}")


def test_terminologies_are_stored_glossaries(client: Any, glossary_id: str) -> None:
    pair = {"SourceLanguageCode": "en", "TargetLanguageCode": "fr"}
    for name in ("Animals", glossary_id):
        found = client.translate_text(Text="the dog", TerminologyNames=[name], **pair)
        assert "clebs" in found["TranslatedText"]
        assert found["AppliedTerminologies"][0]["Name"] == "Animals"
    [listed] = client.list_terminologies()["TerminologyPropertiesList"]
    assert (listed["Name"], listed["TermCount"], listed["TargetLanguageCodes"]) == ("Animals", 1, ["fr"])
    assert client.get_terminology(Name="Animals")["TerminologyProperties"] == listed
    refused(client, "ResourceNotFoundException", "get_terminology", Name="none")
    refused(client, "ResourceNotFoundException", "translate_text", Text="a", TerminologyNames=["none"], **pair)


def test_files_are_translated(client: Any, address: str) -> None:
    fields = {"SourceLanguageCode": "auto", "TargetLanguageCode": "fr"}
    text = f"{TEXT} on the beach"
    found = client.translate_document(Document={"Content": text.encode(), "ContentType": "text/plain"}, **fields)
    assert found["TranslatedDocument"]["Content"].decode() == native(address, text)
    assert found["SourceLanguageCode"] == "en"
    image = {"Content": b"a", "ContentType": "image/png"}
    assert "image/png" in str(
        refused(client, "InvalidRequestException", "translate_document", Document=image, **fields)
    )


def test_errors_are_the_clients_own(client: Any) -> None:
    def ask(name: str, text: str = TEXT, source: str = "en", target: str = "fr") -> ClientError:
        fields = {"Text": text, "SourceLanguageCode": source, "TargetLanguageCode": target}
        return refused(client, name, "translate_text", **fields)

    error = ask("UnsupportedLanguagePairException", target="xx")
    assert (error.response["SourceLanguageCode"], error.response["TargetLanguageCode"]) == ("en", "xx")
    assert "`TargetLanguageCode` must be a language" in str(error)
    ask("UnsupportedLanguagePairException", source="xx")
    ask("TextSizeLimitExceededException", text="a" * 1001)
    ask("DetectedLanguageLowConfidenceException", "собака бежит по берегу моря и видит кошку", "auto")  # noqa: RUF001
    refused(client, "UnknownOperationException", "list_parallel_data")
    refused(client, "InvalidRequestException", "list_languages", NextToken="x")


def test_the_access_key_id_is_the_key(with_keys: str) -> None:
    assert client_of(with_keys, KEY).list_languages()["Languages"]
    refused(client_of(with_keys, "wrong"), "UnrecognizedClientException", "list_languages")
    refused(client_of(with_keys, KEY.split("/")[0]), "UnrecognizedClientException", "list_languages")
    answer = httpx.post(f"{with_keys}/aws", json={}, headers={"Authorization": f"Bearer {KEY}"})
    assert (answer.status_code, answer.json()["__type"]) == (400, "MissingAuthenticationTokenException")
    authorization = f"AWS4-HMAC-SHA256 Credential={KEY}/20261129/us-east-1/translate/aws4_request, Signature=0"
    for _ in range(20):
        httpx.post(f"{with_keys}/aws/", json={}, headers={"Authorization": authorization})
    refused(client_of(with_keys, KEY), "TooManyRequestsException", "list_languages")


def test_wrong_bodies_and_paths_have_amazons_shape(address: str) -> None:
    target = {"X-Amz-Target": "AWSShineFrontendService_20170701.TranslateText"}
    empty = {"Text": "", "SourceLanguageCode": "en", "TargetLanguageCode": "fr"}
    wrong = (
        (httpx.post(f"{address}/aws", content=b"{", headers=target), 400, "SerializationException"),
        (httpx.post(f"{address}/aws/", json=empty, headers=target), 400, "InvalidRequestException"),
        (httpx.post(f"{address}/aws/service/x", json={}), 404, "UnknownOperationException"),
        (httpx.get(f"{address}/aws"), 405, "InvalidRequestException"),
    )
    for answer, status, name in wrong:
        assert (answer.status_code, answer.json()["__type"]) == (status, name)
