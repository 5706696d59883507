"""Training a model: the stages that it goes through, one after another, and the checkpoint that they leave."""

import json
import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast, get_args

import lightning
import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from model.batching import (
    Ids,
    Pool,
    ReviewExample,
    batches_by_length,
    collate_masked,
    collate_reviews,
    collate_texts,
    collate_translations,
    collate_unlabelled,
    pad,
)
from model.checkpoint import (
    CONFIG,
    TOKENIZER,
    TRAINING,
    build_model,
    copy_trained,
    load_checkpoint,
    load_training,
    save_checkpoint,
    start_with,
)
from model.config import (
    ClassifierConfig,
    Config,
    ConfigError,
    LanguageModelConfig,
    NGramTrainingConfig,
    Part,
    RegionTrainingConfig,
    TrainingConfig,
    load_config,
)
from model.networks.ngrams import NGramLogits
from model.networks.regions import RegionLogits
from model.networks.transformer import PartClassifier, Transformer, TransformerClassifier
from model.tokenizer import PAD_ID, load_tokenizer
from model.training.calibration import calibrate
from model.training.examples import TrainingData, prepare, prepare_pretraining, prepare_unlabelled, target_tokens
from model.training.nearby_tokens import NearbyTokens
from model.training.precision import usable_precision
from model.training.stage import LAST, STEPS, Stage, optimize
from model.training.translated_embeddings import begin_with_translations, pivot_column

START, PRETRAINING = "start", "pretraining"
SELF_LABELLING_TOKENS = 65_536
VECTORS_MEASURED = 100
"""Texts by whose regions the length of vectors is made the same, however long they became in training."""
COMMON = 60
"""Tokens so common that they are near every region: marks, articles, pronouns."""


def train(
    config: Config,
    data_dir: Path | None,
    run_dir: Path,
    checkpoint_dir: Path,
    start: Path | None = None,
    new_vocabulary: bool = False,
    start_share: float = 0.0,
    only: Part | None = None,
) -> None:
    """Train to `max_steps`, resuming from the last checkpoint in `run_dir` if there is one, and write `checkpoint_dir`.

    Args:
        start: a checkpoint whose weights and tokenizer the first step begins with; None begins with random ones.
        new_vocabulary: learn a tokenizer from the corpora even so, as other languages need it. Pieces that `start`
            lacks begin with the embeddings of their translations, if `config.data.pivot` tells these.
        start_share: of the weights of `start` in the final ones of a translator or a language model: what it knew and
            the new texts do not tell is not forgotten (Wortsman et al. 2022).
        only: the part of a classifier that is trained; its others are as in `start`, which need not have this one.

    Raises:
        DataError: a corpus is missing, empty or malformed.
        CheckpointError: `start` is no checkpoint, or its model has other dimensions.
        ConfigError: `start_share` is of nothing, or the model is a classifier; there is a pivot, and `start` does not
            share one language with the model; the model has no such part as `only`, or there is no `start`.
    """
    run_dir.mkdir(parents=True, exist_ok=True)
    tokenizer_path, start = run_dir / TOKENIZER, _as_it_was(start, run_dir)
    begun_with, is_resumed = load_checkpoint(start) if start is not None else None, start == run_dir / START
    if begun_with is not None and is_resumed:
        new_vocabulary = load_tokenizer(tokenizer_path).get_vocab() != begun_with.tokenizer.get_vocab()
    has_pivot = new_vocabulary and bool(config.data.pivot)
    if begun_with is not None and has_pivot:
        pivot_column(config, begun_with.config)
    if start_share and (start is None or new_vocabulary):
        raise ConfigError("--start-share is of the weights and the vocabulary of --start")
    if start_share and isinstance(config.model, ClassifierConfig):
        raise ConfigError("--start-share is not for classifiers, whose calibration is of one training")
    if only is not None and (start is None or new_vocabulary):
        raise ConfigError("--only trains one part of --start, with its vocabulary")
    if only not in (None, "encoder") and getattr(config.model, only, None) is None:
        raise ConfigError(f"{config.name} has no {only} to train")
    earlier = _earlier(start) if start is not None else {}
    lightning.seed_everything(config.training.seed, workers=True)
    learnt = tokenizer_path if start is None or new_vocabulary else start / TOKENIZER
    known = load_tokenizer(learnt) if learnt.is_file() else None
    data, tokenizer = prepare(config, data_dir, known)
    tokenizer.save(str(tokenizer_path))

    model = build_model(config)
    if begun_with is not None:
        start_with(model, begun_with, tokenizer, may_lack=only)
        if has_pivot and not is_resumed:
            n = begin_with_translations(model, config, tokenizer, begun_with, data_dir)
            print(f"{n:,} new pieces begin with the embeddings of their translations", flush=True)
    if isinstance(model, TransformerClassifier):
        train_parts(model, config, data, data_dir, tokenizer, run_dir, only)
        print(calibrate(model, [cast(ReviewExample, review) for review in data.validation]), flush=True)
    else:
        begun = {name: weight.clone() for name, weight in model.state_dict().items()}
        optimize(model, _stage(config, data), run_dir)
        if start is not None:
            share_with(model, begun, start_share)
        if isinstance(model, Transformer):
            before = model.is_target_token.numpy() & (start is not None and not new_vocabulary)
            model.is_target_token = torch.from_numpy(target_tokens(data.pools, before, tokenizer))
    save_checkpoint(checkpoint_dir, config, model.state_dict(), tokenizer)
    facts = earlier | _facts(config, run_dir, earlier)
    if begun_with is not None and begun_with.config.name != config.name:
        facts |= {"began_with": begun_with.config.name, "new_vocabulary": new_vocabulary}
    if start_share:
        facts["start_share"] = start_share
    if only is not None:
        facts["only"] = only
    (checkpoint_dir / TRAINING).write_text(json.dumps(facts, indent=2) + "\n")


def share_with(model: nn.Module, begun: Mapping[str, Tensor], share: float) -> None:
    """Give a model this share of the weights that its training began with."""
    weights = model.state_dict()
    numbers = {name: weight for name, weight in begun.items() if weight.is_floating_point()}
    mixed = {name: torch.lerp(weights[name], weight, share) for name, weight in numbers.items()}
    model.load_state_dict(weights | mixed)


def train_parts(
    model: TransformerClassifier,
    config: Config,
    data: TrainingData,
    data_dir: Path | None,
    tokenizer: Tokenizer,
    run_dir: Path,
    only: Part | None,
) -> None:
    """Train the parts of a classifier, or one of them, each as if there were no other.

    Raises:
        DataError: a corpus is missing, empty or malformed.
    """
    n_grams, regions = model.n_grams, model.regions
    # Texts are read before hours of training, in case they are missing.
    trained = set(get_args(Part)) if only is None else {only}
    near, unlabelled, masked = None, None, None
    if config.region_training is not None and "regions" in trained:
        near = prepare_pretraining(config, config.region_training.unlabelled, data_dir, tokenizer)
    if config.n_gram_training is not None and "n_grams" in trained:
        unlabelled = prepare_unlabelled(config, config.n_gram_training.unlabelled, data_dir, tokenizer)
    if config.pretraining is not None and "encoder" in trained:
        masked = prepare_pretraining(config, config.pretraining.train, data_dir, tokenizer)
    if "encoder" in trained:
        model.n_grams = model.regions = None
        if config.pretraining is not None and masked is not None:
            masking = partial(collate_masked, masked=config.pretraining.masked)
            fixed = partial(masking, generator=torch.Generator().manual_seed(config.pretraining.training.seed))
            optimize(model, Stage(config.pretraining.training, masked, masking, fixed), run_dir / PRETRAINING)
        optimize(model, _review_stage(config.training, data), run_dir)
        model.n_grams, model.regions = n_grams, regions
    if n_grams is not None and config.n_gram_training is not None and unlabelled is not None:
        train_n_grams(n_grams, config.n_gram_training, data, unlabelled, run_dir / "n_grams")
    if regions is not None and config.region_training is not None and near is not None:
        train_regions(regions, config.region_training, data, near, run_dir / "regions")


def train_n_grams(
    n_grams: NGramLogits, config: NGramTrainingConfig, data: TrainingData, unlabelled: Sequence[Ids], run_dir: Path
) -> None:
    """Train n-grams as if there were no encoder, and where there are texts without labels once more, on theirs too."""
    whole = _whole_reviews(data).pools

    def fit(pools: list[Pool], name: str) -> None:
        reviews = [cast(ReviewExample, review) for pool in pools for review in pool.examples]
        n_grams.count([review.ids for review in reviews], [review.label for review in reviews])
        stage = _review_stage(config.training, TrainingData(pools, data.validation))
        optimize(PartClassifier(n_grams), stage, run_dir / name)
        n_grams.fold()

    fit(whole, "labelled")
    if unlabelled:
        fit([*whole, Pool(sure_labels(n_grams, unlabelled, config.least_margin))], "self-labelled")


def train_regions(
    regions: RegionLogits, config: RegionTrainingConfig, data: TrainingData, near: TrainingData, run_dir: Path
) -> None:
    """Train regions as if there were no encoder: their vectors on texts without labels, then their detectors."""
    texts = [cast(ReviewExample, example).ids for pool in near.pools for example in pool.examples]
    counts = np.bincount(np.concatenate(texts), minlength=regions.embedding.tokens.num_embeddings)
    says_something = torch.ones(len(counts), dtype=torch.bool)
    says_something[np.argsort(-counts)[: min(COMMON, len(counts) // 2)].copy()] = False
    stage = Stage(config.pretraining, near, collate_unlabelled, collate_unlabelled)
    optimize(NearbyTokens(regions.embedding, says_something), stage, run_dir / PRETRAINING)
    with torch.no_grad():
        ids, lengths = pad(texts[:VECTORS_MEASURED])
        regions.embedding.multiply(1 / float(regions.embedding(ids, lengths)[ids != PAD_ID].std()))
    regions.embedding.requires_grad_(False)
    optimize(PartClassifier(regions), _review_stage(config.training, _whole_reviews(data)), run_dir / "labelled")


def _whole_reviews(data: TrainingData) -> TrainingData:
    """Pieces of reviews teach an encoder what a sentence is worth; of words they say nothing new."""
    return TrainingData([pool for pool in data.pools if pool.shortest_crop is None], data.validation)


@torch.inference_mode()
def sure_labels(n_grams: NGramLogits, texts: Sequence[Ids], least_margin: float) -> list[ReviewExample]:
    """The texts with the labels that n-grams give them, where the best is so much better than the next."""
    examples: list[ReviewExample] = []
    for batch in batches_by_length(np.array([len(text) for text in texts], dtype=np.int64), SELF_LABELLING_TOKENS):
        ids, lengths = pad([texts[i] for i in batch])
        (best, second), (labels, _) = (pair.T for pair in n_grams.pooled(ids, lengths).topk(2, dim=-1))
        sure = (best - second >= least_margin).tolist()
        chosen = zip(batch, labels.tolist(), sure, strict=True)
        examples += [ReviewExample(texts[i], label) for i, label, is_sure in chosen if is_sure]
    return examples


def _review_stage(training: TrainingConfig, data: TrainingData) -> Stage:
    return Stage(training, data, partial(collate_reviews, token_dropout=training.token_dropout), collate_reviews)


def _stage(config: Config, data: TrainingData) -> Stage:
    collate = collate_texts if isinstance(config.model, LanguageModelConfig) else collate_translations
    return Stage(config.training, data, collate, collate)


def _as_it_was(start: Path | None, run_dir: Path) -> Path | None:
    """Where the checkpoint lies with which the run began: a run may be resumed when its own result is in that place, or
    without being told of it again.

    Raises:
        CheckpointError: `start` is no checkpoint that training has left.
    """
    kept = run_dir / START
    is_resumed = bool(_last_checkpoints(run_dir))
    if is_resumed and kept.is_dir():
        return kept
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
    facts.setdefault("licences", load_config(start / CONFIG).licences())
    return facts


def _facts(config: Config, run_dir: Path, earlier: dict[str, Any]) -> dict[str, Any]:
    """What the model card tells of a run, and of those before it."""
    runs = [torch.load(last, map_location="cpu", weights_only=False) for last in _last_checkpoints(run_dir)]
    return {
        "runs": earlier.get("runs", 0) + 1,
        "steps": earlier.get("steps", 0) + sum(run["global_step"] for run in runs),
        "tokens": earlier.get("tokens", 0) + sum(run["tokens"] for run in runs),
        "hours": round(earlier.get("hours", 0) + sum(run["seconds"] for run in runs) / 3600, 2),
        "averaged_checkpoints": config.training.average_checkpoints,
        "threads": torch.get_num_threads(),
        "precision": usable_precision(config.training.precision),
        "licences": earlier.get("licences", {}) | config.licences(),
    }
