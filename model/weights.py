"""weights.safetensors: every tensor of a checkpoint or an artifact once, under the name that the model gives it.

A matrix `L.weight` (N, K) may be int8. Then `L.weight.scales` (N, 1) tells what the numbers of each row are multiplied
by, and `L.smoothing` (K), where it is there, what those of each column are divided by. What ends in `.step` is the
scale of activations, and what the shape of a model alone tells (an encoding of positions) may be there for graphs that
read it.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

WEIGHTS = "weights.safetensors"
SCALES, STEP, SMOOTHING = ".scales", ".step", ".smoothing"

CACHE_LINE = 64
"""A cache line. Mapped into memory, what is large lies on such lines: read across them, a product takes longer."""

TYPES = {
    torch.float32: "F32",
    torch.float16: "F16",
    torch.int8: "I8",
    torch.int64: "I64",
    torch.bool: "BOOL",
}


class WeightsError(ValueError):
    """A file of weights is damaged, or holds those of another model."""


class WithoutInitialization(TorchFunctionMode):
    """Modules that are made within have no numbers yet: no time and no memory is spent on random ones."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Leave out what `torch.nn.init` does to its tensor."""
        if getattr(func, "__module__", None) == "torch.nn.init":
            return (kwargs or {}).get("tensor", *args[:1])
        return func(*args, **(kwargs or {}))


def write_weights(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """The same bytes for the same tensors. Those that fill whole cache lines come first, so that all of them are
    aligned; the others by the size of their numbers, and all by name.
    """

    def order(name: str) -> tuple[bool, int, str]:
        return tensors[name].nbytes % CACHE_LINE != 0, -tensors[name].element_size(), name

    header, end = {}, 0
    for name in sorted(tensors, key=order):
        tensor, start = tensors[name], end
        end = start + tensor.nbytes
        header[name] = {"dtype": TYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % CACHE_LINE)
    part = path.with_name(f"{path.name}.part")  # what is read of a file that was there may still be mapped
    with part.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in header:
            file.write(memoryview(tensors[name].detach().contiguous().flatten().numpy()))  # type: ignore[arg-type]
    part.replace(path)


def read_weights(path: Path) -> dict[str, Tensor]:
    """Every tensor as it is stored, by name.

    Raises:
        WeightsError: the file is damaged.
    """
    try:
        return load_file(path)
    except SafetensorError as error:
        raise WeightsError(f"{path} is damaged: {error}") from error


def assign_weights(model: nn.Module, stored: Mapping[str, Tensor]) -> None:
    """Let a model of float32 have what is stored. Tensors of its types are not copied: `stored` and model share them.

    Raises:
        WeightsError: it is not what the model has.
    """
    own, derived = model.state_dict(), dict(model.named_buffers())
    foreign = [
        name
        for name in stored
        if name not in own
        and name not in derived
        and not name.endswith((STEP, SMOOTHING))
        and name.removesuffix(SCALES) not in own
    ]
    if foreign:
        raise WeightsError(f"the model has no {', '.join(sorted(foreign))}")
    missing = sorted(own.keys() - stored.keys())
    if missing:
        raise WeightsError(f"{', '.join(missing)} of the model are missing")
    try:
        model.load_state_dict({name: dequantize(name, stored).to(own[name].dtype) for name in own}, assign=True)
    except RuntimeError as error:
        raise WeightsError(str(error)) from error


def dequantize(name: str, stored: Mapping[str, Tensor]) -> Tensor:
    """A stored tensor; if it is int8, multiplied by its scales and divided by its smoothing.

    Raises:
        WeightsError: its scales are missing, or these or its smoothing are of another tensor.
    """
    tensor = stored[name]
    if tensor.dtype != torch.int8:
        return tensor
    scales = stored.get(name + SCALES)
    if tensor.ndim != 2 or scales is None or scales.shape != (len(tensor), 1):
        raise WeightsError(f"{name} is int8 without a scale for each row")
    numbers, smoothing = tensor.float() * scales, stored.get(name.removesuffix(".weight") + SMOOTHING)
    if smoothing is None:
        return numbers
    if smoothing.shape != numbers.shape[1:]:
        raise WeightsError(f"the smoothing of {name} is not a number for each column")
    return numbers / smoothing


def to_known_type(tensor: Tensor) -> Tensor:
    """A tensor of one of `TYPES`: other floating-point numbers, as bfloat16, become float32."""
    return tensor.float() if tensor.is_floating_point() and tensor.dtype not in TYPES else tensor
