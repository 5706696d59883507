"""Whether evidence tells what a classifier goes by: tokens that have most of it matter most when they are taken out.

"Comprehensiveness" of DeYoung et al. 2020 ("ERASER", section 4), beside tokens taken out at random.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from model.batching import batches_by_length, pad
from model.checkpoint import Checkpoint, CheckpointError
from model.networks.transformer import TransformerClassifier

BATCH_TOKENS = 4096
RANDOM_DRAWS = 5
"""Of the tokens that are taken out at random, for each text."""


@dataclass(frozen=True)
class Faithfulness:
    n_texts: int
    by_evidence: float
    """How far the probability of the answer moves, in percent, without the tokens with most evidence for it."""
    at_random: float
    """The same without as many others."""

    @property
    def ratio(self) -> float:
        """Several times 1 where evidence is faithful."""
        return self.by_evidence / self.at_random


def faithfulness(checkpoint: Checkpoint, texts: Sequence[str], n_taken_out: int = 3) -> Faithfulness:
    """Take tokens out of texts, of those that have more tokens than that and fit into one window.

    Raises:
        CheckpointError: the checkpoint is no classifier, its tokens have no evidence of their own, or no text is left.
    """
    model = checkpoint.model
    if not isinstance(model, TransformerClassifier) or model.config.pooling == "first":
        raise CheckpointError(f"{checkpoint.config.name} is no classifier whose logits are made of those of its tokens")
    limit = checkpoint.config.max_tokens
    sequences = [ids for ids in checkpoint.encode(texts) if n_taken_out < len(ids) <= limit]
    if not sequences:
        raise CheckpointError(f"no text has more than {n_taken_out} and at most {limit} tokens")
    answers, evidence = [], []
    for probabilities, token_logits in _read(model, sequences):
        answer = int(probabilities.argmax())
        answers.append(answer)
        evidence.append(token_logits[:, answer] - np.delete(token_logits, answer, axis=1).mean(axis=1))
    before = _of(model, sequences, answers)
    highest = [np.delete(ids, np.argsort(-e)[:n_taken_out]) for ids, e in zip(sequences, evidence, strict=True)]
    by_evidence = np.abs(_of(model, highest, answers) - before).mean()
    random = np.random.default_rng(1)
    moved = []
    for _ in range(RANDOM_DRAWS):
        others = [np.delete(ids, random.choice(len(ids), n_taken_out, replace=False)) for ids in sequences]
        moved.append(np.abs(_of(model, others, answers) - before).mean())
    return Faithfulness(len(sequences), 100 * float(by_evidence), 100 * float(np.mean(moved)))


def _of(
    model: TransformerClassifier, sequences: Sequence[Sequence[int] | NDArray[np.int64]], labels: Sequence[int]
) -> NDArray[np.float64]:
    """The probability of a label for each sequence."""
    return np.array([read[label] for (read, _), label in zip(_read(model, sequences), labels, strict=True)])


@torch.inference_mode()
def _read(
    model: TransformerClassifier, sequences: Sequence[Sequence[int] | NDArray[np.int64]]
) -> list[tuple[NDArray[np.float64], NDArray[np.float32]]]:
    """Probabilities (C) and token logits (S, C) of each sequence."""
    found: dict[int, tuple[NDArray[np.float64], NDArray[np.float32]]] = {}
    for batch in batches_by_length(np.array([len(ids) for ids in sequences]), BATCH_TOKENS):
        ids, lengths = pad([list(sequences[i]) for i in batch])
        logits, token_logits = model(ids, lengths)
        probabilities = logits.double().softmax(dim=-1).numpy()
        found |= {
            int(i): (p, t[:length])
            for i, p, t, length in zip(batch, probabilities, token_logits.numpy(), lengths.tolist(), strict=True)
        }
    return [found[i] for i in range(len(sequences))]
