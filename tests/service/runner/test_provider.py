from typing import Any

import onnxruntime
import pytest

from service.base.errors import ProviderUnavailable, StartRefused
from service.runner import provider
from service.runner.device_graphs import COPY
from service.runner.provider import Provider, choose_provider


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without a GPU: CUDA is listed, but sessions fall back to the CPU."""
    monkeypatch.setattr(Provider, "_providers", lambda self, captured: ["CPUExecutionProvider"])


class Session:
    """A session on a GPU: it uses CUDA, and runs unless a library is missing."""

    missing: str | None = None

    def __init__(self, *arguments: object, **options: object) -> None:
        pass

    def get_providers(self) -> list[str]:
        return ["CUDAExecutionProvider", "CPUExecutionProvider"]

    def run(self, *arguments: object) -> None:
        if self.missing is not None:
            raise RuntimeError(self.missing)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with a GPU."""
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CUDAExecutionProvider"])
    monkeypatch.setattr(onnxruntime, "InferenceSession", Session)


def test_auto_is_the_cpu_where_cuda_is_listed_but_cannot_be_used(no_gpu: None) -> None:
    assert choose_provider("auto") == "cpu"


@pytest.mark.parametrize(("wanted", "chosen"), [("auto", "cuda"), ("cpu", "cpu")])
def test_where_cuda_can_be_used_auto_is_cuda_and_cpu_is_the_cpu(gpu: None, wanted: Any, chosen: str) -> None:
    assert choose_provider(wanted) == chosen


def test_cuda_is_refused_with_the_reason_where_it_cannot_be_used(no_gpu: None) -> None:
    with pytest.raises(ProviderUnavailable, match="ATTEND_PROVIDER is cuda, but CUDA cannot be used here: "):
        choose_provider("cuda")


def test_cuda_is_refused_where_it_loads_and_does_not_run(gpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Session, "missing", "cuDNN is unavailable\nand so on")
    with pytest.raises(ProviderUnavailable, match=r"cannot be used here: cuDNN is unavailable$"):
        choose_provider("cuda")
    assert choose_provider("auto") == "cpu"


def test_a_session_that_fell_back_to_the_cpu_is_refused(no_gpu: None) -> None:
    with pytest.raises(StartRefused, match="could not start its CUDA provider"):
        Provider("cuda", threads=1).session(COPY)


def test_a_process_loads_the_cuda_libraries_before_its_first_session(
    gpu: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    monkeypatch.setattr(onnxruntime, "preload_dlls", lambda: events.append("libraries"))
    monkeypatch.setattr(Session, "__init__", lambda self, *arguments, **options: events.append("session"))
    provider._load_cuda.cache_clear()
    for name in ("cpu", "cuda", "cuda"):
        Provider(name, threads=1).session(COPY)
    assert events == ["session", "libraries", "session", "session"]


def test_cuda_is_refused_by_a_build_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CPUExecutionProvider"])
    with pytest.raises(ProviderUnavailable, match="has no CUDA provider"):
        choose_provider("cuda")


def test_choosing_prints_nothing(no_gpu: None, capfd: pytest.CaptureFixture[str]) -> None:
    choose_provider("auto")
    assert capfd.readouterr() == ("", "")


def test_a_graph_that_cannot_be_loaded_is_refused_by_name() -> None:
    with pytest.raises(StartRefused, match=r"encoder\.onnx: ONNX Runtime .* cannot load it: "):
        Provider("cpu", threads=1).session(b"not a graph", name="encoder.onnx")


def test_a_session_has_the_threads_of_its_provider_and_does_not_spin() -> None:
    options = Provider("cpu", threads=3).session(COPY).get_session_options()
    assert options.intra_op_num_threads == 3
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"
