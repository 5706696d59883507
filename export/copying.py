"""Copies of models that share tensors, to save the memory of large models."""

import copy
from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor, nn

from model.weights import LARGE_SIZE

Module = TypeVar("Module", bound=nn.Module)


def copy_model(model: Module, tensor_of: Callable[[Tensor], Tensor] = lambda tensor: tensor) -> Module:
    """Return a copy with tensors made by `tensor_of`, by default the same ones in the same memory.

    Replacing modules or tensors of the copy leaves the model as it is; writing into shared tensors does not.
    """
    tensors: dict[int, Tensor] = {id(buffer): tensor_of(buffer) for buffer in model.buffers()}
    tensors |= {id(parameter): nn.Parameter(tensor_of(parameter.detach())) for parameter in model.parameters()}
    return copy.deepcopy(model, tensors)


def drop_large_weights(model: nn.Module) -> None:
    """Give back the memory of large weights: they become tensors of the same shape without numbers. Dense layers of an
    embedder are copied, as they would keep a mapped file in memory."""
    for name, weight in model.named_parameters():
        if weight.numel() >= LARGE_SIZE:
            weight.data = weight.detach().clone() if name.startswith("dense.") else torch.empty_like(weight)


def half_without_large_numbers(tensor: Tensor) -> Tensor:
    """Return a tensor of the same shape in float16, for a model that is only traced.

    A large one has no numbers: its memory is never touched, so the system gives it none. A graph names it, and a reader
    of the artifact converts the stored tensor.
    """
    if not tensor.is_floating_point():
        return tensor
    return torch.empty_like(tensor, dtype=torch.float16) if tensor.numel() >= LARGE_SIZE else tensor.half()
