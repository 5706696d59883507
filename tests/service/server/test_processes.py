import pytest

from service.base.cores import n_workers
from service.base.settings import Settings
from service.server.start import n_servers


@pytest.mark.parametrize(
    ("cores", "settings", "expected"),
    [
        (1, {}, 1),
        (2, {}, 1),
        (4, {}, 1),
        (8, {}, 2),
        (16, {}, 4),
        (64, {}, 4),
        (16, {"workers": 1}, 4),
        (8, {"workers": 1, "threads": 1}, 3),
        (8, {"provider": "cuda"}, 3),
        (8, {"servers": 1}, 1),
        (2, {"servers": 3}, 3),
    ],
)
def test_servers_take_cores_that_workers_leave_free(
    monkeypatch: pytest.MonkeyPatch, cores: int, settings: dict[str, object], expected: int
) -> None:
    for module in ("service.base.cores", "service.server.start"):
        monkeypatch.setattr(f"{module}.usable_cores", lambda: cores)
    assert n_servers(Settings(**settings)) == expected  # type: ignore[arg-type]


def test_workers_are_few_and_one_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.base.cores.usable_cores", lambda: 16)
    assert [n_workers(Settings(), provider) for provider in ("cpu", "cuda")] == [4, 1]
    assert n_workers(Settings(threads=2), "cpu") == 2
    assert n_workers(Settings(workers=3), "cuda") == 3
