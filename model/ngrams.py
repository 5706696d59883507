"""Words and pairs of words as evidence of their own, beside what the encoder makes of them.

A Transformer trained on 25,000 reviews hardly learns what "not funny" or "waste of" is worth; a linear model of word
pairs, scaled by how much more often they occur under one label, knows (NB-SVM, Wang and Manning 2012). Its weights are
added to the encoder's per-token logits and trained with it ("wide and deep", Cheng et al. 2016).

Legend: B batch, S source, V vocabulary, C classes, F features: V tokens, then hashed pairs of neighbouring tokens.
"""

from collections.abc import Iterable

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

GAIN = 64.0
"""Pooling is a mean over hundreds of tokens, so a weight needs leverage to move a logit within a few epochs."""

MULTIPLIER = 1_000_003


class NGramLogits(nn.Module):
    """Per-token logits of the token itself and of its pair with the token before."""

    ratios: Tensor

    def __init__(self, vocab_size: int, n_buckets: int, n_labels: int) -> None:
        super().__init__()
        self.vocab_size = vocab_size
        self.n_buckets = n_buckets
        self.weight = nn.Parameter(torch.zeros(vocab_size + n_buckets))
        self.register_buffer("ratios", torch.zeros(vocab_size + n_buckets, n_labels))

    def forward(self, ids: Tensor) -> Tensor:
        """ids (B, S) to logits (B, S, C)."""
        table = GAIN * self.weight.unsqueeze(1) * self.ratios  # (F, C)
        before = F.pad(ids, (1, 0))[:, :-1]  # the first token's pair is with <pad>
        pairs = self.vocab_size + (before * MULTIPLIER + ids) % self.n_buckets
        return F.embedding(ids, table) + F.embedding(pairs, table)

    def count(self, texts: Iterable[NDArray[np.int32]], labels: Iterable[int]) -> None:
        """Set the log-count ratios: how much likelier a feature is under a label than on average, in nats.

        A feature counts once per text.
        """
        counts = np.ones(tuple(reversed(self.ratios.shape)))  # (C, F), one for each unseen
        for ids, label in zip(texts, labels, strict=True):
            token_ids = ids.astype(np.int64)
            before = np.concatenate([[0], token_ids[:-1]])
            pairs = self.vocab_size + (before * MULTIPLIER + token_ids) % self.n_buckets
            counts[label, np.unique(np.concatenate([token_ids, pairs]))] += 1
        likelihoods = np.log(counts / counts.sum(axis=1, keepdims=True))
        self.ratios.copy_(torch.from_numpy((likelihoods - likelihoods.mean(axis=0)).T))
