"""Calibration of classifiers, so that scores are believable probabilities for texts and for their sentences.

Legend: N texts, C classes.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from model.batching import ReviewExample, batches_by_length, pad, piece, random_pieces
from model.networks.transformer import TransformerClassifier

BATCH_TOKENS = 4096
MIN_PIECE_TOKENS = 6


@torch.no_grad()
def calibrate(
    model: TransformerClassifier,
    examples: Sequence[ReviewExample],
    n_around: tuple[int, int] = (0, 0),
) -> float:
    """Multiply a model's logits by the factor that makes labels of held-out examples most likely (Guo et al. 2017).

    A random piece of each example, of any length, counts as much as the example. The factor goes into the weights, so
    that users of the model need not know it.

    Args:
        n_around: numbers of special tokens before and after each text.

    Returns:
        The factor, the inverse of a temperature; 1 if nothing was held out.
    """
    model.eval()
    if not examples:
        return 1.0
    factor = best_factor(*_logits(model, [*examples, *_pieces(examples, n_around)]))
    model.output.weight.mul_(factor)
    model.output.bias.mul_(factor)
    return factor


@torch.enable_grad()
def best_factor(logits: Tensor, labels: Tensor) -> float:
    """Return the factor of logits (N, C) that makes labels (N) most likely."""
    logarithm = torch.zeros((), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([logarithm], max_iter=200, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = F.cross_entropy(logarithm.exp() * logits.double(), labels)
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    return float(logarithm.detach().exp())


def _pieces(examples: Sequence[ReviewExample], n_around: tuple[int, int]) -> list[ReviewExample]:
    """Return a random piece of each, the logarithm of its length uniform: most texts that are no reviews are short."""
    texts = np.array([len(example) - sum(n_around) for example in examples])
    starts, stops = random_pieces(texts, MIN_PIECE_TOKENS, np.random.default_rng(1))
    return [
        replace(example, ids=piece(example.ids, start, stop, n_around))
        for example, start, stop in zip(examples, starts, stops, strict=True)
    ]


def _logits(model: TransformerClassifier, examples: Sequence[ReviewExample]) -> tuple[Tensor, Tensor]:
    of_examples: dict[int, Tensor] = {}
    for batch in batches_by_length(np.array([len(example) for example in examples]), BATCH_TOKENS):
        logits, _ = model(*pad([examples[i].ids for i in batch]))
        of_examples |= zip(map(int, batch), logits, strict=True)
    in_order = torch.stack([of_examples[i] for i in range(len(examples))])
    return in_order, torch.tensor([example.label for example in examples])
