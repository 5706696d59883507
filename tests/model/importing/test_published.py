"""Scores are read from a card's `model-index`, which is written in many ways."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from model.checkpoint import EVALUATION
from model.importing.families import import_model
from model.importing.imported import Options
from model.importing.published import MOST_TESTS, published_scores
from tests.model.importing.marian_checkpoints import write_marian


def card(directory: Path, results: Any) -> Path:
    front = {"license": "mit", "model-index": [{"name": "m", "results": results}]}
    (directory / "README.md").write_text(f"---\n{yaml.safe_dump(front)}---\n# m\n")
    return directory


def result(value: Any, kind: str = "bleu", dataset: Any = None, task: Any = None) -> dict[str, Any]:
    return {
        "task": task or {"type": "translation", "args": "eng-fra"},
        "dataset": dataset or {"name": "flores101-devtest", "type": "flores_101", "args": "eng fra devtest"},
        "metrics": [{"name": kind.upper(), "type": kind, "value": value}],
    }


def test_a_translator_has_bleu_and_chrf_by_test_set_and_languages(tmp_path: Path) -> None:
    results = [result(52.2), result(0.72494, "chr-F"), result(32.7, task={"args": "eng-rus"})]
    assert published_scores(card(tmp_path, results), "translation") == {
        "flores101-devtest.eng-fra": {"bleu": 52.2, "chrf": 72.49},
        "flores101-devtest.eng-rus": {"bleu": 32.7},
    }


def test_a_card_without_scores_for_programs_has_them_in_a_table(tmp_path: Path) -> None:
    table = """| testset               | BLEU  | chr-F |
|-----------------------|-------|-------|
| newstest2008.en.fr \t| 29.4 \t| 0.551 |
| Tatoeba.en.fr \t| 50.5 \t| - |

| language | people |
|---|---|
| French | 300 |
"""
    (tmp_path / "README.md").write_text(f"---\nlicense: mit\n---\n## Benchmarks\n\n{table}")
    expected = {"newstest2008.en.fr": {"bleu": 29.4, "chrf": 55.1}, "Tatoeba.en.fr": {"bleu": 50.5}}
    assert published_scores(tmp_path, "translation") == expected


def test_a_classifier_has_its_accuracy_in_percent(tmp_path: Path) -> None:
    dataset = {"name": "glue", "type": "glue", "config": "sst2", "split": "validation"}
    results = [
        result(0.9105504587155964, "accuracy", dataset, {"type": "text-classification"}),
        result(0.9, "f1", dataset),
    ]
    assert published_scores(card(tmp_path, results), "classification") == {"glue/sst2/validation": {"accuracy": 91.06}}


def test_metrics_of_other_tasks_are_left_out(tmp_path: Path) -> None:
    """Cards of encoders have hundreds of scores of classifiers that were trained on their embeddings."""
    assert published_scores(card(tmp_path, [result(73.8, "accuracy")]), "embedding") == {}
    assert published_scores(tmp_path, "translation") == {}


@pytest.mark.parametrize(
    "results",
    [
        None,
        "52.2",
        [None, 3, {}],
        [{"metrics": {"type": "bleu", "value": 3}, "dataset": {"name": "a"}}],
        [{"metrics": [None, {"type": ["bleu"], "value": 3}], "dataset": {"name": "a"}}],
        [result("52.2"), result(True), result(float("nan")), result(None)],
        [result(52.2, dataset=["flores"])],
        [result(52.2, dataset={"type": "flores"})],
    ],
)
def test_what_cannot_be_read_is_left_out(tmp_path: Path, results: Any) -> None:
    assert published_scores(card(tmp_path, results), "translation") == {}


@pytest.mark.parametrize("front", ["[" * 5000, "a: 2001-99-99", "- a", "a: [", "model-index: {results: 3}"])
def test_a_card_that_is_no_yaml_has_no_scores(tmp_path: Path, front: str) -> None:
    (tmp_path / "README.md").write_text(f"---\n{front}\n---\n")
    assert published_scores(tmp_path, "translation") == {}


def test_of_many_test_sets_some_are_read(tmp_path: Path) -> None:
    results = [result(30.0, dataset={"name": f"test-{i}"}) for i in range(MOST_TESTS + 5)]
    assert len(published_scores(card(tmp_path, results), "translation")) == MOST_TESTS


def test_an_import_keeps_the_scores_for_export(tmp_path: Path) -> None:
    write_marian(tmp_path / "m")
    card(tmp_path / "m", [result(52.2)])
    import_model(str(tmp_path / "m"), tmp_path / "c", Options())
    assert json.loads((tmp_path / "c" / EVALUATION).read_text()) == {"flores101-devtest.eng-fra": {"bleu": 52.2}}
