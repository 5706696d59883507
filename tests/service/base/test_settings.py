import pytest
from pydantic import ValidationError

from service.base.settings import Settings


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


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "http"),
        ("PROVIDER", "tpu"),
        ("ROWS", "7"),
        ("WORKERS", "-1"),
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


def test_memory_for_models_has_a_unit_and_needs_workers() -> None:
    assert Settings(model_memory="512MiB").model_memory == 1 << 29
    assert Settings(model_memory="2GB").model_memory == 2 * 10**9
    with pytest.raises(ValidationError, match="ATTEND_WORKERS is 0"):
        Settings(model_memory="2GB", workers=0)


def test_keys_are_not_shown() -> None:
    with pytest.raises(ValidationError) as refused:
        Settings(api_keys=b"secret")
    assert "secret" not in str(refused.value)
    assert "secret" not in repr(Settings(api_keys="secret"))
