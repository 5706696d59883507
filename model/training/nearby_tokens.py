"""Pre-training of a region embedding: by a region's vector the tokens near it are to be told from others.

Legend: B batch, S source, N regions, V vocabulary, D width of a region's vector, C candidates, P pairs of a region and
a token near it.
"""

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from model.networks.masks import padding_mask
from model.networks.regions import RegionEmbedding

REACH = 5
"""Tokens on either side of a region that are near it."""

MOST_CANDIDATES = 2560
"""Tokens among which those near a region are to be found; of all of them most would be known to be wrong."""

CHUNK = 1024
"""Regions whose logits are in a CPU's cache at once: 1,024 x 2,560 x 4 bytes is 10 MB."""


class NearbyTokens(nn.Module):
    """A region embedding, and what tells by it which tokens are near.

    Args:
        says_something: (V), False for tokens that are found near everything.
    """

    says_something: Tensor

    def __init__(self, region_embedding: RegionEmbedding, says_something: Tensor) -> None:
        super().__init__()
        self.region_embedding = region_embedding
        self.register_buffer("says_something", says_something, persistent=False)
        self.embedding = nn.Embedding(*region_embedding.tokens.weight.shape)
        self.bias = nn.Parameter(torch.zeros(len(says_something)))
        nn.init.normal_(self.embedding.weight, std=0.05)

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Mean cross-entropy, in nats, of the tokens near each region of ids (B, S) of lengths (B), among candidates:
        those of the batch, and others at random.
        """
        candidates = self._candidates(ids)
        column = torch.full_like(self.says_something, -1, dtype=torch.long)
        column[candidates] = torch.arange(len(candidates), device=ids.device)
        rows, columns = nearby_pairs(column[ids], lengths, self.region_embedding.radius)
        regions = self.region_embedding(ids, lengths).flatten(0, 1)
        loss: Tensor = _NearbyCrossEntropy.apply(  # type: ignore[no-untyped-call]
            regions, self.embedding(candidates), self.bias[candidates], rows, columns
        )
        return loss

    def _candidates(self, ids: Tensor) -> Tensor:
        """Always as many, since a product of a new shape is compiled first; the same each time they are not trained."""
        in_batch = torch.zeros_like(self.says_something).index_fill(0, ids.flatten(), True)
        generator = None if self.training else torch.Generator(ids.device).manual_seed(0)
        order = torch.rand(len(in_batch), generator=generator, device=ids.device) + in_batch
        n = min(MOST_CANDIDATES, int(self.says_something.sum()))
        return order.masked_fill(~self.says_something, -1).topk(n).indices


def nearby_pairs(columns: Tensor, lengths: Tensor, radius: int) -> tuple[Tensor, Tensor]:
    """Of columns (B, S), one for each token of lengths (B) and -1 for those that do not count: regions, as places in a
    flattened (B, S), with the columns of the tokens near them, each (P), in the order of the regions.
    """
    B, S = columns.shape
    real = padding_mask(lengths, S)
    counts = real & (columns >= 0)
    places = torch.arange(B * S, device=columns.device).view(B, S)
    rows, near = [], []
    for distance in range(radius + 1, min(radius + REACH, S - 1) + 1):
        for region, token in (
            (slice(None, -distance), slice(distance, None)),
            (slice(distance, None), slice(None, -distance)),
        ):
            pairs = real[:, region] & counts[:, token]
            rows.append(places[:, region][pairs])
            near.append(columns[:, token][pairs])
    if not rows:
        return columns.new_empty(0), columns.new_empty(0)
    in_order, order = torch.cat(rows).sort()
    return in_order, torch.cat(near)[order]


class _NearbyCrossEntropy(torch.autograd.Function):
    """As `model.training.loss.linear_cross_entropy`, with any number of targets for each row."""

    @staticmethod
    def forward(ctx: Any, regions: Tensor, weight: Tensor, bias: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        N, C = len(regions), len(weight)
        device = regions.device.type
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else regions.dtype
        regions_, weight_ = regions.to(dtype), weight.to(dtype)
        n_pairs = max(1, len(rows))
        shares = torch.bincount(rows, minlength=N).unsqueeze(1) / n_pairs  # of a region in the mean
        region_grad, weight_grad, bias_grad = (torch.zeros_like(x) for x in (regions, weight, bias))
        loss = torch.zeros((), device=regions.device)
        starts = range(0, N, CHUNK)
        ends = torch.searchsorted(rows, torch.tensor([*starts, N], device=rows.device)).tolist()
        with torch.autocast(device, enabled=False):
            for start, (first, last) in zip(starts, pairwise(ends), strict=True):
                chunk = slice(start, start + CHUNK)
                logits = (regions_[chunk] @ weight_.T).float().add_(bias)  # (chunk, C)
                correct = (rows[first:last] - start) * C + columns[first:last]
                normalizer = logits.logsumexp(dim=1, keepdim=True)
                loss += (normalizer * shares[chunk]).sum() - logits.view(-1)[correct].sum() / n_pairs
                grad = logits.sub_(normalizer).exp_().mul_(shares[chunk])
                grad.view(-1).index_add_(0, correct, grad.new_full(correct.shape, -1 / n_pairs))
                bias_grad += grad.sum(dim=0)
                grad = grad.to(dtype)
                region_grad[chunk] = (grad @ weight_).to(regions.dtype)
                weight_grad += grad.T @ regions_[chunk]
        ctx.save_for_backward(region_grad, weight_grad, bias_grad)
        return loss

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return *(saved * gradients[0] for saved in ctx.saved_tensors), None, None
