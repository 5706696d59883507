"""Models trained by the commands of users, each in its own process, and kept for the next run."""

import shutil
import subprocess
import sys
from pathlib import Path

from rich.console import Console

from benchmarks.workspace import ROOT
from manifest.layout import TOKENIZER
from model.checkpoint import EVALUATION, TRAINING
from model.config import CONFIG, ConfigError, save_config
from model.recipe import Experiment, load_experiment, save_recipe

QUICK = {"max_steps": 60, "checkpoint_every_steps": 20, "warmup_steps": 10, "decay_steps": 30}
QUICK_TRAIN, QUICK_TEST = {"sample": 4000}, {"sample": 100}


def quick_experiment(experiment: Experiment) -> Experiment:
    """Return the experiment with a few steps and rows."""
    content = experiment.model_dump()
    content["training"] |= QUICK
    content["data"]["train"] = [source | QUICK_TRAIN for source in content["data"]["train"]]
    content["data"]["test"] = [source | QUICK_TEST for source in content["data"]["test"]]
    return Experiment.model_validate(content)


def train_and_evaluate(
    experiment: Experiment, directory: Path, data: Path | None, console: Console, tokenizer: Path | None = None
) -> Path:
    """Train and score a model, unless that was done before with the same configuration and recipe.

    Args:
        directory: directory of configuration, recipe, run, checkpoint and logs.
        tokenizer: tokenizer of another model to share; None trains one.

    Returns:
        The checkpoint.

    Raises:
        RuntimeError: a command failed; the message names its log.
    """
    run = directory / "run"
    checkpoint = run / "checkpoint"
    _begin(experiment, directory, tokenizer)
    where = ["--data", str(data)] if data is not None else []
    if not (checkpoint / TRAINING).is_file():
        console.print(f"training: {experiment.name}")
        train = ["train", str(directory), "--run", str(run)]
        _run([*train, *where], directory / "train.log")
    if not (checkpoint / EVALUATION).is_file():
        _run(["evaluate", str(checkpoint), *where], directory / "evaluate.log")
    return checkpoint


def _begin(experiment: Experiment, directory: Path, tokenizer: Path | None) -> None:
    """Delete the run of another experiment, and write the files of this one."""
    if _begun(directory) == experiment:
        return
    shutil.rmtree(directory / "run", ignore_errors=True)
    if tokenizer is not None:
        (directory / "run").mkdir()
        shutil.copyfile(tokenizer, directory / "run" / TOKENIZER)
    save_recipe(directory, experiment)
    save_config(directory, experiment)  # last: after an interruption everything starts again


def _begun(directory: Path) -> Experiment | None:
    if not (directory / CONFIG).is_file():
        return None
    try:
        return load_experiment(directory)
    except ConfigError:  # written by an older version
        return None


def _run(arguments: list[str], log: Path) -> None:
    with log.open("w") as output:
        run = subprocess.run(
            [sys.executable, "-m", "model", *arguments], cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, check=False
        )
    if run.returncode != 0:
        raise RuntimeError(f"python -m model {' '.join(arguments)} failed: see {log}")
