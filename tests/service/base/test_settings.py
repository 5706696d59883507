from pathlib import Path

import pytest
from pydantic import ValidationError

from service.base.configuration import read_settings
from service.base.errors import StartRefused
from service.base.settings import Settings
from service.dialects import ALL


def test_every_setting_is_described() -> None:
    undescribed = [name for name, field in Settings.model_fields.items() if not field.description]
    assert undescribed == []


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTEND_PORT", "9000")
    monkeypatch.setenv("ATTEND_API_KEYS", "one, two,,")
    monkeypatch.setenv("ATTEND_RATE_LIMIT", "60/minute")
    settings = Settings()
    assert settings.port == 9000
    assert {key.get_secret_value() for key in settings.api_keys} == {"one", "two"}
    assert settings.rate_limit == "60/minute"


def test_an_empty_variable_is_as_good_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTEND_THREADS", "")
    monkeypatch.setenv("ATTEND_RATE_LIMIT", "")
    assert Settings().threads is None
    assert Settings().rate_limit is None


def test_secrets_may_be_files_of_a_folder_and_variables_come_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "attend_database").write_text("postgresql://of-the-file\n")
    (tmp_path / "attend_rate_store").write_text("redis://of-the-file\n")
    (tmp_path / "attend_api_keys").write_text("one,two\n")
    monkeypatch.setenv("ATTEND_SECRETS", str(tmp_path))
    monkeypatch.setenv("ATTEND_RATE_STORE", "redis://of-the-variable")
    settings = read_settings()
    assert settings.secret("database") == "postgresql://of-the-file"
    assert settings.secret("rate_store") == "redis://of-the-variable"
    assert {key.get_secret_value() for key in settings.api_keys} == {"one", "two"}


def test_secrets_that_cannot_be_read_refuse_the_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ATTEND_SECRETS", str(tmp_path / "missing"))
    with pytest.raises(StartRefused, match=r"ATTEND_SECRETS is .*missing'.*: must be a folder"):
        read_settings()
    (tmp_path / "attend_database").write_bytes(b"\xff")
    monkeypatch.setenv("ATTEND_SECRETS", str(tmp_path))
    with pytest.raises(StartRefused, match=r'A file in ATTEND_SECRETS cannot be read: .* field "database"'):
        read_settings()


def test_dialects_are_all_unless_some_are_named() -> None:
    assert Settings().dialects == tuple(dialect.name for dialect in ALL)
    assert Settings(dialects="deepl, openai").dialects == ("deepl", "openai")  # type: ignore[arg-type]
    assert Settings(dialects="none").dialects == ()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "http"),
        ("DIALECTS", "deepl,none"),
        ("PROVIDER", "tpu"),
        ("ROWS", "7"),
        ("WORKERS", "0"),
        ("MODEL_MEMORY", "much"),
        ("MODEL_MEMORY", "0"),
        ("RATE_LIMIT", "often"),
        ("RATE_LIMIT", "1/second;2/minute"),
        ("RATE_LIMIT", "0/minute"),
        ("API_KEYS", " , "),
        ("API_KEYS", ""),
        ("API_KEYS_FILE", ""),
        ("TRUSTED_PROXIES", "10.0.0.1/8"),
        ("TRUSTED_PROXIES", "*, 10.0.0.1"),
        ("PROBE_INTERVAL_S", "inf"),
        ("PROBE_INTERVAL_S", "0.05"),
        ("DRAIN_TIMEOUT_S", "inf"),
        ("MAX_TIMEOUT_S", "1e10"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"ATTEND_{name}", value)
    with pytest.raises(ValidationError, match=name.lower()):
        Settings()


def test_memory_for_models_has_a_unit() -> None:
    assert Settings(model_memory="512MiB").model_memory == 1 << 29
    assert Settings(model_memory="2GB").model_memory == 2 * 10**9


def test_keys_are_not_shown() -> None:
    with pytest.raises(ValidationError) as refused:
        Settings(api_keys=b"s3cret")
    assert "s3cret" not in str(refused.value)
    assert "s3cret" not in repr(Settings(api_keys="s3cret"))
