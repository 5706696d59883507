"""Tables of positions as other toolkits compute them: all sines, then all cosines.

Toolkits differ in the exponent's divisor: half of the width, or half of it less one.
"""

import math

import torch
from torch import Tensor


def sines_then_cosines(n_positions: int, width: int, divisor: float, first: int = 0) -> Tensor:
    """Return a table (n_positions, width) from position `first` on: p * 10000^(-i / divisor) for i below width / 2.

    Args:
        divisor: width / 2 in transformers' Marian, width / 2 - 1 in tensor2tensor, fairseq, Marian and CTranslate2.
    """
    position = torch.arange(first, first + n_positions, dtype=torch.float64).unsqueeze(1)
    frequency = torch.exp(torch.arange(width // 2, dtype=torch.float64) * (-math.log(10000.0) / divisor))
    angles = position * frequency
    return torch.cat([angles.sin(), angles.cos()], dim=1).float()
