"""The floating-point formats that training computes in."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from model.config import Precision

BF16_PRODUCTS = ("avx512_bf16", "amx_bf16", "bf16", "sve_bf16")
"""What `torch.cpu.get_capabilities` calls them."""


def has_bf16_products() -> bool:
    """Whether this machine multiplies matrices in bf16: PyTorch emulates it elsewhere, 40 times as slowly."""
    capabilities = torch.cpu.get_capabilities()
    return torch.accelerator.is_available() or any(capabilities.get(name) for name in BF16_PRODUCTS)


def usable_precision(wished: Precision) -> Precision:
    """float32 in place of bf16 where there are no bf16 products."""
    return wished if has_bf16_products() else "32-true"


class WithoutBf16(TorchFunctionMode):
    """Within it, `tensor.bfloat16()` is a copy in the tensor's own format."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        if func is Tensor.bfloat16:
            return args[0].clone()
        return func(*args, **(kwargs or {}))
