import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from service.access.key_file import Key, digest_of
from service.access.keys import Keys
from service.base.errors import KeyWrong, RateLimited, RouteForbidden, StartRefused
from service.base.settings import Settings
from tests.service.access.key_tables import table
from tests.service.conftest import Serve, problem


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "keys"


def keys_of(**settings: object) -> Keys:
    return Keys(Settings(**settings))  # type: ignore[arg-type]


def has(keys: Keys) -> Callable[[bytes], bool]:
    return lambda key: keys.find(key) is not None


def test_keys_of_the_setting_and_of_the_file_count_together(file: Path) -> None:
    file.write_bytes("\ufefftwo\r\n\n  clé \n".encode())
    keys = keys_of(api_keys="one", api_keys_file=file)
    assert [*map(has(keys), (b"one", b"two", "clé".encode(), b"", b"three"))] == [True] * 3 + [False] * 2


def test_no_key_is_kept_and_digests_are_compared() -> None:
    keys = Keys(Settings(api_keys="s3cret"))  # type: ignore[arg-type]
    assert keys.find(b"s3cret") is not None
    assert keys.find(b"s3cre") is None
    assert "s3cret" not in repr(vars(keys))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "cannot be read: No such file or directory"),
        (b" \n\n", "has no key"),
        (b"a\n\xff", "is not UTF-8 (at line 2)"),
    ],
)
def test_a_file_without_keys_is_refused(file: Path, content: bytes | None, sentence: str) -> None:
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(StartRefused, match=re.escape(f"{file} {sentence}")):
        keys_of(api_keys_file=file)


def test_a_file_that_is_read_again_replaces_its_keys(file: Path) -> None:
    file.write_text("old")
    keys = keys_of(api_keys="given", api_keys_file=file)
    file.write_text("new")
    keys.reread()
    assert [*map(has(keys), (b"given", b"old", b"new"))] == [True, False, True]


def test_a_file_that_has_become_bad_leaves_the_keys_as_they_were(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    file.write_text("s3cret")
    keys = keys_of(api_keys_file=file)
    file.unlink()
    keys.reread()
    assert has(keys)(b"s3cret")
    assert "the API keys stay as they were" in caplog.text
    assert "s3cret" not in caplog.text


def test_without_a_file_nothing_is_read_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    keys = keys_of(api_keys="one")
    keys.reread()
    assert has(keys)(b"one")
    assert caplog.messages == []


@pytest.mark.anyio
async def test_a_key_of_a_file_lets_in_who_has_it(file: Path, serve: Serve) -> None:
    file.write_text("one\n")
    async with serve(api_keys_file=file) as client:
        assert (await client.get("/models")).status_code == 401
        assert (await client.get("/models", headers={"Authorization": "Bearer one"})).status_code == 200


WRONG = [
    ("[[keys]", "Expected ']]' at the end of an array declaration"),
    ('# mine\nname = "a"', "`name` is unknown; each key is a table [[keys]]"),
    ('name = "a"', "`name` is unknown; each key is a table [[keys]]"),
    ("[[key]]\n", "`key` is unknown; each key is a table [[keys]]"),
    ("keys = [1]", "`keys` must be a valid dictionary"),
    ("[[keys]]\n", "`name` of key 1 is required"),
    ('"keys" = [\n{name = "a"},\n]', "`sha256` of key 1 (a) is required"),
    ('[[keys]]\nname = "a"', "`sha256` of key 1 (a) is required"),
    (table("a", "k") + table("b"), "`sha256` of key 2 (b) must"),
    (table("a", "k") + table("b", "k", sha256="s3cret"), "`sha256` of key 2 (b) must be the SHA-256 of a key: 64 hexa"),
    (table("a b", "k"), "`name` of key 1 (a b) must be 1 to 64 letters, digits, and characters of `_.@-`"),
    (table("a", "k", rate="often"), "`rate` of key 1 (a) must be one rate, such as 60/minute"),
    (table("a", "k", characters_per_month=0), "`characters_per_month` of key 1 (a) must be greater than or equal to 1"),
    (table("a", "k", characters_per_month="9"), "`characters_per_month` of key 1 (a) must be a valid integer"),
    (table("a", "k", routes=["translate"]), "`routes` of key 1 (a) must be a path that begins with /"),
    (table("a", "k", quota=1), "`quota` of key 1 (a) is unknown"),
    (table("a", "k") + table("a", "l"), "`name` must be another one for each key, but 2 have a"),
    (table("a", "k") + table("b", "k"), f"`sha256` must be another one for each key, but 2 have {digest_of(b'k')}"),
]


@pytest.mark.parametrize("content", [f"[{'a.' * 6_000}a]", "k" * 10_001])
def test_a_file_with_a_line_that_would_take_long_is_refused(file: Path, content: str) -> None:
    file.write_text(f"\n{content}")
    with pytest.raises(StartRefused, match=r"has a line of 1[0-9]{4} characters \(at line 2\); the limit is 10000"):
        keys_of(api_keys_file=file)


@pytest.mark.parametrize(("content", "sentence"), WRONG)
def test_a_wrong_file_is_refused_in_a_sentence_that_names_what_is_wrong(
    file: Path, content: str, sentence: str
) -> None:
    file.write_text(content)
    with pytest.raises(StartRefused) as refused:
        keys_of(api_keys_file=file)
    assert str(refused.value).startswith(f"The file of API keys {file} is wrong: {sentence}")
    assert "s3cret" not in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("[[keys]]\nname = 'a'\n[[keys]", 3),
        (f"# mine\n\n{table('a', 'k')}\n  [[ keys ]]\n# no key\nname = 'b'\n", 7),
        (f"{table('a', 'k')}\n[[keys]]\nname = 'b'\nrate = 'often'\nsha256 = '{digest_of(b'l')}'\n", 7),
        (f"{table('a', 'k')}\n{table('b', 'k')}", 7),
    ],
    ids=["no TOML", "a field that is missing", "a wrong value", "twice"],
)
def test_the_line_is_told(file: Path, content: str, line: int) -> None:
    file.write_text(content)
    with pytest.raises(StartRefused, match=rf"\(at line {line}(, column \d+)?\)$"):
        keys_of(api_keys_file=file)


@pytest.mark.anyio
async def test_a_key_has_its_own_routes_and_rate_and_its_name_in_log_and_metrics(
    file: Path, serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    site = table("site", "s3cret", "n3xt", routes=["/classify", "/translate"], rate="3/hour")
    file.write_text(site + table("app", "0ther"))
    async with serve(api_keys_file=file, rate_limit="4/hour", access_log=True) as client:

        async def classify(key: str, path: str = "/classify") -> Any:
            return await client.post(path, json={"text": "the dog"}, headers={"Authorization": f"Bearer {key}"})

        problem(await classify("wrong"), KeyWrong)
        forbidden = problem(await classify("n3xt", "/embed"), RouteForbidden)
        assert forbidden["detail"] == "The key site may not use /embed; available: /classify, /translate"
        statuses = [(await classify(key)).status_code for key in ("s3cret", "n3xt", "s3cret", "n3xt")]
        assert statuses == [200, 200, 200, 429], "both keys of a name share its rate"
        assert "3 per 1 hour" in problem(await classify("s3cret"), RateLimited)["detail"]
        assert [(await classify("0ther")).status_code for _ in range(5)] == [200] * 4 + [429]
        metrics = (await client.get("/metrics")).text
    assert 'attend_key_requests_total{key="site"} 6.0' in metrics
    assert 'attend_key_characters_total{key="site"} 21.0' in metrics
    assert 'attend_key_requests_total{key="app"} 5.0' in metrics
    lines = [record for record in caplog.records if getattr(record, "path", None) == "/classify"]
    assert [getattr(record, "key", None) for record in lines] == [None] + ["site"] * 5 + ["app"] * 5
    assert lines[1].getMessage().endswith(" site")
    assert not [secret for secret in ("s3cret", "n3xt", "0ther") if secret in caplog.text + metrics]


@pytest.mark.parametrize(
    ("path", "may"),
    [("/translate", True), ("/translate/document/1", True), ("/translated", False), ("/v2", True), ("/v2/x", True)],
)
def test_a_route_is_a_path_and_what_is_below(path: str, may: bool) -> None:
    assert Key("", routes=("/translate", "/v2/")).may_use(path) is may
    assert Key("").may_use(path)
