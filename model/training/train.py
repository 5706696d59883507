"""Training of a model: its start, its optimization, and the checkpoint that it writes."""

import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import lightning
import torch
from torch import Tensor, nn

from manifest.layout import TOKENIZER
from model.batching import Batch, ReviewExample, collate_reviews, collate_texts, collate_translations
from model.checkpoint import (
    TRAINING,
    build_model,
    copy_trained,
    initialize_from,
    load_checkpoint,
    load_training,
    save_checkpoint,
)
from model.config import ClassifierConfig, Config, ConfigError, load_config
from model.data import DataError
from model.licences import permits_commerce, without_commerce
from model.networks.transformer import Transformer, TransformerClassifier
from model.recipe import Experiment, save_recipe
from model.tokenizer import in_one_form, load_tokenizer, n_special_around
from model.training.calibration import calibrate
from model.training.examples import prepare_data, target_tokens
from model.training.memory import keep_freed_memory
from model.training.optimization import LAST, STEPS, Optimization, optimize
from model.training.precision import usable_precision

START = "start"
COLLATE: Mapping[str, Callable[..., Batch]] = {
    "translation": collate_translations,
    "recurrent_translation": collate_translations,
    "language_model": collate_texts,
    "classification": collate_reviews,
}
"""Function that makes a batch of examples, by task."""


def train(
    experiment: Experiment,
    data_dir: Path | None,
    run_dir: Path,
    checkpoint_dir: Path,
    start: Path | None = None,
    new_vocabulary: bool = False,
    start_share: float = 0.0,
    commercial: bool = False,
) -> None:
    """Train to `max_steps`, resuming from the last checkpoint in `run_dir` if there is one, and write `checkpoint_dir`.

    Args:
        start: checkpoint whose weights and tokenizer the training starts with, trained here or imported; None for
            random weights. A classifier may start with the encoder of any model.
        new_vocabulary: train a new tokenizer on the corpora, for example for other languages.
        start_share: share of the weights of `start` in the final ones of a translator or language model, so that it
            does not forget what the new texts lack (Wortsman et al. 2022).
        commercial: leave out corpora that are not for commercial use.

    Raises:
        DataError: a corpus is missing, empty or malformed, or no corpus is for commercial use.
        CheckpointError: `start` is no checkpoint, or its model has other dimensions.
        ConfigError: `start_share` cannot be used here, `run_dir` holds a run that began without `start`, or the text of
            `start` is not for commercial use.
    """
    keep_freed_memory()
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(free_cores())
    if commercial:
        experiment = _for_commerce(experiment)
    run_dir.mkdir(parents=True, exist_ok=True)
    tokenizer_path, start = run_dir / TOKENIZER, _start_directory(start, run_dir)
    begun_with, is_resumed = load_checkpoint(start) if start is not None else None, start == run_dir / START
    if begun_with is not None and is_resumed:
        new_vocabulary = load_tokenizer(tokenizer_path).get_vocab() != begun_with.tokenizer.get_vocab()
    if start_share and (start is None or new_vocabulary):
        raise ConfigError("`--start-share` requires `--start`, without `--new-vocabulary`")
    if start_share and isinstance(experiment.model, ClassifierConfig):
        raise ConfigError("`--start-share` cannot be used for classifiers: mixed weights are not calibrated")
    earlier = _earlier_facts(start) if start is not None else {}
    if commercial and (unusable := without_commerce(earlier.get("licences", {}))):
        raise ConfigError(
            f"`--commercial` requires a start whose text may be used commercially, unlike {', '.join(unusable)}"
        )
    lightning.seed_everything(experiment.training.seed, workers=True)
    learnt = tokenizer_path if start is None or new_vocabulary else start / TOKENIZER
    known = load_tokenizer(learnt) if learnt.is_file() else None
    if known is not None and begun_with is not None and not new_vocabulary:
        match _reads_one_form(begun_with.config), _reads_one_form(experiment):
            case False, True:
                known = in_one_form(known)
            case True, False:
                raise ConfigError(f"`one_form` must be true, as in {begun_with.config.name}, whose tokenizer is used")
    data, tokenizer = prepare_data(experiment, data_dir, known)
    tokenizer.save(str(tokenizer_path))

    model = build_model(experiment)
    if begun_with is not None:
        initialize_from(model, begun_with, tokenizer)
    begun = {name: weight.clone() for name, weight in model.state_dict().items()}
    optimize(model, Optimization(experiment.training, data, COLLATE[experiment.model.task]), run_dir)
    if start_share:
        mix_weights(model, begun, start_share)
    if isinstance(model, TransformerClassifier):
        factor = calibrate(
            model, [cast(ReviewExample, review) for review in data.validation], n_special_around(tokenizer)
        )
        print(f"calibration: logits times {factor:.3f}", flush=True)
    if isinstance(model, Transformer):
        before = model.is_target_token.numpy() & (start is not None and not new_vocabulary)
        model.is_target_token = torch.from_numpy(target_tokens(data.pools, before, tokenizer))
    save_checkpoint(checkpoint_dir, experiment, model.state_dict(), tokenizer)
    save_recipe(checkpoint_dir, experiment)
    facts = earlier | _training_facts(experiment, run_dir, earlier)
    if begun_with is not None and begun_with.config.name != experiment.name:
        facts |= {"began_with": begun_with.config.name, "new_vocabulary": new_vocabulary}
    if start_share:
        facts["start_share"] = start_share
    (checkpoint_dir / TRAINING).write_text(json.dumps(facts, indent=2) + "\n")


def free_cores() -> int:
    """Return how many cores have had nothing to do in the last minute, at least one.

    Threads that share a core with other work wait for each other in busy loops: two such threads made a quarter of the
    tokens of one.
    """
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, round(usable - os.getloadavg()[0]))


def _reads_one_form(config: Config) -> bool:
    return isinstance(config.model, ClassifierConfig) and config.model.one_form


def _for_commerce(experiment: Experiment) -> Experiment:
    data = experiment.data
    kept = tuple(source for source in data.train if permits_commerce(source.licence))
    if not kept:
        raise DataError("no corpus of the recipe is for commercial use")
    left_out = without_commerce(experiment.licences())
    print(f"Left out, as they are not for commercial use: {', '.join(left_out) or 'none'}.", flush=True)
    return experiment.model_copy(update={"data": data.model_copy(update={"train": kept})})


def mix_weights(model: nn.Module, begun: Mapping[str, Tensor], share: float) -> None:
    """Mix this share of the weights that a training began with into a model."""
    weights = model.state_dict()
    numbers = {name: weight for name, weight in begun.items() if weight.is_floating_point()}
    mixed = {name: torch.lerp(weights[name], weight, share) for name, weight in numbers.items()}
    model.load_state_dict(weights | mixed)


def _start_directory(start: Path | None, run_dir: Path) -> Path | None:
    """Return the checkpoint that the run began with, copied into the run. So the run can be resumed without being told
    of it, or after its own result replaced it. Raises CheckpointError: `start` is no checkpoint. Raises ConfigError:
    the run began without a checkpoint."""
    kept = run_dir / START
    is_resumed = bool(_last_checkpoints(run_dir))
    if is_resumed and kept.is_dir():
        return kept
    if is_resumed and start is not None:
        raise ConfigError(f"{run_dir} holds a run that began without `--start`; name another directory with `--run`")
    shutil.rmtree(kept, ignore_errors=True)
    if start is not None:
        copy_trained(start, kept)
    return start


def _last_checkpoints(run_dir: Path) -> list[Path]:
    return sorted(run_dir.rglob(f"{STEPS}/{LAST}"))


def _earlier_facts(start: Path) -> dict[str, Any]:
    """Return the notes on runs before this one, or the licence of an imported model."""
    config = load_config(start)
    if config.provenance is not None and not (start / TRAINING).is_file():
        return {"licences": {config.name: config.provenance.licence or "not known"}}
    facts = load_training(start)
    facts.pop("start_share", None)  # belongs to a single run
    return facts


def _training_facts(experiment: Experiment, run_dir: Path, earlier: dict[str, Any]) -> dict[str, Any]:
    """Return the facts of a run, and of those before it, for the model card."""
    runs = [torch.load(last, map_location="cpu", weights_only=False) for last in _last_checkpoints(run_dir)]
    return {
        "runs": earlier.get("runs", 0) + 1,
        "steps": earlier.get("steps", 0) + sum(run["global_step"] for run in runs),
        "tokens": earlier.get("tokens", 0) + sum(run["tokens"] for run in runs),
        "hours": round(earlier.get("hours", 0) + sum(run["seconds"] for run in runs) / 3600, 2),
        "averaged_checkpoints": experiment.training.average_checkpoints,
        "threads": torch.get_num_threads(),
        "precision": usable_precision(experiment.training.precision),
        "licences": earlier.get("licences", {}) | experiment.licences(),
    }
