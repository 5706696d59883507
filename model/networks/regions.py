"""Regions, a token with its neighbours each, as evidence of their own beside what the encoder makes of a text.

What a region is worth is learnt in two views (Johnson and Zhang 2015). From texts without labels: a region's vector is
one by which the tokens near it can be told, so that "a waste of time" and "a dull mess" lie close together even where
labelled reviews have only one of them. From labelled texts: detectors over these vectors and over the tokens
themselves, each of which gives a text the value of its strongest region, as the lecture's max pooling does. Like
n-grams they are trained apart from the encoder, to whose per-token logits theirs are added.

Legend: B batch, S source, V vocabulary, C classes, D width of a region's vector, F detectors.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.config import RegionConfig
from model.networks.masks import padding_mask


class RegionSum(nn.Module):
    """What the tokens of a region add up to, whatever their order."""

    def __init__(self, vocab_size: int, width: int, radius: int, std: float) -> None:
        super().__init__()
        self.radius = radius
        self.tokens = nn.Embedding(vocab_size, width)
        nn.init.normal_(self.tokens.weight, std=std)

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """ids (B, S) of lengths (B) to the sums of the regions around each token (B, S, D)."""
        real = padding_mask(lengths, ids.shape[1]).unsqueeze(-1)
        tokens = self.tokens(ids).float().masked_fill(~real, 0.0)
        n = 2 * self.radius
        with_ends = F.pad(tokens, (0, 0, self.radius, self.radius))
        total: Tensor = sum((with_ends[:, i : i - n] for i in range(n)), start=with_ends[:, n:])
        return total

    def at(self, ids: Tensor, lengths: Tensor, places: Tensor) -> Tensor:
        """Column d of the sum of the region around the token at places (B, D) of each text, (B, D)."""
        near = torch.arange(-self.radius, self.radius + 1, device=ids.device)[:, None, None] + places
        is_real = (near >= 0) & (near < lengths[:, None])
        text = torch.arange(len(ids), device=ids.device)[:, None]
        column = torch.arange(places.shape[1], device=ids.device)
        numbers = self.tokens.weight[ids[text, near.where(is_real, 0)], column]
        total: Tensor = numbers.where(is_real, 0.0).sum(dim=0)
        return total


class RegionEmbedding(RegionSum):
    """The vector of a region: what its tokens add up to, and no negative number."""

    def __init__(self, vocab_size: int, config: RegionConfig) -> None:
        super().__init__(vocab_size, config.width, config.radius, std=0.05)
        self.bias = nn.Parameter(torch.zeros(config.width))

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """ids (B, S) of lengths (B) to the vectors of the regions around each token (B, S, D), zero in padding."""
        real = padding_mask(lengths, ids.shape[1]).unsqueeze(-1)
        return torch.relu(super().forward(ids, lengths) + self.bias).masked_fill(~real, 0.0)


class RegionLogits(nn.Module):
    """Logits of a text, made of the strongest region that each detector finds in it.

    A detector sees the direction of a region's vector, and beside it what labels say of the region's tokens. What all
    of them found is made a vector shorter than 1, however much there is to be found in a long text (response
    normalization, Johnson and Zhang 2015).
    """

    def __init__(self, vocab_size: int, n_labels: int, config: RegionConfig) -> None:
        super().__init__()
        self.embedding = RegionEmbedding(vocab_size, config)
        self.detectors = nn.Linear(config.width, config.detectors)
        self.labelled_embedding = RegionSum(vocab_size, config.detectors, config.labelled_radius, std=0.01)
        self.dropout = nn.Dropout(config.dropout)
        self.output = nn.Linear(config.detectors, n_labels, bias=False)
        nn.init.normal_(self.detectors.weight, std=0.1)
        nn.init.zeros_(self.detectors.bias)
        nn.init.normal_(self.output.weight, std=0.01)

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """ids (B, S) of lengths (B) to per-token logits (B, S, C), whose mean over a text are its logits.

        A detector's part goes to the token around which it found its region, and where it found the same one several
        times, in equal shares.
        """
        found = self.detect(self.directions(ids, lengths), ids, lengths).to(self.output.weight.dtype)
        strongest = found.amax(dim=1, keepdim=True)
        is_strongest = (found == strongest).to(found.dtype)  # anywhere, where nothing was found: 0 in any shares
        shares = is_strongest / is_strongest.sum(dim=1, keepdim=True)
        logits: Tensor = self.output(shares * _shortened(strongest)) * lengths[:, None, None]
        return logits

    def pooled(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """ids (B, S) of lengths (B) to the logits of each text (B, C), which is all that training needs.

        The strongest regions alone have gradients, which saves most of the time of a training step.
        """
        with torch.no_grad():
            directions = self.directions(ids, lengths)
            places = self.detect(directions, ids, lengths).argmax(dim=1)
        strongest = directions[torch.arange(len(ids), device=ids.device)[:, None], places]  # (B, F, D)
        seen = torch.einsum("bfd,fd->bf", strongest, self.detectors.weight) + self.detectors.bias
        found = torch.relu(seen + self.labelled_embedding.at(ids, lengths, places))
        logits: Tensor = self.output(self.dropout(_shortened(found)))
        return logits

    def directions(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """ids (B, S) of lengths (B) to the vectors of the regions around each token, of length 1 (B, S, D)."""
        return F.normalize(self.embedding(ids, lengths), dim=-1)

    def detect(self, directions: Tensor, ids: Tensor, lengths: Tensor) -> Tensor:
        """How strongly each detector sees each region (B, S, F), zero in padding.

        Args:
            directions: (B, S, D), of the same ids (B, S) of lengths (B).
        """
        real = padding_mask(lengths, ids.shape[1]).unsqueeze(-1)
        seen = self.detectors(directions) + self.labelled_embedding(ids, lengths)
        return torch.relu(seen).masked_fill(~real, 0.0)


def _shortened(found: Tensor) -> Tensor:
    """Vectors in the last dimension, of any length, to ones of the same direction that are shorter than 1."""
    return found * torch.rsqrt(1 + (found * found).sum(dim=-1, keepdim=True))
