"""The parts of a classifier, each trained as if there were no other: its encoder, its n-grams and its regions."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np
import torch
from tokenizers import Tokenizer

from model.batching import (
    Ids,
    Pool,
    ReviewExample,
    batches_by_length,
    collate_masked,
    collate_reviews,
    collate_unlabelled,
    pad,
)
from model.config import ClassifierConfig, ModelConfig
from model.networks.ngrams import NGramLogits
from model.networks.regions import RegionLogits
from model.networks.transformer import PartClassifier, TransformerClassifier
from model.recipe import Experiment, NGramTrainingConfig, Part, RegionTrainingConfig, TrainingConfig
from model.training.examples import TrainingData, prepare_pretraining, prepare_unlabelled
from model.training.nearby_tokens import NearbyTokens
from model.training.pretraining import ReplacedTokenDetection
from model.training.stage import Stage, optimize

PRETRAINING, LABELLED, SELF_LABELLED = "pretraining", "labelled", "self-labelled"
SELF_LABELLING_TOKENS = 65_536
COMMON = 60
"""Tokens so common that they are near every region: marks, articles, pronouns."""


def parts_of(model: ModelConfig) -> list[Part]:
    """The parts of a classifier; a model of another task has none that is trained on its own."""
    if not isinstance(model, ClassifierConfig):
        return []
    beside: dict[Part, object] = {"n_grams": model.n_grams, "regions": model.regions}
    return ["encoder", *(part for part, config in beside.items() if config is not None)]


def train_parts(
    model: TransformerClassifier,
    experiment: Experiment,
    data: TrainingData,
    data_dir: Path | None,
    tokenizer: Tokenizer,
    run_dir: Path,
    parts: Sequence[Part],
    teacher: TransformerClassifier | None = None,
) -> None:
    """Train some parts of a classifier, or all of them.

    Raises:
        DataError: a corpus is missing, empty or malformed.
    """
    n_grams, regions = model.n_grams, model.regions
    trainings: list[Callable[[], None]] = []  # texts are read before hours of training, in case they are missing
    if "encoder" in parts:
        texts = None
        if experiment.pretraining is not None:
            pretraining = experiment.pretraining
            texts = prepare_pretraining(experiment, pretraining.train, data_dir, tokenizer, pretraining.window)
        trainings.append(partial(train_encoder, model, experiment, data, texts, run_dir, teacher))
    if "n_grams" in parts and n_grams is not None and (n_gram_training := experiment.n_gram_training) is not None:
        unlabelled = prepare_unlabelled(experiment, n_gram_training.unlabelled, data_dir, tokenizer)
        trainings.append(partial(train_n_grams, n_grams, n_gram_training, data, unlabelled, run_dir / "n_grams"))
    if "regions" in parts and regions is not None and (region_training := experiment.region_training) is not None:
        near = prepare_pretraining(experiment, region_training.unlabelled, data_dir, tokenizer)
        trainings.append(partial(train_regions, regions, region_training, data, near, run_dir / "regions"))
    for training in trainings:
        training()


def train_encoder(
    model: TransformerClassifier,
    experiment: Experiment,
    data: TrainingData,
    texts: TrainingData | None,
    run_dir: Path,
    teacher: TransformerClassifier | None = None,
) -> None:
    """Train the encoder and what makes logits of its output, if there are texts first on what is masked in them."""
    beside = model.n_grams, model.regions
    model.n_grams = model.regions = None
    if experiment.pretraining is not None and texts is not None:
        masking = partial(collate_masked, masked=experiment.pretraining.masked)
        fixed = partial(masking, generator=torch.Generator().manual_seed(experiment.pretraining.training.seed))
        layers = experiment.pretraining.generator_layers
        pretrained = model if layers is None else ReplacedTokenDetection(model, layers)
        optimize(pretrained, Stage(experiment.pretraining.training, texts, masking, fixed), run_dir / PRETRAINING)
    optimize(model, replace(_review_stage(experiment.training, data), teacher=teacher), run_dir)
    model.n_grams, model.regions = beside


def train_n_grams(
    n_grams: NGramLogits, config: NGramTrainingConfig, data: TrainingData, unlabelled: Sequence[Ids], run_dir: Path
) -> None:
    """Train n-grams, and where there are texts without labels once more, on theirs too."""
    whole = _whole_reviews(data).pools

    def fit(pools: list[Pool], name: str) -> None:
        reviews = [cast(ReviewExample, review) for pool in pools for review in pool.examples]
        n_grams.count([review.ids for review in reviews], [review.label for review in reviews])
        stage = _review_stage(config.training, TrainingData(pools, data.validation))
        optimize(PartClassifier(n_grams), stage, run_dir / name)
        n_grams.fold()

    fit(whole, LABELLED)
    if unlabelled:
        fit([*whole, Pool(sure_labels(n_grams, unlabelled, config.least_margin))], SELF_LABELLED)


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


def train_regions(
    regions: RegionLogits, config: RegionTrainingConfig, data: TrainingData, near: TrainingData, run_dir: Path
) -> None:
    """Train regions: their vectors on texts without labels, then the detectors over them."""
    texts = [cast(ReviewExample, example).ids for pool in near.pools for example in pool.examples]
    counts = np.bincount(np.concatenate(texts), minlength=regions.embedding.tokens.num_embeddings)
    says_something = torch.ones(len(counts), dtype=torch.bool)
    says_something[np.argsort(-counts)[: min(COMMON, len(counts) // 2)].copy()] = False
    stage = Stage(config.pretraining, near, collate_unlabelled, collate_unlabelled)
    optimize(NearbyTokens(regions.embedding, says_something), stage, run_dir / PRETRAINING)
    regions.embedding.requires_grad_(False)
    optimize(PartClassifier(regions), _review_stage(config.training, _whole_reviews(data)), run_dir / LABELLED)


def _whole_reviews(data: TrainingData) -> TrainingData:
    """Pieces of reviews teach an encoder what a sentence is worth; of its words they say nothing new."""
    return TrainingData([pool for pool in data.pools if pool.shortest_crop is None], data.validation)


def _review_stage(training: TrainingConfig, data: TrainingData) -> Stage:
    return Stage(training, data, partial(collate_reviews, token_dropout=training.token_dropout), collate_reviews)
