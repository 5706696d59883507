"""Copies of models that share tensors: of a large model each tensor more counts."""

import copy
from collections.abc import Callable
from typing import TypeVar

from torch import Tensor, nn

Module = TypeVar("Module", bound=nn.Module)


def copied(model: Module, tensor_of: Callable[[Tensor], Tensor] = lambda tensor: tensor) -> Module:
    """A copy whose tensors are made of the model's, by default the same numbers in the same memory.

    To give the copy other modules, or other types of numbers, leaves the model as it is; to write numbers does not.
    """
    tensors: dict[int, Tensor] = {id(buffer): tensor_of(buffer) for buffer in model.buffers()}
    tensors |= {id(parameter): nn.Parameter(tensor_of(parameter.detach())) for parameter in model.parameters()}
    return copy.deepcopy(model, tensors)
