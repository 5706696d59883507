"""Tables of a classifier's parts, looked up in an artifact as small as a checkpoint keeps them.

Legend: B batch, S source, V vocabulary, D columns, K blocks of columns that share a scale (model/compression.py).
"""

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from export.manifest import Precision
from model.compression import BLOCK, dequantized, quantized
from model.networks.transformer import Transformer, TransformerClassifier


class CompressedEmbedding(nn.Module):
    """An embedding whose numbers are int8, with a scale for every block of a row."""

    numbers: Tensor
    scales: Tensor

    def __init__(self, numbers: Tensor, scales: Tensor) -> None:
        """numbers (V, D) and scales (V, K) as `model.compression.quantized` returns them."""
        super().__init__()
        self.width = numbers.shape[1]
        self.register_buffer("numbers", F.pad(numbers, (0, -self.width % BLOCK)))
        self.register_buffer("scales", scales)

    def forward(self, ids: Tensor) -> Tensor:
        """ids (B, S) to vectors (B, S, D) in float32."""
        blocks = F.embedding(ids, self.numbers).float().view(*ids.shape, -1, BLOCK)
        scaled: Tensor = blocks * F.embedding(ids, self.scales).float().unsqueeze(-1)
        return scaled.flatten(-2)[..., : self.width]


def with_small_tables(
    model: Transformer | TransformerClassifier, precision: Precision
) -> Transformer | TransformerClassifier:
    """A copy whose n-grams are looked up in float16, as in the checkpoint, and added up in float32. In int8 so are
    regions, or in the int8 of a compressed checkpoint.
    """
    small = copy.deepcopy(model)
    if isinstance(small, TransformerClassifier):
        if small.n_grams is not None:
            small.n_grams.half()
        if small.regions is not None and precision == "int8":
            for part in (small.regions.embedding, small.regions.labelled_embedding):
                part.register_module("tokens", _small(part.tokens))
    return small


def _small(table: nn.Embedding) -> nn.Module:
    """In int8 where that loses nothing: with other numbers a detector may call another region the strongest."""
    numbers, scales = quantized(table.weight.detach())
    if torch.equal(dequantized(numbers, scales), table.weight):
        return CompressedEmbedding(numbers, scales)
    return table.half()
