"""Scores of every model of a running service on its test sets and failure cases, with default options."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table

from benchmarks.workspace import ROOT
from model.data import Row, load_rows
from model.evaluation.cases import Answer, Suite, pass_counts, run_suite, suite_for
from model.evaluation.scoring import accuracy, score_translations
from model.recipe import load_experiment

TEXTS_PER_REQUEST = 64
TIMEOUT_S = 300.0


def measure(client: httpx.Client, data: Path | None, tests: Sequence[str], limit: int | None, console: Console) -> None:
    """Print scores of all models on the test sets whose names contain one of `tests`, or on all; `cases` are the
    failure cases, scored by the share that pass.

    Raises:
        DataError: a test set is missing.
        SuiteError: the failure cases are malformed.
        httpx.HTTPError: the service is missing, or answered with an error.
    """
    table = Table("model", "test set", "texts", "metric", "as served")
    for model in _content(client.get("/models"))["models"]:
        experiment = load_experiment(ROOT / "artifacts" / model["name"])
        for source in experiment.data.test:
            if _is_wanted(source.file, tests):
                rows = load_rows(source, data)[:limit]
                name = Path(source.file).name.split(".")[0]
                for metric, score in scores(client, model, rows).items():
                    table.add_row(model["name"], name, f"{len(rows):,}", metric, f"{score:.2f}")
        suite = suite_for(experiment.model) if _is_wanted("cases", tests) else None
        if suite is not None:
            passed, n = cases_passed(client, model, suite)
            table.add_row(model["name"], "cases", f"{n:,}", "passed, %", f"{100 * passed / n:.2f}")
    console.print(table)


def _is_wanted(name: str, tests: Sequence[str]) -> bool:
    return not tests or any(test in name for test in tests)


def scores(client: httpx.Client, model: dict[str, Any], rows: Sequence[Row]) -> dict[str, float]:
    """Return the scores of a model, described as in `/models`, on (source, target) or (label, text) rows."""
    if model["task"] == "classification":
        labels = [answer.output for answer in answers(client, model, [row.right for row in rows])]
        return {"accuracy": accuracy(labels, [row.left for row in rows])}
    outputs = [answer.output for answer in answers(client, model, [row.left for row in rows])]
    return score_translations(outputs, [row.right for row in rows], model["targets"][0])[0]


def cases_passed(client: httpx.Client, model: dict[str, Any], suite: Suite) -> tuple[int, int]:
    """Return the numbers of passed and of all cases."""
    return pass_counts(run_suite(suite, partial(answers, client, model)))["all"]


def answers(client: httpx.Client, model: dict[str, Any], texts: Sequence[str]) -> list[Answer]:
    """Return the label or translation of each text."""
    if model["task"] == "classification":
        predictions = _ask(client, "/classify", {"model": model["name"]}, texts)
        return [Answer(answer["label"], answer["score"]) for answer in predictions]
    options = {"model": model["name"], "source": model["sources"][0], "target": model["targets"][0]}
    return [Answer(answer["text"]) for answer in _ask(client, "/translate", options, texts)]


def _ask(client: httpx.Client, path: str, options: dict[str, Any], texts: Sequence[str]) -> list[dict[str, Any]]:
    """Return one answer per text, with `TEXTS_PER_REQUEST` texts per request."""
    answers: list[dict[str, Any]] = []
    for start in range(0, len(texts), TEXTS_PER_REQUEST):
        body = options | {"text": list(texts[start : start + TEXTS_PER_REQUEST]), "timeout_s": TIMEOUT_S}
        content = _content(client.post(path, json=body, timeout=TIMEOUT_S))
        answers += content["predictions" if path == "/classify" else "translations"]
    return answers


def _content(response: httpx.Response) -> dict[str, Any]:
    content: dict[str, Any] = response.raise_for_status().json()
    return content
