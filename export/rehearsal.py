"""Rehearsals: PyTorch computes with the rounding of a graph that is not made yet, to see what the rounding changes."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from export.calibration import ServedModel
from export.copying import copy_model
from export.dense import SIGNED, Int8Embedding, Int8Linear
from export.graphs import MEMORY_STEP
from model.networks.attention import MultiHeadAttention
from model.networks.transformer import Transformer

Round = Callable[[Tensor], Tensor]
Rows = Callable[[Tensor | slice], Tensor]
"""Returns the rounded rows of a table at ids (B, S), or at a slice."""


class RoundedTable(nn.Module):
    """A table of tokens whose rows are rounded when they are read: a large one is not in memory twice."""

    def __init__(self, rows: Rows) -> None:
        super().__init__()
        self.rows = rows

    def forward(self, ids: Tensor) -> Tensor:
        """Look up ids (B, S): vectors (B, S, K)."""
        return self.rows(ids)


def rehearse_int8(model: ServedModel, served: ServedModel) -> ServedModel:
    """Return a copy of a float model that rounds as its int8 copy `served` does: the weights of the layers, and what
    they read."""
    copy = copy_model(model)
    memory = getattr(served.decoder, MEMORY_STEP, None) if isinstance(served, Transformer) else None
    for name, layer in served.named_modules():
        if not isinstance(layer, Int8Linear | Int8Embedding):
            continue
        module: Any = copy.get_submodule(name)
        if isinstance(layer, Int8Linear):
            whole = layer.weight * layer.weight_scales
            whole = whole if layer.smoothing is None else whole.div_(layer.smoothing)
            module.weight = nn.Parameter(whole, requires_grad=False)
        else:
            module = RoundedTable(_rows_in_bytes(layer))
            copy.set_submodule(name, module)
        parent = copy.get_submodule(name.rpartition(".")[0])
        if name.endswith("cross_attention.input") and isinstance(parent, MultiHeadAttention):
            parent.register_forward_pre_hook(_round_two(rounding(layer), in_bytes(memory)))
        elif isinstance(layer, Int8Linear) and layer.step is not None:
            module.register_forward_pre_hook(_round_first(rounding(layer)))
        if isinstance(parent, MultiHeadAttention) and name.endswith("cross_attention.key"):
            parent.register_forward_pre_hook(_round_two(None, in_bytes(memory)))
        if isinstance(copy, Transformer) and module is copy.projection and layer.step is not None:
            copy.decoder.register_forward_hook(_round_result(rounding(layer)))
    return copy


def _rows_in_bytes(table: Int8Embedding) -> Rows:
    return lambda rows: table.weight[rows] * table.weight_scales[rows]


def _rows_in_half(table: Tensor) -> Rows:
    return lambda rows: table[rows].half().float()


def rounding(layer: Int8Linear | Int8Embedding) -> Round:
    """Return how a layer rounds what it reads."""
    step, smoothing = layer.step, getattr(layer, "smoothing", None)
    assert step is not None
    kind = layer.rounding if isinstance(layer, Int8Linear) else SIGNED
    if smoothing is None:
        return lambda x: kind(x, step)
    return lambda x: kind(x / smoothing, step) * smoothing


def in_bytes(step: Tensor | None) -> Round | None:
    """Return signed rounding on a scale, or None."""
    return None if step is None else lambda x: SIGNED(x, step)


def _round_first(of_input: Round) -> Any:
    return lambda _module, inputs: (of_input(inputs[0]), *inputs[1:])


def _round_result(of_result: Round) -> Any:
    return lambda _module, _inputs, result: of_result(result) if isinstance(result, Tensor) else result


def _round_two(query: Round | None, memory: Round | None) -> Any:
    def hook(_module: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        x, key, _value, *others = inputs
        read = key if memory is None else memory(key)
        return (x if query is None else query(x), read, read, *others)

    return hook


def rehearse_float16(model: ServedModel, half: ServedModel) -> ServedModel:
    """Return a copy of a float model whose weights and results of layers are rounded to float16, except in layers that
    its copy `half` has in float32."""
    copy = copy_model(model)
    for name, module in list(copy.named_modules()):
        if isinstance(module, nn.Embedding):
            copy.set_submodule(name, RoundedTable(_rows_in_half(module.weight.detach())))
    copy = copy_model(copy, lambda tensor: tensor.half().float() if tensor.is_floating_point() else tensor)
    whole = {name for name, tensor in half.named_parameters() if tensor.dtype == torch.float32}
    for name in whole:
        module = copy.get_submodule(name.rpartition(".")[0])
        setattr(module, name.rpartition(".")[2], model.get_parameter(name))
    for name, module in copy.named_modules():
        if not any(each.startswith(f"{name}.") for each in whole):
            module.register_forward_hook(_round_result(lambda x: x.half().float()))
    return copy
