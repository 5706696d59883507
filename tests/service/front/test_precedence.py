"""Which of several models answers a request that names none."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from manifest.schema import Manifest
from service.base.metrics import Metrics
from service.base.settings import Settings
from service.front.catalog import Catalog
from tests.service.in_process import load_in_process
from tests.service.tiny_artifacts import TinyTranslator, language
from tests.service.tiny_classifier import TinyClassifier

SCORES = {"evaluation": {"test": {"bleu": 20.0, "accuracy": 90.0}}}
TOY: dict[str, Any] = {"evaluation": {}}


def imported(when: str | None = "2026-11-29T10:00:00+00:00") -> dict[str, Any]:
    return {"origin": {"source": "owner/name", "revision": None, "imported": when}}


Catalogs = Callable[..., Catalog]


@pytest.fixture
def catalog(tmp_path: Path, tiny_translator: TinyTranslator, tiny_classifier: TinyClassifier) -> Catalogs:
    """Make a catalog of models with these changes of their manifests; tasks are told by the beginning of names."""

    def make(models: dict[str, dict[str, Any]], settings: str = "") -> Catalog:
        for name, changes in models.items():
            is_classifier = name.startswith("classify")
            (tiny_classifier if is_classifier else tiny_translator).save(tmp_path / name, name, **{**SCORES, **changes})
        return load_in_process(Settings(artifacts=tmp_path, provider="cpu", threads=1, models=settings), Metrics())

    return make


@pytest.mark.parametrize(
    ("others", "first"),
    [
        ({"a-toy": TOY | imported() | {"parameters": 300_000_000}}, "shipped"),
        ({"a-large-toy": TOY | {"parameters": 300_000_000}}, "shipped"),
        ({"zulu": imported() | {"parameters": 1_000_000}}, "zulu"),
        ({"a": imported() | {"parameters": 9_500_000}, "x-large": imported() | {"parameters": 240_000_000}}, "x-large"),
        ({"own": {"parameters": 9_000_000}}, "own"),
        ({"x-large": {"parameters": 60_000_000}}, "x-large"),
        ({"a-twin": {"parameters": 8_900_000}}, "a-twin"),
    ],
)  # fmt: skip
def test_a_better_translator_answers_but_no_toy(catalog: Catalogs, others: dict[str, Any], first: str) -> None:
    models = catalog({"shipped": {"parameters": 8_900_000}} | others)
    [(translator, _)] = models.directions(None).route("en", "fr", pivot=False)
    assert translator.manifest.name == first
    assert [models.default_for(model) for model in models] == [["translate"], *([[]] * len(others))]


@pytest.mark.parametrize(
    ("others", "first"),
    [
        ({"classify-a": imported()}, "classify-shipped"),
        ({"classify-a": TOY | imported()}, "classify-shipped"),
        ({"classify-toy": TOY}, "classify-shipped"),
    ],
)
def test_another_classifier_leaves_the_answers_to_the_one_before(
    catalog: Catalogs, others: dict[str, Any], first: str
) -> None:
    models = catalog({"classify-shipped": {}} | others)
    assert models.classifier(None).manifest.name == first
    assert [models.default_for(model) for model in models] == [["classify"], []]


def test_of_imported_classifiers_the_earlier_one_goes_on_answering(catalog: Catalogs) -> None:
    earlier, later = imported("2026-11-28T23:00:00+00:00"), imported("2026-11-29T08:00:00+00:00")
    models = catalog({"classify-b": earlier, "classify-a": later, "classify-c": imported(None)})
    assert [model.manifest.name for model in models] == ["classify-c", "classify-b", "classify-a"]
    assert models.classifier(None) is models.classifiers[0]


def test_the_settings_come_before_every_rule(catalog: Catalogs) -> None:
    models = catalog({"a": imported(), "classify-a": {}, "classify-z": TOY, "z": TOY}, "z,a,classify-z,classify-a")
    assert [model.manifest.name for model in models] == ["z", "a", "classify-z", "classify-a"]
    assert models.default_for(models.translators[0])[0] == "translate"
    assert models.classifier(None).manifest.name == "classify-z"


def test_a_model_before_others_leaves_them_the_directions_that_it_has_not(catalog: Catalogs) -> None:
    both = [language("en"), language("fr")]
    models = catalog({"large": imported() | {"parameters": 75_000_000}, "both": {"sources": both, "targets": both}})
    assert [models.default_for(model) for model in models] == [["translate"], ["translate"]]


def test_a_model_that_was_trained_here_and_is_not_large_is_small() -> None:
    small = Manifest.model_construct(origin=None, parameters=8_900_000)
    assert small.is_small
    assert not small.model_copy(update={"parameters": 50_000_000}).is_small
