"""The price of what users get: pyproject.toml limits the lines, the code that a request passes, and the settings."""

import tomllib

import pytest

from benchmarks.request_path import Price, prices
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


@pytest.fixture(scope="module")
def price_of() -> dict[str, Price]:
    """Five requests tell: what a worker does now and then is not in all of them. On a busy machine five others may tell
    less."""
    found = prices(BUDGET["requests"], times=5)
    limits = BUDGET["requests"]
    over = [name for name, price in found.items() if any(n > limits[name][what] for what, n in price.costs.items())]
    return found | (prices(over, times=5) if over else {})


@pytest.mark.process
@pytest.mark.slow
def test_what_a_request_does(price_of: dict[str, Price]) -> None:
    for name, what, number in ((name, *cost) for name, price in price_of.items() for cost in price.costs.items()):
        check(f"{what.replace('_', ' ')} of a request ({name})", number, BUDGET["requests"][name][what])


@pytest.mark.process
@pytest.mark.slow
def test_system_calls_of_a_request_are_counted(price_of: dict[str, Price]) -> None:
    if any("system_calls" not in price.costs for price in price_of.values()):
        pytest.skip("strace is not installed, or may not attach to a process")


def test_what_is_over_the_budget_is_told_with_the_number() -> None:
    with pytest.raises(AssertionError, match=r"lines of model: 1,001, but the budget in pyproject\.toml is 1,000\. "):
        check("lines of model", 1001, 1000)
