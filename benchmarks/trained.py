"""Models made by the commands that a user has, each in a process of its own, and kept for the next run."""

import shutil
import subprocess
import sys
from pathlib import Path

import yaml
from rich.console import Console

from benchmarks.workspace import ROOT
from model.checkpoint import EVALUATION, TOKENIZER, TRAINING
from model.config import Config

QUICK = {"max_steps": 60, "checkpoint_every_steps": 20, "warmup_steps": 10, "decay_steps": 30}
QUICK_TRAIN, QUICK_TEST = {"sample": 4000}, {"sample": 100}


def quick_config(config: Config) -> Config:
    """The same, trained for a few steps on a few rows."""
    content = config.model_dump()
    content["training"] |= QUICK
    content["data"]["train"] = [source | QUICK_TRAIN for source in content["data"]["train"]]
    content["data"]["test"] = [source | QUICK_TEST for source in content["data"]["test"]]
    return Config.model_validate(content)


def train_and_evaluate(
    config: Config, directory: Path, data: Path | None, console: Console, tokenizer: Path | None = None
) -> Path:
    """Train and score a model, where that was not done before with this very configuration.

    Args:
        directory: where its configuration, its run, its checkpoint and what the commands print are.
        tokenizer: of another model, to be shared; None trains one.

    Returns:
        The checkpoint.

    Raises:
        RuntimeError: a command failed; it names the file with what that printed.
    """
    run, checkpoint = directory / "run", directory / "checkpoint"
    _begin(config, directory, tokenizer)
    where = ["--data", str(data)] if data is not None else []
    if not (checkpoint / TRAINING).is_file():
        console.print(f"training: {config.name}")
        train = ["train", str(directory / "config.yaml"), "--run", str(run), "--out", str(checkpoint)]
        _run([*train, *where], directory / "train.log")
    if not (checkpoint / EVALUATION).is_file():
        _run(["evaluate", str(checkpoint), *where], directory / "evaluate.log")
    return checkpoint


def _begin(config: Config, directory: Path, tokenizer: Path | None) -> None:
    """Where the configuration is another than that of the run before, leave nothing of that."""
    path = directory / "config.yaml"
    content = yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False)
    if path.is_file() and path.read_text() == content:
        return
    for part in ("run", "checkpoint"):
        shutil.rmtree(directory / part, ignore_errors=True)
    if tokenizer is not None:
        (directory / "run").mkdir()
        shutil.copyfile(tokenizer, directory / "run" / TOKENIZER)
    path.write_text(content)  # last: who is killed before it begins again


def _run(arguments: list[str], log: Path) -> None:
    with log.open("w") as output:
        run = subprocess.run(
            [sys.executable, "-m", "model", *arguments], cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, check=False
        )
    if run.returncode != 0:
        raise RuntimeError(f"python -m model {' '.join(arguments)} failed: see {log}")
