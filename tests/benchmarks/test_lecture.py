from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.lecture.speed import tokens_per_s
from benchmarks.lecture.systems import SYSTEMS, System
from benchmarks.results import Record


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.slug)
@pytest.mark.parametrize("quick", [True, False])
def test_every_system_of_the_lecture_has_a_configuration(system: System, quick: bool) -> None:
    assert system.experiment(quick).name == system.slug


def test_systems_of_a_family_differ_in_nothing_but_the_model() -> None:
    for family in {system.family for system in SYSTEMS}:
        found = [system.experiment(quick=False) for system in SYSTEMS if system.family == family]
        assert all(one.training == found[0].training and one.data == found[0].data for one in found)
        assert len({one.model.model_dump_json() for one in found}) == len(found)


def test_names_are_told_apart() -> None:
    assert len({system.name for system in SYSTEMS}) == len({system.slug for system in SYSTEMS}) == len(SYSTEMS)


def test_tokens_of_both_sides_count() -> None:
    times = {"family": "translation", "batch_tokens": 2048, "training": {"32": 500.0}}
    assert tokens_per_s(times) == 2 * 2048 / 0.5
    assert tokens_per_s(times | {"family": "language-model"}) == 2048 / 0.5


def test_what_was_measured_at_two_commits_stands_in_two_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    from benchmarks.lecture import report

    def record(system: System, **measured: str) -> Record:
        described = {"system": system.name, "family": system.family, "section": system.section}
        return (
            described
            | {"parameters": 1, "steps": 1, "tokens": 1, "curve": [], "command": "it", **measured}
            | {"scores": {"bleu": 13.7, "chrf": 30.9}}
        )

    first, second, third = SYSTEMS[:3]
    records = [
        record(first, date="2026-01-02", commit="later"),
        record(second, date="2026-01-01", commit="sooner"),
        record(third, date="2026-01-02", commit="later"),
    ]
    monkeypatch.setattr(report, "load", lambda part, quick: records if part == "lecture-quality" else [])
    monkeypatch.setattr(report, "machine", lambda part, quick: {"processor": "Some"})
    monkeypatch.setattr(report, "workspace", lambda *parts: tmp_path)
    page = report.write(True, Console(quiet=True)).read_text()
    sooner, later = page.index("Measured 2026-01-01 at sooner"), page.index("Measured 2026-01-02 at later")
    assert page.index(second.name) < sooner < page.index(first.name) < page.index(third.name) < later
