"""Training a model: the stages that it goes through, one after another, and the checkpoint that they leave."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import lightning
import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from model.batching import ReviewExample, collate_texts, collate_translations
from model.checkpoint import (
    TOKENIZER,
    TRAINING,
    build_model,
    copy_trained,
    load_checkpoint,
    load_training,
    save_checkpoint,
    start_with,
)
from model.config import ClassifierConfig, ConfigError, LanguageModelConfig
from model.networks.transformer import Transformer, TransformerClassifier
from model.recipe import Experiment, Part, save_recipe
from model.tokenizer import load_tokenizer
from model.training.calibration import calibrate
from model.training.examples import TrainingData, prepare, target_tokens
from model.training.memory import keep_freed_memory
from model.training.parts import parts_of, train_parts
from model.training.precision import usable_precision
from model.training.stage import LAST, STEPS, Stage, optimize

START, RUN = "start", "run.json"


def train(
    experiment: Experiment,
    data_dir: Path | None,
    run_dir: Path,
    checkpoint_dir: Path,
    start: Path | None = None,
    new_vocabulary: bool = False,
    start_share: float = 0.0,
    only: Part | None = None,
    teacher: Path | None = None,
) -> None:
    """Train to `max_steps`, resuming from the last checkpoint in `run_dir` if there is one, and write `checkpoint_dir`.

    Args:
        start: a checkpoint whose weights and tokenizer the first step begins with; None begins with random ones.
        new_vocabulary: learn a tokenizer from the corpora even so, as other languages need it.
        start_share: of the weights of `start` in the final ones of a translator or a language model: what it knew and
            the new texts do not tell is not forgotten (Wortsman et al. 2022).
        only: the part of a classifier that is trained; its others are as in `start`. N-grams and regions are trained
            anew, so `start` need not have them; an encoder is trained further.
        teacher: a classifier that tells the labels of texts that have none (Hinton et al. 2015). Its vocabulary is
            taken.

    Raises:
        DataError: a corpus is missing, empty or malformed.
        CheckpointError: `start` is no checkpoint, or its model has other dimensions.
        ConfigError: `start_share` is of nothing, or the model is a classifier; the model has no such part as `only`,
            there is no `start`, or `run_dir` holds a run that began otherwise; `teacher` has other labels, or another
            vocabulary than `start`.
    """
    keep_freed_memory()
    experiment = _without_what_is_gone(experiment, teacher is not None)
    run_dir.mkdir(parents=True, exist_ok=True)
    only = _as_begun(only, run_dir)
    tokenizer_path, start = run_dir / TOKENIZER, _as_it_was(start, run_dir)
    begun_with, is_resumed = load_checkpoint(start) if start is not None else None, start == run_dir / START
    if begun_with is not None and is_resumed:
        new_vocabulary = load_tokenizer(tokenizer_path).get_vocab() != begun_with.tokenizer.get_vocab()
    if start_share and (start is None or new_vocabulary):
        raise ConfigError("--start-share is of the weights and the vocabulary of --start")
    if start_share and isinstance(experiment.model, ClassifierConfig):
        raise ConfigError("--start-share is not for classifiers, whose calibration is of one training")
    if only is not None and (start is None or new_vocabulary):
        raise ConfigError("--only trains one part of --start, with its vocabulary")
    if only is not None and only not in parts_of(experiment.model):
        raise ConfigError(f"--only {only}: {experiment.name} is no classifier that has {only}")
    earlier = _earlier(start) if start is not None else {}
    lightning.seed_everything(experiment.training.seed, workers=True)
    learnt = tokenizer_path if start is None or new_vocabulary else start / TOKENIZER
    if teacher is not None and not learnt.is_file():
        learnt = teacher / TOKENIZER
    known = load_tokenizer(learnt) if learnt.is_file() else None
    data, tokenizer = prepare(experiment, data_dir, known)
    tokenizer.save(str(tokenizer_path))

    model = build_model(experiment)
    if begun_with is not None:
        start_with(model, begun_with, tokenizer, anew=None if only == "encoder" else only)
    if isinstance(model, TransformerClassifier):
        parts = parts_of(experiment.model) if only is None else [only]
        taught_by = _teacher(teacher, model, tokenizer) if teacher is not None else None
        train_parts(model, experiment, data, data_dir, tokenizer, run_dir, parts, taught_by)
        print(calibrate(model, [cast(ReviewExample, review) for review in data.validation]), flush=True)
    else:
        begun = {name: weight.clone() for name, weight in model.state_dict().items()}
        optimize(model, _stage(experiment, data), run_dir)
        if start is not None:
            share_with(model, begun, start_share)
        if isinstance(model, Transformer):
            before = model.is_target_token.numpy() & (start is not None and not new_vocabulary)
            model.is_target_token = torch.from_numpy(target_tokens(data.pools, before, tokenizer))
    save_checkpoint(checkpoint_dir, experiment, model.state_dict(), tokenizer)
    save_recipe(checkpoint_dir, experiment)
    facts = earlier | _facts(experiment, run_dir, earlier, only)
    if begun_with is not None and begun_with.config.name != experiment.name:
        facts |= {"began_with": begun_with.config.name, "new_vocabulary": new_vocabulary}
    if start_share:
        facts["start_share"] = start_share
    if only is not None:
        facts["only"] = only
    (checkpoint_dir / TRAINING).write_text(json.dumps(facts, indent=2) + "\n")


def _teacher(directory: Path, model: TransformerClassifier, tokenizer: Tokenizer) -> TransformerClassifier:
    """Raises ConfigError: it reads other tokens, or tells other labels."""
    teacher = load_checkpoint(directory)
    if not isinstance(teacher.model, TransformerClassifier) or teacher.model.config.labels != model.config.labels:
        raise ConfigError(f"--teacher {directory} is no classifier with the labels {', '.join(model.config.labels)}")
    if teacher.tokenizer.get_vocab() != tokenizer.get_vocab():
        raise ConfigError(f"--teacher {directory} has another vocabulary than the model")
    return teacher.model


def _without_what_is_gone(experiment: Experiment, has_teacher: bool) -> Experiment:
    """The same without the rows that nothing in the tree makes any more, and those that nobody labels."""
    data = experiment.data
    unlabelled = dict.fromkeys(source.file for source in data.train if source.taught)
    if unlabelled and not has_teacher:
        print(f"Left out: what --teacher would label of {', '.join(unlabelled)}.", flush=True)
    gone = dict.fromkeys(source.file for source in data.train if source.made_by is not None)
    if gone:
        print(
            f"Left out: {', '.join(gone)}. Nothing here makes these rows any more; `made_by` in the recipe names the "
            "commit that has it.",
            flush=True,
        )
    return experiment.model_copy(update={"data": data.model_copy(update={"train": tuple(data.kept(has_teacher))})})


def share_with(model: nn.Module, begun: Mapping[str, Tensor], share: float) -> None:
    """Give a model this share of the weights that its training began with."""
    weights = model.state_dict()
    numbers = {name: weight for name, weight in begun.items() if weight.is_floating_point()}
    mixed = {name: torch.lerp(weights[name], weight, share) for name, weight in numbers.items()}
    model.load_state_dict(weights | mixed)


def _stage(experiment: Experiment, data: TrainingData) -> Stage:
    collate = collate_texts if isinstance(experiment.model, LanguageModelConfig) else collate_translations
    return Stage(experiment.training, data, collate, collate)


def _as_begun(only: Part | None, run_dir: Path) -> Part | None:
    """What part is trained: a run may be resumed without being told of it again.

    Raises:
        ConfigError: the run was begun with other parts.
    """
    kept = run_dir / RUN
    if _last_checkpoints(run_dir) and kept.is_file():
        begun: Part | None = json.loads(kept.read_text())["only"]
        if only not in (None, begun):
            raise ConfigError(f"{run_dir} holds a run of {begun or 'all parts'}: name another directory by --run")
        return begun
    kept.write_text(json.dumps({"only": only}) + "\n")
    return only


def _as_it_was(start: Path | None, run_dir: Path) -> Path | None:
    """Where the checkpoint lies with which the run began: a run may be resumed when its own result is in that place, or
    without being told of it again.

    Raises:
        CheckpointError: `start` is no checkpoint that training has left.
        ConfigError: the run was begun without one.
    """
    kept = run_dir / START
    is_resumed = bool(_last_checkpoints(run_dir))
    if is_resumed and kept.is_dir():
        return kept
    if is_resumed and start is not None:
        raise ConfigError(f"{run_dir} holds a run that began without --start: name another directory by --run")
    shutil.rmtree(kept, ignore_errors=True)
    if start is not None:
        copy_trained(start, kept)
    return start


def _last_checkpoints(run_dir: Path) -> list[Path]:
    """Of each stage of a run that has been begun."""
    return sorted(run_dir.rglob(f"{STEPS}/{LAST}"))


def _earlier(start: Path) -> dict[str, Any]:
    """What has been noted of the runs before this one."""
    facts = load_training(start)
    for of_one_run in ("start_share", "only"):
        facts.pop(of_one_run, None)
    return facts


def _facts(experiment: Experiment, run_dir: Path, earlier: dict[str, Any], only: Part | None) -> dict[str, Any]:
    """What the model card tells of a run, and of those before it."""
    beside = {"n_grams": experiment.n_gram_training, "regions": experiment.region_training}
    of_part = beside.get(only) if only is not None else None
    training = experiment.training if of_part is None else of_part.training
    runs = [torch.load(last, map_location="cpu", weights_only=False) for last in _last_checkpoints(run_dir)]
    return {
        "runs": earlier.get("runs", 0) + 1,
        "steps": earlier.get("steps", 0) + sum(run["global_step"] for run in runs),
        "tokens": earlier.get("tokens", 0) + sum(run["tokens"] for run in runs),
        "hours": round(earlier.get("hours", 0) + sum(run["seconds"] for run in runs) / 3600, 2),
        "averaged_checkpoints": training.average_checkpoints,
        "threads": torch.get_num_threads(),
        "precision": usable_precision(training.precision),
        "licences": earlier.get("licences", {}) | experiment.licences(),
    }
