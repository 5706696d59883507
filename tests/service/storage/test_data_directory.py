"""Where what is kept for clients lies."""

import os
from pathlib import Path

import pytest

from service.base.errors import StartRefused
from service.base.settings import Settings
from service.storage import data_directory
from service.storage.data_directory import with_data_directory


def test_a_folder_that_is_asked_for_is_made_for_this_user_alone(tmp_path: Path) -> None:
    with with_data_directory(Settings(data=tmp_path / "a" / "b")) as settings:
        assert settings.data == tmp_path / "a" / "b"
        assert settings.data.stat().st_mode & 0o777 == 0o700


def test_no_folder_is_made_where_a_database_keeps_everything(tmp_path: Path) -> None:
    settings = Settings(data=tmp_path / "data", database="postgresql://h/d")
    with with_data_directory(settings) as used:
        assert used is settings
    assert not (tmp_path / "data").exists()


def test_a_folder_that_cannot_be_used_refuses_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(StartRefused, match=r"file/data .*Not a directory"),
        with_data_directory(Settings(data=tmp_path / "file" / "data")),
    ):
        pass
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(StartRefused, match=f"{tmp_path} .*written"), with_data_directory(Settings(data=tmp_path)):
        pass


def test_nothing_is_made_in_the_working_directory_before_it_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with with_data_directory(Settings()) as settings:
        assert settings.data is None
        assert [*tmp_path.iterdir()] == []


def test_without_a_place_data_lie_in_a_folder_that_goes_with_the_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ATTEND_DATA", "")
    monkeypatch.setattr(data_directory, "_may_write", lambda _: False)
    with with_data_directory(Settings(run_directory=tmp_path)) as settings:
        assert settings.data is not None
        assert settings.data.parent == tmp_path
        assert Settings().data == settings.data, "other processes find it"
    assert [*tmp_path.iterdir()] == []
    assert "ATTEND_DATA names a better place" in caplog.text
