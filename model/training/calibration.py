"""Logits whose softmax is a probability that can be believed, of whole texts and of their sentences.

Legend: N texts, C classes, P parts whose logits add up: the encoder, and n-grams where there are some.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from model.batching import ReviewExample, batches_by_length, pad
from model.networks.transformer import TransformerClassifier

BATCH_TOKENS = 4096
SHORTEST_PIECE = 6
FIRST_PRIOR = 100.0
"""Tokens; where the search for the likeliest begins."""


@dataclass(frozen=True)
class Calibration:
    factors: tuple[float, ...]
    """(P) what the logits of each part are multiplied by."""
    prior: float
    """Tokens that n-grams are to count beside those of a text (model/networks/ngrams.py); 0 where there are none."""


@torch.no_grad()
def calibrate(model: TransformerClassifier, examples: Sequence[ReviewExample]) -> Calibration | None:
    """Scale the encoder's logits and those of the n-grams by what makes labels of held-out examples likeliest.

    One number for each: temperature scaling (Guo et al. 2017), and with n-grams how much either is to be believed, and
    how little in a short text: a random piece of each example, of any length, counts as much as the example. The
    numbers go into the weights, so that whoever uses the model need not know of them.

    Returns:
        The numbers; None where nothing was held out.
    """
    model.eval()
    if not examples:
        return None
    if model.n_grams is not None:
        model.n_grams.prior.zero_()
    both = [*examples, *_pieces(examples)]
    parts, labels = _logits(model, both)
    calibration = likeliest(parts, labels, torch.tensor([len(example) for example in both]))
    model.output.weight.mul_(calibration.factors[0])
    model.output.bias.mul_(calibration.factors[0])
    if model.n_grams is not None:
        model.n_grams.weight.mul_(calibration.factors[1])
        model.n_grams.prior.fill_(calibration.prior)
    return calibration


@torch.enable_grad()
def likeliest(parts: Tensor, labels: Tensor, lengths: Tensor) -> Calibration:
    """What makes labels (N) of texts of lengths (N) likeliest, given the logits of each part alone (P, N, C)."""
    logarithms = torch.zeros(len(parts) + 1, dtype=torch.float64)
    logarithms[-1] = np.log(FIRST_PRIOR)
    logarithms.requires_grad_()
    optimizer = torch.optim.LBFGS([logarithms], max_iter=200, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        *factors, prior = logarithms.exp()
        encoder, *n_grams = (factor * part.double() for factor, part in zip(factors, parts, strict=True))
        counted = (lengths / (lengths + prior)).unsqueeze(1)
        value = F.cross_entropy(sum((counted * part for part in n_grams), encoder), labels)
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    *factors, prior = logarithms.detach().exp().tolist()
    return Calibration(tuple(factors), prior if len(parts) > 1 else 0.0)


def _pieces(examples: Sequence[ReviewExample]) -> list[ReviewExample]:
    """A random piece of each, the logarithm of its length uniform: most texts that are no reviews are short."""
    random = np.random.default_rng(1)
    pieces = []
    for example in examples:
        shortest = min(SHORTEST_PIECE, len(example))
        length = round(np.exp(random.uniform(np.log(shortest), np.log(len(example)))))
        start = random.integers(0, len(example) - length + 1)
        pieces.append(ReviewExample(example.ids[start : start + length], example.label))
    return pieces


def _logits(model: TransformerClassifier, examples: Sequence[ReviewExample]) -> tuple[Tensor, Tensor]:
    """Of each part (P, N, C), and labels (N), in the order of the examples."""
    of_examples: dict[int, Tensor] = {}
    for batch in batches_by_length(np.array([len(example) for example in examples]), BATCH_TOKENS):
        ids, lengths = pad([examples[i].ids for i in batch])
        logits, _ = model(ids, lengths)
        if model.n_grams is None:
            parts = [logits]
        else:
            n_grams = model.n_grams.pooled(ids, lengths)
            parts = [logits - n_grams, n_grams]
        of_examples |= zip(map(int, batch), torch.stack(parts, dim=1), strict=True)
    in_order = torch.stack([of_examples[i] for i in range(len(examples))], dim=1)
    return in_order, torch.tensor([example.label for example in examples])
