import logging
from pathlib import Path

import pytest

from service.base.errors import StartRefused
from service.base.settings import Settings
from service.http.keys import Keys
from tests.service.conftest import Serve


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "keys"


def keys_of(**settings: object) -> Keys:
    return Keys(Settings(**settings))  # type: ignore[arg-type]


def test_keys_of_the_setting_and_of_the_file_count_together(file: Path) -> None:
    file.write_bytes("\ufefftwo\r\n\n  clé \n".encode())
    keys = keys_of(api_keys="one", api_keys_file=file)
    assert [keys.have(key) for key in (b"one", b"two", "clé".encode(), b"", b"three")] == [True] * 3 + [False] * 2


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(None, "cannot be read: No such file or directory"), (b" \n\n", "has no key"), (b"\xff\xfe", "is not UTF-8")],
)
def test_a_file_without_keys_is_refused(file: Path, content: bytes | None, sentence: str) -> None:
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(StartRefused, match=f"{file} {sentence}$"):
        keys_of(api_keys_file=file)


def test_a_file_that_is_read_again_replaces_its_keys(file: Path) -> None:
    file.write_text("old")
    keys = keys_of(api_keys="given", api_keys_file=file)
    file.write_text("new")
    keys.reread()
    assert [keys.have(key) for key in (b"given", b"old", b"new")] == [True, False, True]


def test_a_file_that_has_become_bad_leaves_the_keys_as_they_were(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    file.write_text("s3cret")
    keys = keys_of(api_keys_file=file)
    file.unlink()
    keys.reread()
    assert keys.have(b"s3cret")
    assert "the API keys stay as they were" in caplog.text
    assert "s3cret" not in caplog.text


def test_without_a_file_nothing_is_read_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    keys = keys_of(api_keys="one")
    keys.reread()
    assert keys.have(b"one")
    assert caplog.messages == []


@pytest.mark.anyio
async def test_a_key_of_a_file_lets_in_who_has_it(file: Path, serve: Serve) -> None:
    file.write_text("one\n")
    async with serve(api_keys_file=file) as client:
        assert (await client.get("/models")).status_code == 401
        assert (await client.get("/models", headers={"Authorization": "Bearer one"})).status_code == 200
