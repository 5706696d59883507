"""What each system learns: trained and scored by the commands that a user has, each in a process of its own."""

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import yaml
from rich.console import Console
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from benchmarks.lecture.systems import System
from benchmarks.results import Record, command, save
from benchmarks.workspace import ROOT
from model.checkpoint import EVALUATION, TOKENIZER, TRAINING, load_checkpoint
from model.data import load_rows
from model.evaluation import translate

N_SHUFFLED = 200


def measure(systems: Iterable[System], data: Path | None, quick: bool, console: Console) -> None:
    """Train and score systems, those that were trained before only where their configuration has changed."""
    tokenizers: dict[str, Path] = {}
    for system in systems:
        directory = system.directory(quick)
        if _write_config(system, directory, quick) and system.family in tokenizers:
            # A family shares its corpus, and with it its tokenizer.
            (directory / "run").mkdir()
            shutil.copyfile(tokenizers[system.family], directory / "run" / TOKENIZER)
        checkpoint = directory / "checkpoint"
        where = ["--data", str(data)] if data is not None else []
        if not (checkpoint / TRAINING).is_file():
            console.print(f"training: {system.name}")
            train = ["train", str(directory / "config.yaml"), "--run", str(directory / "run"), "--out", str(checkpoint)]
            _run([*train, *where], directory / "train.log")
        tokenizers.setdefault(system.family, checkpoint / TOKENIZER)
        if not (checkpoint / EVALUATION).is_file():
            _run(["evaluate", str(checkpoint), *where], directory / "evaluate.log")
        record = _record(system, directory, data, quick)
        console.print(f"{system.name}: {record['scores']}")
        save("lecture-quality", ["system", "family"], [record | {"command": command()}], quick)


def _write_config(system: System, directory: Path, quick: bool) -> bool:
    """Whether the configuration is another than that of the run before, of which nothing is left then."""
    path = directory / "config.yaml"
    content = yaml.safe_dump(system.config(quick).model_dump(mode="json"), sort_keys=False)
    if path.is_file() and path.read_text() == content:
        return False
    for part in ("run", "checkpoint"):
        shutil.rmtree(directory / part, ignore_errors=True)
    path.write_text(content)
    return True


def _run(arguments: list[str], log: Path) -> None:
    with log.open("w") as output:
        run = subprocess.run(
            [sys.executable, "-m", "model", *arguments], cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, check=False
        )
    if run.returncode != 0:
        raise RuntimeError(f"python -m model {' '.join(arguments)} failed: see {log}")


def _record(system: System, directory: Path, data: Path | None, quick: bool) -> Record:
    checkpoint = load_checkpoint(directory / "checkpoint")
    training = json.loads((directory / "checkpoint" / TRAINING).read_text())
    scores = next(iter(checkpoint.evaluation.values()))
    record = {
        "system": system.name,
        "family": system.family,
        "section": system.section,
        "parameters": sum(parameter.numel() for parameter in checkpoint.model.parameters()),
        "steps": training["steps"],
        "tokens": training["tokens"],
        "scores": scores,
        "curve": _curve(directory / "run"),
    }
    if system.family == "translation":
        source = checkpoint.config.data.test[0]
        texts = [row.left for row in load_rows(source, data)[: 20 if quick else N_SHUFFLED]]
        shuffled = [_shuffled(text, seed) for seed, text in enumerate(texts)]
        in_order, in_disorder = translate(checkpoint, texts), translate(checkpoint, shuffled)
        same = [one.ids == other.ids for (_, one), (_, other) in zip(in_order, in_disorder, strict=True)]
        record["same_when_shuffled"] = sum(same) / len(same)
    return record


def _shuffled(text: str, seed: int) -> str:
    words = text.split(" ")
    return " ".join(random.Random(seed).sample(words, len(words)))


def _curve(run_dir: Path) -> list[tuple[int, float]]:
    """(step, validation loss), nats."""
    events = EventAccumulator(str(run_dir))
    events.Reload()
    return [(event.step + 1, event.value) for event in events.Scalars("validation_loss")]
