"""How models are put together, as settings and the machine say."""

from pathlib import Path
from typing import Literal
from unittest.mock import Mock

import pytest

from service import loading
from service.errors import ProviderUnavailable
from service.metrics import Metrics
from service.runner.provider import Provider
from service.settings import Settings


@pytest.mark.parametrize(
    ("provider", "threads", "workers"), [("cpu", 1, 1), ("cpu", 3, 3), ("cpu", 16, 4), ("cuda", 16, 1)]
)
def test_a_model_has_a_worker_per_thread_but_few(provider: Literal["cpu", "cuda"], threads: int, workers: int) -> None:
    assert loading.default_workers(Provider(provider, threads)) == workers


@pytest.mark.parametrize(("workers", "expected"), [(None, 2), (3, 3)])
def test_a_model_has_as_many_workers_as_settings_say(
    monkeypatch: pytest.MonkeyPatch, artifacts: Path, workers: int | None, expected: int
) -> None:
    monkeypatch.setattr(loading, "Worker", Mock())
    models = loading.load_models(Settings(artifacts=artifacts, provider="cpu", threads=2, workers=workers), Metrics())
    assert len(models.translators[0].pool.engines) == expected


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine with one."""
    monkeypatch.setattr(loading, "choose_provider", lambda wanted, threads: Provider("cuda", 1))


def test_on_a_gpu_what_has_no_graphs_for_it_is_served_by_the_cpu(gpu: None, artifacts: Path) -> None:
    models = loading.load_models(Settings(artifacts=artifacts, provider="auto", workers=0), Metrics())
    assert {model.provider for model in [*models.translators, *models.classifiers, *models.embedders]} == {"cpu"}


def test_where_cuda_is_asked_for_an_artifact_without_graphs_for_it_is_refused(gpu: None, artifacts: Path) -> None:
    with pytest.raises(ProviderUnavailable, match="ATTEND_PROVIDER is cuda, but tiny-en-fr has no graphs for it"):
        loading.load_models(Settings(artifacts=artifacts, provider="cuda", workers=0), Metrics())
