"""Logits whose softmax is a probability that can be believed, of whole texts and of their sentences.

Legend: N texts, C classes, P parts whose logits add up: the encoder, and n-grams and regions where there are some.
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
    """(P) what the logits of each part are multiplied by: the encoder, then n-grams, then regions."""
    prior: float
    """Tokens that n-grams are to count beside those of a text (model/networks/ngrams.py); 0 where there are none."""


@torch.no_grad()
def calibrate(model: TransformerClassifier, examples: Sequence[ReviewExample]) -> Calibration | None:
    """Scale the logits of a model's parts by what makes labels of held-out examples likeliest.

    One number for each: temperature scaling (Guo et al. 2017), which with several parts is how much each is to be
    believed, and how little n-grams in a short text: a random piece of each example, of any length, counts as much as
    the example. The numbers go into the weights, so that whoever uses the model need not know of them.

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
    lengths = torch.tensor([len(example) for example in both])
    calibration = likeliest(parts, labels, lengths, has_prior=model.n_grams is not None)
    factors = iter(calibration.factors)
    factor = next(factors)
    model.output.weight.mul_(factor)
    model.output.bias.mul_(factor)
    if model.n_grams is not None:
        model.n_grams.weight.mul_(next(factors))
        model.n_grams.prior.fill_(calibration.prior)
    if model.regions is not None:
        model.regions.output.weight.mul_(next(factors))
    return calibration


@torch.enable_grad()
def likeliest(parts: Tensor, labels: Tensor, lengths: Tensor, has_prior: bool) -> Calibration:
    """What makes labels (N) of texts of lengths (N) likeliest, given the logits of each part alone (P, N, C).

    Args:
        has_prior: the second part is that of n-grams.
    """
    logarithms = torch.zeros(len(parts) + 1, dtype=torch.float64)
    logarithms[-1] = np.log(FIRST_PRIOR)
    logarithms.requires_grad_()
    optimizer = torch.optim.LBFGS([logarithms], max_iter=200, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        *factors, prior = logarithms.exp()
        scaled = [factor * part.double() for factor, part in zip(factors, parts, strict=True)]
        if has_prior:
            scaled[1] = scaled[1] * (lengths / (lengths + prior)).unsqueeze(1)
        value = F.cross_entropy(torch.stack(scaled).sum(dim=0), labels)
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    *factors, prior = logarithms.detach().exp().tolist()
    return Calibration(tuple(factors), prior if has_prior else 0.0)


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
        beside = [part.pooled(ids, lengths) for part in (model.n_grams, model.regions) if part is not None]
        parts = [logits - sum(beside), *beside]
        of_examples |= zip(map(int, batch), torch.stack(parts, dim=1), strict=True)
    in_order = torch.stack([of_examples[i] for i in range(len(examples))], dim=1)
    return in_order, torch.tensor([example.label for example in examples])
