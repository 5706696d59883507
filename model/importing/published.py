"""The scores in the card of a model's owner: in the form in which the hub reads them, or in a table."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from math import isfinite
from pathlib import Path
from typing import Any

from model.checkpoint import CARD
from model.importing.hugging_face import front_matter

Result = tuple[str, str, object]
"""A test set, a metric as the card calls it, and what the card has for both."""
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
    known = METRICS.get(task, {})
    return _scores(_results(front_matter(directory)), known) or _scores(_tables(directory / CARD), known)


def _scores(results: Iterable[Result], known: Mapping[str, str]) -> dict[str, dict[str, float]]:
    scores: dict[str, dict[str, float]] = {}
    for test, metric, value in results:
        name = known.get(metric.lower())
        if test and name and isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
            in_percent = 100 * value if name in SHARES and value <= 1 else value
            scores.setdefault(test, {}).setdefault(name, round(float(in_percent), 2))
    return dict([*scores.items()][:MOST_TESTS])


def _tables(card: Path) -> Iterator[Result]:
    """Yield the cells of tables such as older cards of OPUS-MT have: | testset | BLEU | chr-F |"""
    header: list[str] = []
    for line in card.read_text(encoding="utf-8", errors="replace").splitlines() if card.is_file() else []:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.lstrip().startswith("|") else []
        if not header or len(cells) != len(header):
            header = cells
        for metric, cell in zip(header[1:], cells[1:], strict=True):
            with suppress(ValueError):
                yield cells[0], metric, float(cell)


def _results(front: Mapping[str, Any]) -> Iterator[Result]:
    for model in map(_mapping, _list(front.get("model-index"))):
        for result in map(_mapping, _list(model.get("results"))):
            for metric in map(_mapping, _list(result.get("metrics"))):
                yield _test_of(result), str(metric.get("type")), metric.get("value")


def _test_of(result: Mapping[str, Any]) -> str:
    dataset, task = (_mapping(result.get(key)) for key in ("dataset", "task"))
    parts = [str(dataset[key]) for key in ("name", "config", "split") if dataset.get(key)]
    languages = str(task.get("args") or "")
    return "/".join(parts) + (f".{languages}" if parts and LANGUAGES.fullmatch(languages) else "")


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
