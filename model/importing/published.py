"""The scores that the owner of a model published in its card, in the form in which the hub reads them."""

import re
from collections.abc import Iterator, Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from model.importing.hugging_face import front_matter

METRICS = {
    "translation": {"bleu": "bleu", "chrf": "chrf", "chr-f": "chrf"},
    "classification": {"accuracy": "accuracy"},
}
"""Our names of the metrics that are read, by the task of a model and by their names in cards."""
SHARES = ("accuracy", "chrf")
"""Metrics that some cards give as shares of 1, and others in percent, as we do."""
MOST_TESTS = 50
"""Most test sets that are read: cards of models of many languages have hundreds."""

LANGUAGES = re.compile(r"[a-z_]+-[a-z_]+", re.IGNORECASE)


def published_scores(directory: Path, task: str) -> dict[str, dict[str, float]]:
    """Return the scores in the card of a directory by test set and metric; those that cannot be read are left out.

    Args:
        task: task of the model; for most there are no metrics that mean the same in every card.
    """
    known, scores = METRICS.get(task, {}), dict[str, dict[str, float]]()
    for result in _results(front_matter(directory)):
        test = _test_of(result)
        for metric in map(_mapping, _list(result.get("metrics"))):
            name, value = known.get(str(metric.get("type")).lower()), metric.get("value")
            if test and name and isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
                in_percent = 100 * value if name in SHARES and value <= 1 else value
                scores.setdefault(test, {}).setdefault(name, round(float(in_percent), 2))
    return dict([*scores.items()][:MOST_TESTS])


def _results(front: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for model in map(_mapping, _list(front.get("model-index"))):
        yield from map(_mapping, _list(model.get("results")))


def _test_of(result: Mapping[str, Any]) -> str:
    """Return the name of a test set, with its languages; "" if it has none."""
    dataset, task = (_mapping(result.get(key)) for key in ("dataset", "task"))
    parts = [str(dataset[key]) for key in ("name", "config", "split") if dataset.get(key)]
    languages = str(task.get("args") or "")
    return "/".join(parts) + (f".{languages}" if parts and LANGUAGES.fullmatch(languages) else "")


def _list(found: object) -> list[Any]:
    return found if isinstance(found, list) else []


def _mapping(found: object) -> Mapping[str, Any]:
    return found if isinstance(found, Mapping) else {}
