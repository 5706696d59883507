"""Words and runs of words as evidence of their own, beside what the encoder makes of them.

A Transformer trained on 25,000 reviews hardly learns what "not funny" or "waste of time" is worth; a linear model of
word runs, scaled by how much more often they occur under one label, knows (NB-SVM, Wang and Manning 2012). Its weights
are added to the encoder's per-token logits ("wide and deep", Cheng et al. 2016), but trained apart: a linear model of a
million features soon explains every training text, and would leave the encoder nothing to learn.

Legend: B batch, S source, V vocabulary, C classes, N longest run, F features: V tokens, then hashed runs of tokens.
"""

from collections.abc import Iterable

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from model.config import NGramConfig
from model.networks.masks import padding_mask

GAIN = 16.0
"""Pooling is a mean over hundreds of tokens, so a weight needs leverage to move a logit within a few epochs."""

MULTIPLIER = 1_000_003


class NGramLogits(nn.Module):
    """Per-token logits of the token itself and of the runs that it ends, which add up to 0 over the classes.

    They are to be averaged over a text, and a mean of few says much by chance: of each, a text of n tokens counts
    n / (n + prior), as if it went on with `prior` tokens that say nothing.

    Attributes:
        weight: (F, C - 1), of every class but the first.
        prior: (), in tokens.
        scale: (F, C - 1), what a weight is multiplied by while it is trained; None afterwards.
    """

    scale: Tensor | None
    prior: Tensor

    def __init__(self, vocab_size: int, n_labels: int, config: NGramConfig) -> None:
        super().__init__()
        self.vocab_size = vocab_size
        self.config = config
        self.weight = nn.Parameter(torch.zeros(vocab_size + config.buckets, n_labels - 1))
        self.register_buffer("scale", None, persistent=False)
        self.register_buffer("prior", torch.tensor(0.0))

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """ids (B, S) of lengths (B) to logits (B, S, C)."""
        table = self.weight if self.scale is None else self.weight * self.scale
        logits = F.embedding(ids, table).float()  # (B, S, C - 1)
        for features in self.runs(ids):
            logits = logits + F.embedding(features, table).float()
        logits = F.pad(logits, (1, 0))  # (B, S, C)
        counted = lengths / (lengths + self.prior.float())
        return (logits - logits.mean(dim=-1, keepdim=True)) * counted[:, None, None]

    def pooled(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """ids (B, S) of lengths (B) to their mean logits (B, C)."""
        real = padding_mask(lengths, ids.shape[1]).unsqueeze(-1)
        logits: Tensor = (self(ids, lengths) * real).sum(dim=1) / lengths.unsqueeze(1)
        return logits

    def runs(self, ids: Tensor) -> list[Tensor]:
        """Features (B, S) of the runs of 2, then 3 .. N tokens that end at each of ids (B, S), after <pad>s."""
        run, features = ids, []
        for _ in range(1, self.config.longest):
            before = torch.cat([0 * run[:, :1], run[:, :-1]], dim=1)  # on a GPU, ONNX Runtime pads no whole numbers
            run = before * MULTIPLIER + ids
            features.append(self.vocab_size + run % self.config.buckets)
        return features

    def count(self, texts: Iterable[NDArray[np.int32]], labels: Iterable[int]) -> None:
        """Begin anew, with weights of 0 scaled by log-count ratios: how much likelier a feature is under a class than
        under the first. A feature counts once per text.
        """
        n_features, n_labels = self.weight.shape[0], self.weight.shape[1] + 1
        counts = np.ones((n_labels, n_features))  # one for each unseen
        for text, label in zip(texts, labels, strict=True):
            ids = torch.from_numpy(text.astype(np.int64)).unsqueeze(0)
            counts[label, np.unique(torch.cat([ids, *self.runs(ids)]).numpy())] += 1
        likelihoods = np.log(counts / counts.sum(axis=1, keepdims=True))
        self.scale = torch.from_numpy(GAIN * (likelihoods[1:] - likelihoods[0]).T).float()
        nn.init.zeros_(self.weight)
        self.prior.zero_()

    def fold(self) -> None:
        """Take the scale into the weights."""
        assert self.scale is not None
        self.weight.data *= self.scale
        self.scale = None
