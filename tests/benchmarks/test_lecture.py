import pytest

from benchmarks.lecture.speed import tokens_per_s
from benchmarks.lecture.systems import SYSTEMS, System


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.slug)
@pytest.mark.parametrize("quick", [True, False])
def test_every_system_of_the_lecture_has_a_configuration(system: System, quick: bool) -> None:
    assert system.config(quick).name == system.slug


def test_systems_of_a_family_differ_in_nothing_but_the_model() -> None:
    for family in {system.family for system in SYSTEMS}:
        configs = [system.config(quick=False) for system in SYSTEMS if system.family == family]
        assert all(config.training == configs[0].training and config.data == configs[0].data for config in configs)
        assert len({config.model.model_dump_json() for config in configs}) == len(configs)


def test_names_are_told_apart() -> None:
    assert len({system.name for system in SYSTEMS}) == len({system.slug for system in SYSTEMS}) == len(SYSTEMS)


def test_tokens_of_both_sides_count() -> None:
    times = {"family": "translation", "batch_tokens": 2048, "training": {"32": 500.0}}
    assert tokens_per_s(times) == 2 * 2048 / 0.5
    assert tokens_per_s(times | {"family": "language-model"}) == 2048 / 0.5
