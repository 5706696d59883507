"""Scores of a checkpoint on its test sets: BLEU and chrF, accuracy and calibration, or perplexity."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from manifest.schema import Language
from model.batching import batches_by_length, pad
from model.checkpoint import Checkpoint, CheckpointError
from model.config import ClassifierConfig, RecurrentConfig, TransformerConfig
from model.data import DataError, Row, load_rows
from model.decoding.search import Hypothesis, greedy_search
from model.evaluation.perplexity import measure_perplexity
from model.evaluation.reliability import calibration_error, negative_log_likelihood
from model.networks.language_model import LanguageModel
from model.networks.transformer import TransformerClassifier
from model.networks.translator import TranslationModel
from model.recipe import DataConfig, DataSource
from model.splits import reported_rows
from model.tokenizer import cut_source, special_around, windows_of

BATCH_TOKENS = 4096
SCORES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "softmax": partial(torch.softmax, dim=-1),
    "sigmoid": torch.sigmoid,
    "identity": torch.clone,
}
"""Scores of labels from their logits, by the activation."""
ROWS_OF_KIND = 600
"""Most sentences by which a kind of text is scored."""
UNSPACED = {"ja"}
"""Languages without spaces between words."""


@dataclass(frozen=True)
class TestResult:
    name: str
    scores: dict[str, float]
    signatures: dict[str, str]
    n_rows: int


def evaluate(checkpoint: Checkpoint, sources: Sequence[DataSource], data_dir: Path | None) -> list[TestResult]:
    """Score a checkpoint on test corpora. Raises DataError: a corpus is missing, empty or malformed."""
    results = []
    for source in sources:
        rows = sample_rows(load_rows(source, data_dir), source.sample)
        name = source.file.split("/", 1)[-1].removeprefix("test/").removesuffix(".xz").removesuffix(".tsv")
        if isinstance(checkpoint.model, TranslationModel):
            results.append(_evaluate_translation(checkpoint, name, rows, str(checkpoint.model.config.target)))
        elif isinstance(checkpoint.model, LanguageModel):
            texts, size = [row.right for row in rows], checkpoint.config.max_tokens
            scores = measure_perplexity(checkpoint.model, checkpoint.tokenizer, texts, size)
            results.append(TestResult(name, scores, {}, len(rows)))
        else:
            results.append(_evaluate_classification(checkpoint, name, rows))
    return results


def evaluate_kinds(checkpoint: Checkpoint, data: DataConfig, data_dir: Path | None) -> dict[str, TestResult]:
    """Score a translator on each kind of text in its recipe, by sentences that it was neither trained nor chosen on.
    Raises DataError: a corpus is missing, empty or malformed."""
    if not data.reported_fraction or not isinstance(checkpoint.model, TranslationModel):
        return {}
    corpora: dict[str, list[list[Row]]] = {}
    for source in data.train:
        if source.kind is not None and source.rewrite is None:
            rows = reported_rows(load_rows(source, data_dir), source, data)
            corpora.setdefault(source.kind, []).append(rows)
    target = str(checkpoint.model.config.target)
    return {kind: _evaluate_translation(checkpoint, kind, _evenly(lists), target) for kind, lists in corpora.items()}


def _evenly(corpora: Sequence[list[Row]]) -> list[Row]:
    """Return rows of a kind of text, as many of each corpus as possible."""
    rows = [row for at_once in itertools.zip_longest(*corpora) for row in at_once if row is not None]
    return rows[:ROWS_OF_KIND]


def sample_rows(rows: list[Row], n_rows: int | None) -> list[Row]:
    """Return n_rows of the rows, always the same, in their order; None takes all."""
    if n_rows is None or n_rows >= len(rows):
        return rows
    chosen = np.random.default_rng(1).choice(len(rows), n_rows, replace=False)
    return [rows[i] for i in sorted(chosen.tolist())]


def _evaluate_translation(checkpoint: Checkpoint, name: str, rows: list[Row], target: str) -> TestResult:
    outputs = [text for text, _ in translate(checkpoint, [row.left for row in rows])]
    scores, signatures = score_translations(outputs, [row.right for row in rows], target)
    return TestResult(name, scores, signatures, len(rows))


def score_translations(
    outputs: list[str], references: list[str], target: str
) -> tuple[dict[str, float], dict[str, str]]:
    """Return corpus BLEU and chrF in points, and their sacrebleu signatures.

    BLEU is of characters, and so named, if the target language writes no spaces between words.
    """
    bleu = ("bleu_of_characters", BLEU(tokenize="char")) if target in UNSPACED else ("bleu", BLEU())
    metrics = dict([bleu, ("chrf", CHRF())])
    scores = {name: round(metric.corpus_score(outputs, [references]).score, 2) for name, metric in metrics.items()}
    return scores, {name: str(metric.get_signature()) for name, metric in metrics.items()}


def _evaluate_classification(checkpoint: Checkpoint, name: str, rows: list[Row]) -> TestResult:
    probabilities = classify(checkpoint, [row.right for row in rows])
    return TestResult(name, score_labels(probabilities, [row.left for row in rows]), {}, len(rows))


def score_labels(probabilities: Sequence[dict[str, float]], labels: Sequence[str]) -> dict[str, float]:
    """Return accuracy and expected calibration error in percent, negative log-likelihood in nats.

    Args:
        probabilities: probability of each label, for each text.
        labels: the right labels.
    """
    outputs = [max(scores, key=scores.__getitem__) for scores in probabilities]
    predicted = np.array([scores[output] for scores, output in zip(probabilities, outputs, strict=True)])
    right = np.array([scores[label] for scores, label in zip(probabilities, labels, strict=True)])
    correct = np.array([output == label for output, label in zip(outputs, labels, strict=True)])
    return {
        "accuracy": accuracy(outputs, labels),
        "calibration_error": round(100 * calibration_error(predicted, correct), 2),
        "negative_log_likelihood": round(negative_log_likelihood(right), 4),
    }


def accuracy(outputs: Sequence[str], labels: Sequence[str]) -> float:
    """Return the share of right outputs, in percent."""
    correct = sum(output == label for output, label in zip(outputs, labels, strict=True))
    return round(100 * correct / len(labels), 2)


def translate(
    checkpoint: Checkpoint,
    texts: Sequence[str],
    max_target_tokens: int = 256,
    source: str | None = None,
    target: str | None = None,
) -> list[tuple[str, Hypothesis]]:
    """Translate single sentences greedily, in order.

    Args:
        source, target: language codes of the model; by default its first ones.

    Raises:
        CheckpointError: the checkpoint is not a translator, or has no such language.
    """
    model = checkpoint.model
    if not isinstance(model, TranslationModel):
        raise CheckpointError(
            f"{checkpoint.config.name} does not translate: its task is {checkpoint.config.model.task}"
        )
    read, written = language_of(model.config, "source", source), language_of(model.config, "target", target)
    sources = [cut_source(ids, model.config.max_positions) for ids in checkpoint.encode(texts, read, written)]
    hypotheses: dict[int, Hypothesis] = {}
    for batch in batches_by_length(np.array([len(ids) for ids in sources]), BATCH_TOKENS):
        ids, lengths = pad([sources[i] for i in batch])
        # A translation is rarely twice as long as its source; the limit bounds the caches.
        limit = min(max_target_tokens, 2 * ids.shape[1] + 10)
        best = greedy_search(model, ids, lengths, limit, written.target_prefix if written else ())
        hypotheses |= {int(i): hypothesis for i, hypothesis in zip(batch, best, strict=True)}
    return [(checkpoint.decode(hypotheses[i].ids), hypotheses[i]) for i in range(len(texts))]


def language_of(
    config: TransformerConfig | RecurrentConfig, side: Literal["source", "target"], code: str | None
) -> Language | None:
    """Return one of a Transformer's languages, by default the first. Raises CheckpointError: the model has no such
    language."""
    if not isinstance(config, TransformerConfig):
        return None
    languages = {language.code: language for language in (config.sources if side == "source" else config.targets)}
    if code is not None and code not in languages:
        raise CheckpointError(f"unknown `{side}` language {code}; the model has {', '.join(languages)}")
    return languages[code or next(iter(languages))]


@torch.inference_mode()
def classify(checkpoint: Checkpoint, texts: Sequence[str]) -> list[dict[str, float]]:
    """Return the probability of each label for each text; a long text is read in windows and pooled over all. Raises
    CheckpointError: the checkpoint is not a classifier. Raises DataError: a text is empty."""
    model = checkpoint.model
    if not isinstance(model, TransformerClassifier):
        raise CheckpointError(f"{checkpoint.config.name} does not classify: its task is {checkpoint.config.model.task}")
    size = checkpoint.config.max_tokens
    windows: list[tuple[int, list[int]]] = []
    around = special_around(checkpoint.tokenizer)
    for i, ids in enumerate(checkpoint.encode(texts)):
        if len(ids) <= sum(map(len, around)):
            raise DataError(f"text {i + 1} is empty, so it cannot be classified")
        windows += [(i, window) for window in windows_of(ids, size, around)]
    logits: list[list[tuple[torch.Tensor, int]]] = [[] for _ in texts]
    for batch in batches_by_length(np.array([len(ids) for _, ids in windows]), BATCH_TOKENS):
        padded, lengths = pad([windows[w][1] for w in batch])
        for w, window_logits in zip(batch, model(padded, lengths)[0], strict=True):
            text, window_ids = windows[w]
            logits[text].append((window_logits, len(window_ids)))
    return [_pool_windows(model.config, parts) for parts in logits]


def _pool_windows(config: ClassifierConfig, parts: list[tuple[torch.Tensor, int]]) -> dict[str, float]:
    stacked = torch.stack([logits for logits, _ in parts])
    if config.pooling == "max":
        pooled = stacked.amax(dim=0)
    else:
        lengths = torch.tensor([length for _, length in parts], dtype=stacked.dtype)
        pooled = (stacked * lengths.unsqueeze(1)).sum(dim=0) / lengths.sum()
    return dict(zip(config.labels, SCORES[config.label_activation](pooled).tolist(), strict=True))
