"""Each key of DeepL's client has a quota and a usage of its own, which other routes share."""

from pathlib import Path

import deepl
import httpx
import pytest

from tests.service.access.key_tables import table
from tests.service.dialects.conftest import Listen
from tests.service.fakes import PATIENCE_S

TRANSLATORS = {"into": (3, "fr pb", "en"), "from": (11, "en", "de zh_Hans pt nb")}
TEXT = "the dog runs on the beach"


@pytest.fixture(scope="module")
def keyed(listen: Listen, tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("keys") / "keys.toml"
    file.write_text(table("site", "one", characters_per_month=100) + table("app", "two", "next") + table("ui", "three"))
    return listen(api_keys_file=file)


@pytest.fixture(autouse=True)
def no_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deepl.http_client.max_network_retries", 0)


def used(client: deepl.DeepLClient) -> tuple[int | None, int | None]:
    usage = client.get_usage().character
    return usage.count, usage.limit


def native(address: str, key: str, path: str = "/translate", **body: str) -> httpx.Response:
    return httpx.post(f"{address}{path}", json=body, headers={"Authorization": f"Bearer {key}"})


def test_each_key_has_its_own_usage_and_quota(keyed: str, tmp_path: Path) -> None:
    site, app, following = (deepl.DeepLClient(key, server_url=keyed) for key in ("one", "two", "next"))
    assert used(site) == (0, 100)
    site.translate_text([TEXT, "", TEXT], target_lang="de")
    assert used(site) == (50, 100)
    (tmp_path / "a.txt").write_text("the dog\n\na red cat runs", encoding="utf-8")
    site.translate_document_from_filepath(tmp_path / "a.txt", tmp_path / "b.txt", target_lang="de")
    assert used(site) == (73, 100)
    with pytest.raises(deepl.DeepLException):
        site.translate_text(TEXT, target_lang="xx")
    assert used(site) == (73, 100), "what failed does not count"
    site.translate_text(TEXT, target_lang="de")
    with pytest.raises(deepl.QuotaExceededException, match="Quota for this billing period has been exceeded"):
        site.translate_text(TEXT, target_lang="de")
    with pytest.raises(deepl.QuotaExceededException):
        site.translate_document_from_filepath(tmp_path / "a.txt", tmp_path / "c.txt", target_lang="de")
    assert used(site) == (98, 100)
    site.translate_text("ox", target_lang="de")
    assert site.get_usage().any_limit_reached

    refused = native(keyed, "one", text=TEXT, target="de")
    assert (refused.status_code, refused.json()["code"]) == (429, "quota_exceeded")
    assert refused.json()["detail"] == (
        "The key site has used 100 of its 100 characters of this month; this request needs 25"
    )
    assert "Retry-After" not in refused.headers

    assert native(keyed, "two", text=TEXT, target="de").status_code == 200
    assert native(keyed, "next", "/classify", text="dog").status_code == 200
    assert used(app) == used(following) == (28, 10**12)


def test_a_quota_is_known_to_openapi(keyed: str) -> None:
    paths = httpx.get(f"{keyed}/openapi.json", timeout=PATIENCE_S).json()["paths"]
    assert {"429", "456"} <= paths["/v2/translate"]["post"]["responses"].keys()
    assert "456" not in paths["/translate"]["post"]["responses"]
