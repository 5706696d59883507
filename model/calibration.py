"""Logits whose softmax is a probability that can be believed.

Legend: N texts, C classes.
"""

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from model.batching import ReviewExample, batches_by_length, pad
from model.transformer import TransformerClassifier

BATCH_TOKENS = 4096


@torch.no_grad()
def calibrate(model: TransformerClassifier, examples: Sequence[ReviewExample]) -> tuple[float, ...]:
    """Scale the encoder's logits and those of the n-grams by what makes labels of held-out examples likeliest.

    One number for each: temperature scaling (Guo et al. 2017), and with n-grams how much either is to be believed. The
    numbers go into the weights, so that whoever uses the model need not know of them.

    Returns:
        The encoder's factor, and the n-grams' where there are n-grams; nothing where nothing was held out.
    """
    model.eval()
    if not examples:
        return ()
    parts, labels = _logits(model, examples)
    factors = likeliest_factors(parts, labels)
    model.output.weight.mul_(factors[0])
    model.output.bias.mul_(factors[0])
    if model.n_grams is not None:
        model.n_grams.weight.mul_(factors[1])
    return tuple(factors.tolist())


@torch.enable_grad()
def likeliest_factors(parts: Tensor, labels: Tensor) -> Tensor:
    """(P) positive factors with which the sum of parts (P, N, C) has the lowest cross-entropy with labels (N)."""
    logarithms = torch.zeros(len(parts), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([logarithms], max_iter=100, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = F.cross_entropy((logarithms.exp()[:, None, None] * parts.double()).sum(dim=0), labels)
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    return logarithms.detach().exp().float()


def _logits(model: TransformerClassifier, examples: Sequence[ReviewExample]) -> tuple[Tensor, Tensor]:
    """Of the encoder and of the n-grams (P, N, C), and labels (N)."""
    parts: list[Tensor] = []
    labels: list[int] = []
    for batch in batches_by_length(np.array([len(example) for example in examples]), BATCH_TOKENS):
        chosen = [examples[i] for i in batch]
        ids, lengths = pad([example.ids for example in chosen])
        logits, _ = model(ids, lengths)
        if model.n_grams is None:
            parts.append(logits.unsqueeze(0))
        else:
            n_grams = model.n_grams.pooled(ids, lengths)
            parts.append(torch.stack([logits - n_grams, n_grams]))
        labels += [example.label for example in chosen]
    return torch.cat(parts, dim=1), torch.tensor(labels)
