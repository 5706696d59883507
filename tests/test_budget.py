"""The price of what users get: pyproject.toml limits the lines, the code that a request passes, and the settings."""

import tomllib

import pytest

from benchmarks.request_path import passed
from service.base.settings import Settings
from tests.running_service import ROOT

BUDGET = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["attend"]["budget"]

WITH = {"export": ("export", "manifest")}
"""Packages that are counted together."""


def check(what: str, number: int, limit: int) -> None:
    assert number <= limit, (
        f"{what}: {number:,}, but the budget in pyproject.toml is {limit:,}. Make do with less, or raise the budget "
        "and say in the body of the commit what users get for it."
    )


@pytest.mark.parametrize("package", BUDGET["lines"])
def test_lines(package: str) -> None:
    files = (path for part in WITH.get(package, (package,)) for path in (ROOT / part).rglob("*.py"))
    lines = sum(path.read_bytes().count(b"\n") for path in files)
    check(f"lines of {' and '.join(WITH.get(package, (package,)))}", lines, BUDGET["lines"][package])


def test_settings() -> None:
    check("settings", len(Settings.model_fields), BUDGET["settings"])


@pytest.mark.process
@pytest.mark.slow
def test_the_code_that_a_request_passes() -> None:
    """Five requests tell: what a worker does now and then is not in all of them."""
    for name, entered in passed(BUDGET["requests"], times=5).items():
        limit = BUDGET["requests"][name]
        check(f"files that a request passes ({name})", entered.n_files, limit["files"])
        check(f"functions that a request passes ({name})", len(entered.functions), limit["functions"])
        check(f"calls of functions in a request ({name})", entered.n_calls, limit["calls"])


def test_what_is_over_the_budget_is_told_with_the_number() -> None:
    with pytest.raises(AssertionError, match=r"lines of model: 1,001, but the budget in pyproject\.toml is 1,000\. "):
        check("lines of model", 1001, 1000)
