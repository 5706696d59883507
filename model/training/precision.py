"""Floating-point formats of training."""

import timeit
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from model.recipe import Precision


@cache
def bf16_is_faster() -> bool:
    """Whether this machine multiplies matrices faster in bf16 than in float32.

    It is measured, because CPU flags do not tell: without bf16 products PyTorch emulates them, 40 times as slowly as
    float32; with those of AVX-512 alone it was half as fast (85 against 150 GFLOP/s on one core of a Xeon), with those
    of AMX several times faster.
    """
    return torch.accelerator.is_available() or _product_seconds(torch.bfloat16) < _product_seconds(torch.float32)


def _product_seconds(dtype: torch.dtype) -> float:
    """Time the product of a feed-forward layer with about a thousand tokens."""
    x, weight = torch.ones(1024, 256, dtype=dtype), torch.ones(1024, 256, dtype=dtype)
    return min(timeit.repeat(lambda: x @ weight.T, number=1, repeat=5))


def usable_precision(wished: Precision) -> Precision:
    """Return float32 instead of bf16 if bf16 is not faster."""
    return wished if bf16_is_faster() else "32-true"


class WithoutBf16(TorchFunctionMode):
    """Mode in which `tensor.bfloat16()` copies a tensor in its own format."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        if func is Tensor.bfloat16:
            return args[0].clone()
        return func(*args, **(kwargs or {}))
