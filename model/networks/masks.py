"""Who may attend to what: True where it may.

Legend: B batch.
"""

import torch
from torch import Tensor


def padding_mask(lengths: Tensor, size: int) -> Tensor:
    """lengths (B) to a mask (B, size), True where there is a token."""
    return torch.arange(size, device=lengths.device) < lengths.unsqueeze(1)


def causal_mask(size: int, device: torch.device | None = None) -> Tensor:
    """(size, size) mask, True where the column is not in the row's future (lecture, masked self-attention)."""
    return torch.ones(size, size, dtype=torch.bool, device=device).tril()
