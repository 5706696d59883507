"""Faithfulness of evidence: without the tokens that have most of it, a classifier's answer must change most.

The evidence of a token is what a label's logit loses without it (Li et al. 2016, "Understanding Neural Networks through
Representation Erasure"). Faithfulness is measured by "comprehensiveness" (DeYoung et al. 2020, "ERASER", section 4):
several tokens are removed together, those with most evidence, or random ones.

Legend: N texts, S tokens of one of them, C classes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from model.batching import batches_by_length, pad
from model.checkpoint import Checkpoint, CheckpointError
from model.networks.transformer import TransformerClassifier
from model.tokenizer import n_special_around

BATCH_TOKENS = 4096
ENCODE_BATCH = 1000
"""Texts encoded at once: the tokenizer returns kilobytes for each."""
RANDOM_DRAWS = 5
"""Number of random removals for each text."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Faithfulness:
    n_texts: int
    by_evidence: float
    """Mean change of the answer's probability, in percent, without the tokens with most evidence for it."""
    at_random: float
    """The same without as many random tokens."""

    @property
    def ratio(self) -> float:
        """Ratio of the two; well above 1 if evidence is faithful."""
        return self.by_evidence / self.at_random if self.at_random else float("nan")


def faithfulness(
    checkpoint: Checkpoint, texts: Sequence[str], n_texts: int = 1000, n_taken_out: int = 3, longest: int = 64
) -> Faithfulness:
    """Remove `n_taken_out` tokens from `n_texts` texts, always the same ones, of at most `longest` tokens. Raises
    CheckpointError: the checkpoint is no classifier with one label per text, or no text is left."""
    model = checkpoint.model
    if not isinstance(model, TransformerClassifier):
        raise CheckpointError(f"{checkpoint.config.name} is no classifier: its task is {checkpoint.config.model.task}")
    if model.config.label_activation != "softmax":
        raise CheckpointError(
            f"{checkpoint.config.name} has `label_activation: sigmoid`; only `softmax` can be measured"
        )
    before, after = n_special_around(checkpoint.tokenizer)
    few, many = n_taken_out + before + after, min(longest, checkpoint.config.max_tokens)
    sequences = [
        np.array(ids)
        for start in range(0, len(texts), ENCODE_BATCH)
        for ids in checkpoint.encode(texts[start : start + ENCODE_BATCH])
        if few < len(ids) <= many
    ]
    if not sequences:
        raise CheckpointError(f"no text has more than {few} and at most {many} tokens")
    random = np.random.default_rng(1)
    if n_texts < len(sequences):
        sequences = [sequences[i] for i in random.choice(len(sequences), n_texts, replace=False)]
    places_of_texts = [np.arange(before, len(ids) - after) for ids in sequences]
    whole = _logits(model, sequences)
    answers = whole.argmax(axis=1)
    highest, others = [], []
    for ids, places, logits, answer in zip(sequences, places_of_texts, whole, answers, strict=True):
        without_each = _logits(model, [np.delete(ids, place) for place in places])
        lost = _margins(logits[None], answer) - _margins(without_each, answer)
        highest.append(np.delete(ids, places[np.argsort(-lost)[:n_taken_out]]))
        others += [np.delete(ids, random.choice(places, n_taken_out, replace=False)) for _ in range(RANDOM_DRAWS)]
    said = _probabilities(whole, answers)
    by_evidence = np.abs(_probabilities(_logits(model, highest), answers) - said)
    at_random = np.abs(
        _probabilities(_logits(model, others), np.repeat(answers, RANDOM_DRAWS)) - np.repeat(said, RANDOM_DRAWS)
    )
    return Faithfulness(len(sequences), 100 * float(by_evidence.mean()), 100 * float(at_random.mean()))


def _margins(logits: Floats, label: int) -> Floats:
    """Return how far a label's logit is above the mean of the others, of logits (N, C): (N)."""
    margins: Floats = logits[:, label] - np.delete(logits, label, axis=1).mean(axis=1)
    return margins


def _probabilities(logits: Floats, labels: NDArray[np.int64]) -> Floats:
    """Return the probability of each text's label (N), given logits (N, C)."""
    shares = torch.from_numpy(logits).softmax(dim=-1).numpy()
    chosen: Floats = shares[np.arange(len(labels)), labels]
    return chosen


@torch.inference_mode()
def _logits(model: TransformerClassifier, sequences: Sequence[NDArray[np.int64]]) -> Floats:
    logits = np.empty((len(sequences), len(model.config.labels)))
    for batch in batches_by_length(np.array([len(ids) for ids in sequences]), BATCH_TOKENS):
        ids, lengths = pad([sequences[i].tolist() for i in batch])
        logits[batch] = model(ids, lengths)[0].numpy()
    return logits
