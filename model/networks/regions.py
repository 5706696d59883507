"""Regions, a token with its neighbours each, as evidence of their own beside what the encoder makes of a text.

What a region is worth is learnt in two views (Johnson and Zhang 2015). From texts without labels: a region's vector is
one by which the tokens near it can be told, so that "a waste of time" and "a dull mess" lie close together even where
labelled reviews have only one of them. From labelled texts: detectors over these vectors, each of which gives a text
the value of its strongest region, as the lecture's max pooling does. Like n-grams they are trained apart from the
encoder, to whose per-token logits theirs are added.

Legend: B batch, S source, V vocabulary, C classes, D width of a region's vector, F detectors.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.config import RegionConfig
from model.networks.masks import padding_mask


class RegionEmbedding(nn.Module):
    """The vector of a region: what its tokens add up to, whatever their order, and no negative number."""

    def __init__(self, vocab_size: int, config: RegionConfig) -> None:
        super().__init__()
        self.radius = config.radius
        self.tokens = nn.Embedding(vocab_size, config.width)
        self.bias = nn.Parameter(torch.zeros(config.width))
        nn.init.normal_(self.tokens.weight, std=0.05)

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """ids (B, S) of lengths (B) to the vectors of the regions around each token (B, S, D), zero in padding."""
        real = padding_mask(lengths, ids.shape[1]).unsqueeze(-1)
        tokens = self.tokens(ids).to(self.bias.dtype).masked_fill(~real, 0.0)
        total = tokens + self.bias
        for distance in range(1, self.radius + 1):
            total = total + F.pad(tokens, (0, 0, distance, 0))[:, :-distance]
            total = total + F.pad(tokens, (0, 0, 0, distance))[:, distance:]
        return torch.relu(total).masked_fill(~real, 0.0)

    @torch.no_grad()
    def multiply(self, factor: float) -> None:
        """Make every vector `factor` times as long; a ReLU lets a positive factor through."""
        self.tokens.weight.mul_(factor)
        self.bias.mul_(factor)


class RegionLogits(nn.Module):
    """Logits of a text, made of the strongest region that each detector finds in it."""

    def __init__(self, vocab_size: int, n_labels: int, config: RegionConfig) -> None:
        super().__init__()
        self.embedding = RegionEmbedding(vocab_size, config)
        self.detectors = nn.Linear(config.width, config.detectors)
        self.dropout = nn.Dropout(config.dropout)
        self.output = nn.Linear(config.detectors, n_labels, bias=False)
        nn.init.kaiming_normal_(self.detectors.weight, nonlinearity="relu")
        nn.init.zeros_(self.detectors.bias)

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """ids (B, S) of lengths (B) to per-token logits (B, S, C), whose mean over a text are its logits.

        A detector's part goes to the token around which it found its region, and where it found the same one several
        times, in equal shares.
        """
        found = self.detect(ids, lengths).to(self.output.weight.dtype)
        strongest = found.amax(dim=1, keepdim=True)
        is_strongest = (found == strongest).to(found.dtype)  # anywhere, where nothing was found: 0 in any shares
        shares = is_strongest / is_strongest.sum(dim=1, keepdim=True)
        logits: Tensor = self.output(shares * strongest) * lengths[:, None, None]
        return logits

    def pooled(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """ids (B, S) of lengths (B) to the logits of each text (B, C), which is all that training needs."""
        logits: Tensor = self.output(self.dropout(self.detect(ids, lengths).amax(dim=1)))
        return logits

    def detect(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """ids (B, S) of lengths (B): how strongly each detector sees each region (B, S, F), zero in padding."""
        regions = self.embedding(ids, lengths)
        real = padding_mask(lengths, ids.shape[1]).unsqueeze(-1)
        return torch.relu(self.detectors(regions)).masked_fill(~real, 0.0)
