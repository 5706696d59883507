"""Weights in a checkpoint at half the size of float16: int8, with a scale for every block of a row.

Blocks are short, so that one large weight costs its neighbours little; scales are float16, so a weight takes 8.25 bits
(Dettmers et al. 2022 keep weights and optimizer states block by block so).

Legend: N rows, D columns, B blocks of a row.
"""

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

BLOCK = 64
"""Columns that share a scale; the last block of a row may have fewer. A matrix narrower than one is kept as float16."""
SCALES = ".scales"
"""What the name of the scales ends with, behind that of their weights."""
LARGEST = 127


def compressed(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Matrices (N, D) as int8 (N, D) and float16 scales (N, B), whatever else there is as float16."""
    kept: dict[str, Tensor] = {}
    for name, tensor in weights.items():
        if tensor.is_floating_point() and tensor.ndim == 2 and tensor.shape[1] >= BLOCK:
            kept[name], kept[name + SCALES] = quantized(tensor.float())
        else:
            kept[name] = tensor.half()
    return kept


def decompressed(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights as float32, of a checkpoint that is compressed or not.

    Raises:
        ValueError: scales are missing, or are of other weights.
    """
    return {
        name: _scaled(name, tensor, weights.get(name + SCALES)) if tensor.dtype == torch.int8 else tensor.float()
        for name, tensor in weights.items()
        if not name.endswith(SCALES)
    }


def quantized(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """A matrix (N, D) of float32 as int8 (N, D) and float16 scales (N, B)."""
    blocks = _blocks(matrix)
    # The smallest scale that float16 has, for blocks of zeros: what is divided by it stays zero.
    scales = (blocks.abs().amax(dim=2) / LARGEST).clamp(min=torch.finfo(torch.float16).smallest_normal).half()
    numbers = (blocks / scales.float()[..., None]).round().clamp(-LARGEST, LARGEST)
    return numbers.flatten(1)[:, : matrix.shape[1]].to(torch.int8), scales


def dequantized(numbers: Tensor, scales: Tensor) -> Tensor:
    """What `quantized` made of a matrix (N, D), in float32: the numbers are int8 (N, D), the scales float16 (N, B)."""
    weights = _blocks(numbers.float()) * scales.float()[..., None]
    return weights.flatten(1)[:, : numbers.shape[1]].contiguous()


def _scaled(name: str, numbers: Tensor, scales: Tensor | None) -> Tensor:
    if scales is None or numbers.ndim != 2 or scales.shape != (len(numbers), -(-numbers.shape[1] // BLOCK)):
        raise ValueError(f"{name} is int8 without a scale for every {BLOCK} of its numbers")
    return dequantized(numbers, scales)


def _blocks(matrix: Tensor) -> Tensor:
    """(N, D) to (N, B, BLOCK), with zeros behind the end of each row."""
    return F.pad(matrix, (0, -matrix.shape[1] % BLOCK)).reshape(len(matrix), -1, BLOCK)
