"""Copies of models that share tensors, to save the memory of large models."""

import copy
from collections.abc import Callable
from typing import TypeVar

from torch import Tensor, nn

Module = TypeVar("Module", bound=nn.Module)


def copy_model(model: Module, tensor_of: Callable[[Tensor], Tensor] = lambda tensor: tensor) -> Module:
    """Return a copy with tensors made by `tensor_of`, by default the same ones in the same memory.

    Replacing modules or tensors of the copy leaves the model as it is; writing into shared tensors does not.
    """
    tensors: dict[int, Tensor] = {id(buffer): tensor_of(buffer) for buffer in model.buffers()}
    tensors |= {id(parameter): nn.Parameter(tensor_of(parameter.detach())) for parameter in model.parameters()}
    return copy.deepcopy(model, tensors)
