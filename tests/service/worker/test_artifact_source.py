"""How models are put together, as settings and the machine say."""

from pathlib import Path
from typing import Any, Literal
from unittest.mock import Mock

import pytest

from manifest.schema import MAX_BEAM_SIZE
from service.base.artifact import Artifact, read_artifacts
from service.base.errors import ProviderUnavailable, StartRefused
from service.base.settings import Settings
from service.engine.scheduler import Sequence
from service.engine.search import Search
from service.runner.provider import Provider
from service.runner.translation import TranslationGraphs
from service.worker import artifact_source
from service.worker.artifact_source import ArtifactSource


def source_of(root: Path, **settings: Any) -> ArtifactSource:
    artifacts: dict[str, Artifact] = {artifact.manifest.name: artifact for artifact in read_artifacts(root)}
    return ArtifactSource(artifacts, Settings(**settings)).resolved()


@pytest.mark.parametrize(
    ("provider", "cores", "settings", "workers", "threads"),
    [
        ("cpu", 1, {}, 1, 1),
        ("cpu", 3, {}, 3, 1),
        ("cpu", 16, {}, 4, 1),
        ("cpu", 16, {"threads": 2}, 2, 1),
        ("cpu", 16, {"threads": 8}, 4, 2),
        ("cpu", 2, {"workers": 3}, 3, 1),
        ("cpu", 2, {"workers": 1, "threads": 6}, 1, 6),
        ("cuda", 16, {}, 1, 1),
    ],
)
def test_there_is_a_loop_for_each_core_but_few_and_they_share_the_threads(
    monkeypatch: pytest.MonkeyPatch,
    artifacts: Path,
    provider: Literal["cpu", "cuda"],
    cores: int,
    settings: dict[str, int],
    workers: int,
    threads: int,
) -> None:
    monkeypatch.setattr(artifact_source, "choose_provider", lambda wanted: provider)
    monkeypatch.setattr("service.base.cores.usable_cores", lambda: cores)
    source = source_of(artifacts, **settings)
    assert source.provider is not None
    assert (source.n_workers, source.provider.threads) == (workers, threads)
    assert source.forks == (provider == "cpu" and threads == 1), "neither CUDA nor threads outlive a fork"


@pytest.mark.parametrize(("settings", "shares"), [({}, True), ({"model_memory": "1GB"}, False)])
def test_models_that_stay_share_what_they_compute_in(artifacts: Path, settings: dict[str, Any], shares: bool) -> None:
    provider = source_of(artifacts, provider="cpu", **settings).provider
    assert provider is not None
    assert provider.shares_arena is shares


def test_engines_for_a_device_work_with_the_fewest_slots_that_may_be_set(artifacts: Path) -> None:
    translator = next(artifact for artifact in read_artifacts(artifacts) if artifact.manifest.task == "translation")
    graphs = TranslationGraphs(translator, Provider("cpu", 1))
    for engine in artifact_source.fixed_engines(graphs, Settings(rows=MAX_BEAM_SIZE)).values():
        engine.probe()
        sequences = [Sequence([5, 6, 3], Search(8, beam_size=1)) for _ in range(MAX_BEAM_SIZE)]
        engine.scheduler.add(sequences)
        while engine.scheduler.waiting or engine.n_running:
            engine.step(lambda _: None)
        assert all(sequence.finished for sequence in sequences)


def test_every_model_has_an_engine_for_each_thing_that_it_does(artifacts: Path) -> None:
    source = source_of(artifacts, provider="cpu")
    engines = [name for model in source.models for name in source.load(model, alone=False)]
    assert sorted(engines) == [
        "tiny-en-fr/attention",
        "tiny-en-fr/background_attention",
        "tiny-en-fr/background_beam",
        "tiny-en-fr/background_greedy",
        "tiny-en-fr/beam",
        "tiny-en-fr/embedding",
        "tiny-en-fr/greedy",
        "tiny-sentiment/attention",
        "tiny-sentiment/background_attention",
        "tiny-sentiment/classification",
        "tiny-sentiment/embedding",
    ]


@pytest.mark.parametrize(("seconds", "tokens"), [(0.001, 512), (0.01, 256), (0.02, 128), (1.0, 64)])
def test_a_pass_of_the_encoder_reads_what_it_can_in_time(
    monkeypatch: pytest.MonkeyPatch, seconds: float, tokens: int
) -> None:
    now = [0.0]
    rows = Mock(encode=lambda sources: now.append(now[-1] + seconds))
    monkeypatch.setattr("time.perf_counter", lambda: now[-1])
    assert artifact_source._max_padded_tokens(512, rows, token=3) == pytest.approx(tokens, abs=1)


@pytest.mark.parametrize(
    ("seconds_of_many", "n_tokens", "expected"), [(1.75, 8_000, 48), (1.85, 8_000, 24), (9.0, 250_000, 48)]
)
def test_a_step_has_the_rows_at_which_each_takes_least_time(
    monkeypatch: pytest.MonkeyPatch, seconds_of_many: float, n_tokens: int, expected: int
) -> None:
    """A step of 24 rows takes a second. One of many logits is not tried."""
    now = [0.0]

    def step(tokens: list[int], _positions: list[int], length: int, k: int) -> None:
        now.append(now[-1] + (1.0 if len(tokens) == 24 else seconds_of_many))

    rows = Mock(encode=lambda sources: sources, step=step)
    monkeypatch.setattr("time.perf_counter", lambda: now[-1])
    assert artifact_source._most_rows(rows, n_tokens, token=3) == expected


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine with one."""
    monkeypatch.setattr(artifact_source, "choose_provider", lambda wanted: "cuda")


def test_on_a_gpu_what_has_no_graphs_for_it_is_served_by_the_cpu(gpu: None, artifacts: Path) -> None:
    source = source_of(artifacts, provider="auto")
    assert {source.model_info(model).provider for model in source.models} == {"cpu"}


def test_where_cuda_is_asked_for_an_artifact_without_graphs_for_it_is_refused(gpu: None, artifacts: Path) -> None:
    with pytest.raises(ProviderUnavailable, match=r"ATTEND_PROVIDER .*tiny-en-fr"):
        source_of(artifacts, provider="cuda").load("tiny-en-fr", alone=False)


def test_on_a_gpu_a_limit_of_main_memory_refuses_the_start(gpu: None, artifacts: Path) -> None:
    with pytest.raises(StartRefused, match=r"ATTEND_MODEL_MEMORY .*ATTEND_PROVIDER"):
        source_of(artifacts, provider="auto", model_memory="1GB")


def test_engines_are_known_before_a_model_is_loaded(artifacts: Path) -> None:
    source = source_of(artifacts, provider="cpu")
    for model in source.models:
        assert set(source.model_info(model).engines) == source.load(model, alone=False).keys()
