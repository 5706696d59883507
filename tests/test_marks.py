"""The marks of the tests, and what CI makes of skips."""

import subprocess
from types import SimpleNamespace

import pytest

from tests.conftest import pytest_runtest_makereport


def test_a_test_that_starts_a_process_fails_without_the_mark(
    monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    monkeypatch.setattr(pytestconfig.option, "markexpr", "not process")
    with pytest.raises(pytest.fail.Exception, match="starts a process, and has no mark"):
        subprocess.run(["true"], check=False)


@pytest.mark.process
def test_a_test_with_the_mark_starts_processes() -> None:
    assert subprocess.run(["true"], check=False).returncode == 0


@pytest.mark.parametrize(
    ("environment", "reason", "outcome"),
    [
        ({"CI": "true"}, "Skipped: PostgreSQL is not installed", "failed"),
        ({"CI": "true"}, "Skipped: needs ray[serve], the extra `ray`", "skipped"),
        ({}, "Skipped: PostgreSQL is not installed", "skipped"),
    ],
)
def test_a_skip_for_a_program_that_ci_installs_fails_in_ci(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], reason: str, outcome: str
) -> None:
    monkeypatch.delenv("CI", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    report = SimpleNamespace(skipped=True, outcome="skipped", longrepr=("test_it.py", 1, reason))
    hook = pytest_runtest_makereport()
    next(hook)
    with pytest.raises(StopIteration):
        hook.send(report)
    assert report.outcome == outcome
