"""What users get: every model of a running service on the test sets of its checkpoint, asked without options."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table

from benchmarks.workspace import ROOT
from model.checkpoint import CONFIG
from model.config import load_config
from model.data import Row, load_rows
from model.evaluation.scoring import accuracy, score_translations

AT_ONCE = 64
TIMEOUT_S = 300.0


def measure(client: httpx.Client, data: Path | None, tests: Sequence[str], limit: int | None, console: Console) -> None:
    """Print scores of all models, on the test sets whose names have one of `tests` in them, or on all.

    Raises:
        DataError: a test set is missing.
        httpx.HTTPError: there is no service, or it answered with an error.
    """
    table = Table("model", "test set", "texts", "metric", "as served")
    for model in _answer(client.get("/models"))["models"]:
        sources = load_config(ROOT / "checkpoints" / model["name"] / CONFIG).data.test
        for source in sources:
            if tests and not any(test in source.file for test in tests):
                continue
            rows = load_rows(source, data)[:limit]
            name = Path(source.file).name.split(".")[0]
            for metric, score in scores(client, model, rows).items():
                table.add_row(model["name"], name, f"{len(rows):,}", metric, f"{score:.2f}")
    console.print(table)


def scores(client: httpx.Client, model: dict[str, Any], rows: Sequence[Row]) -> dict[str, float]:
    """Scores of a model, described as in `/models`, on (source, target) or (label, text) rows."""
    if model["task"] == "classification":
        answers = ask(client, "/classify", {"model": model["name"]}, [row.right for row in rows])
        return {"accuracy": accuracy([answer["label"] for answer in answers], [row.left for row in rows])}
    direction = model["directions"][0]
    answers = ask(client, "/translate", {"model": model["name"], **direction}, [row.left for row in rows])
    outputs = [answer["text"] for answer in answers]
    return score_translations(outputs, [row.right for row in rows], direction["target"])[0]


def ask(client: httpx.Client, path: str, options: dict[str, Any], texts: Sequence[str]) -> list[dict[str, Any]]:
    """One answer for each text, so many texts in a request."""
    answers: list[dict[str, Any]] = []
    for start in range(0, len(texts), AT_ONCE):
        body = options | {"text": list(texts[start : start + AT_ONCE]), "timeout_s": TIMEOUT_S}
        answer = _answer(client.post(path, json=body, timeout=TIMEOUT_S))
        answers += answer["predictions" if path == "/classify" else "translations"]
    return answers


def _answer(response: httpx.Response) -> dict[str, Any]:
    content: dict[str, Any] = response.raise_for_status().json()
    return content
