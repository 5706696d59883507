"""Quality of each system."""

import json
import random
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from benchmarks.lecture.systems import System
from benchmarks.results import Record, command, save
from benchmarks.trained import train_and_evaluate
from manifest.layout import TOKENIZER
from model.checkpoint import TRAINING, load_checkpoint
from model.data import load_rows
from model.evaluation.scoring import translate

N_SHUFFLED = 200


def measure(systems: Iterable[System], data: Path | None, quick: bool, console: Console) -> None:
    """Train and score systems, again only if their configuration has changed, and save the results."""
    tokenizers: dict[str, Path] = {}
    for system in systems:
        directory = system.directory(quick)
        # Systems of a family share their corpus, and with it their tokenizer.
        shared = tokenizers.get(system.family)
        checkpoint = train_and_evaluate(system.experiment(quick), directory, data, console, shared)
        tokenizers.setdefault(system.family, checkpoint / TOKENIZER)
        record = _record(system, checkpoint, data, quick)
        console.print(f"{system.name}: {record['scores']}")
        save("lecture-quality", ["system", "family"], [record | {"command": command()}], quick)


def _record(system: System, path: Path, data: Path | None, quick: bool) -> Record:
    checkpoint = load_checkpoint(path)
    training = json.loads((path / TRAINING).read_text())
    scores = next(iter(checkpoint.evaluation.values()))
    record = {
        "system": system.name,
        "family": system.family,
        "section": system.section,
        "parameters": sum(parameter.numel() for parameter in checkpoint.model.parameters()),
        "steps": training["steps"],
        "tokens": training["tokens"],
        "scores": scores,
        "curve": _curve(path.parent),
    }
    if system.family == "translation":
        source = system.experiment(quick).data.test[0]
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
    """Return pairs (step, validation loss in nats)."""
    events = EventAccumulator(str(run_dir))
    events.Reload()
    return [(event.step + 1, event.value) for event in events.Scalars("validation_loss")]
