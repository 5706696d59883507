"""Pooling of the states of a text into one vector.

Legend: S source tokens, E width of the encoder, D width of an embedding.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from model.config import EmbedderConfig


def normalized(vectors: Tensor) -> Tensor:
    """Scale vectors (..., E) to length 1, so that a product of two is their cosine."""
    return F.normalize(vectors, dim=-1)


def pooled(states: Tensor, n_tokens: int, config: EmbedderConfig) -> Tensor:
    """Pool states (S, E), the last of n_tokens, in every configured way, concatenated: (D)."""
    S = len(states)
    places = torch.arange(n_tokens - S + 1, n_tokens + 1).unsqueeze(1)
    kinds = {
        "first": states[0],
        "last": states[-1],
        "max": states.amax(dim=0),
        "mean": states.mean(dim=0),
        "mean_sqrt_len": states.sum(dim=0) / S**0.5,
        "weighted_mean": (states * places).sum(dim=0) / places.sum(),
    }
    return torch.cat([kinds[kind] for kind in config.pooling])
