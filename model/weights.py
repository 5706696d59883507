"""weights.safetensors: every tensor of a checkpoint or artifact once, under its name in the model.

A matrix `L.weight` (N, K) may be int8. Then `L.weight.scales` (N, 1) has the factor of each row, and `L.smoothing` (K),
if there is one, the divisor of each column. Names in `.step` are scales of activations. Tensors that follow from the
shape of the model (an encoding of positions) may be stored for graphs that read them.
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

SCALES, STEP, SMOOTHING = ".scales", ".step", ".smoothing"

CACHE_LINE = 64
"""Bytes of a cache line. Large tensors are mapped into memory at such lines, as products are slower across them."""
LARGE_SIZE = 1 << 20
"""Numbers of a tensor that is too large to be copied for nothing."""
ROWS_AT_ONCE = 1 << 14
"""Rows of a table that are compared at once: a large one would take its memory again."""
TYPES = {
    torch.float32: "F32",
    torch.float16: "F16",
    torch.int8: "I8",
    torch.int32: "I32",
    torch.int64: "I64",
    torch.bool: "BOOL",
}


class WeightsError(ValueError):
    """A file of weights is damaged, or is of another model."""


class WithoutInitialization(TorchFunctionMode):
    """Mode in which modules are built without initial numbers, which saves time and memory."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Skip the functions of `torch.nn.init`."""
        if getattr(func, "__module__", None) == "torch.nn.init":
            return (kwargs or {}).get("tensor", *args[:1])
        return func(*args, **(kwargs or {}))


def write_weights(path: Path, tensors: Mapping[str, Tensor], dtype: torch.dtype | None = None) -> None:
    """Write tensors; the same tensors give the same bytes. Those that fill whole cache lines come first, so that all of
    these are aligned; then the others by the size of their numbers, and all by name. Each is converted when it is
    written, so that no two are in memory twice.

    Args:
        dtype: type of stored floating-point tensors; None keeps each as it is, and makes unknown types float32.
    """
    types = {name: _stored_type(tensor, dtype) for name, tensor in tensors.items()}
    sizes = {name: tensor.numel() * types[name].itemsize for name, tensor in tensors.items()}

    def order(name: str) -> tuple[bool, int, str]:
        return sizes[name] % CACHE_LINE != 0, -types[name].itemsize, name

    header, end = {}, 0
    for name in sorted(tensors, key=order):
        start, end = end, end + sizes[name]
        shape = list(tensors[name].shape)
        header[name] = {"dtype": TYPES[types[name]], "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % CACHE_LINE)
    part = path.with_name(f"{path.name}.part")  # an old file may still be mapped
    with part.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in header:
            stored = tensors[name].detach().to(types[name]).contiguous().flatten()
            file.write(memoryview(stored.numpy()))  # type: ignore[arg-type]
    part.replace(path)


def _stored_type(tensor: Tensor, dtype: torch.dtype | None) -> torch.dtype:
    if not tensor.is_floating_point():
        return tensor.dtype
    return dtype or (tensor.dtype if tensor.dtype in TYPES else torch.float32)


def read_weights(path: Path) -> dict[str, Tensor]:
    """Return every tensor by name, as it is stored. Raises WeightsError: the file is damaged."""
    try:
        return load_file(path)
    except SafetensorError as error:
        raise WeightsError(f"{path} is damaged: {error}") from error


def assign_weights(model: nn.Module, stored: Mapping[str, Tensor]) -> None:
    """Assign stored tensors to a float32 model. Large tensors of its types are not copied: `stored` and model share
    them. Small ones are, because any one of them would keep the whole mapped file in memory. Raises WeightsError: the
    tensors are not those of the model."""
    state, derived = model.state_dict(), dict(model.named_buffers())
    foreign = [
        name
        for name in stored
        if name not in state
        and name not in derived
        and not name.endswith((STEP, SMOOTHING))
        and name.removesuffix(SCALES) not in state
    ]
    if foreign:
        raise WeightsError(f"the model has no {', '.join(sorted(foreign))}")
    missing = sorted(state.keys() - stored.keys())
    if missing:
        raise WeightsError(f"{', '.join(missing)} of the model are missing")
    try:
        for name, own in state.items():
            state[name] = dequantize(name, stored).to(own.dtype, copy=own.numel() < LARGE_SIZE)
        model.load_state_dict(state, assign=True)
    except RuntimeError as error:
        raise WeightsError(str(error)) from error


def dequantize(name: str, stored: Mapping[str, Tensor]) -> Tensor:
    """Return a stored tensor; int8 is multiplied by its scales and divided by its smoothing. Raises WeightsError: its
    scales are missing, or scales or smoothing have a wrong shape."""
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
        raise WeightsError(f"the smoothing of {name} must be a number for each column")
    return numbers / smoothing


def strays(name: str, stored: Mapping[str, Tensor], expected: Tensor) -> bool:
    """Whether a stored tensor differs from what was expected by more than its type explains: half a step of int8, half
    of the last bit of float16, nothing else."""
    tensor, scales = stored[name], stored.get(name + SCALES)
    smoothing = stored.get(name.removesuffix(".weight") + SMOOTHING)
    for start in range(0, max(1, len(tensor) if tensor.ndim else 1), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE) if tensor.ndim else ...
        actual, wanted = tensor[rows], expected[rows]
        if tensor.dtype == torch.int8:
            assert scales is not None
            half_a_step = 0.5 * scales[rows] * (1 + 1e-5)
            actual, wanted = actual * scales[rows], wanted if smoothing is None else wanted * smoothing
            is_within = (actual - wanted).abs() <= half_a_step + 1e-6 * wanted.abs()
        elif tensor.dtype == torch.float16:
            is_within = (actual.float() - wanted).abs() <= 2.0**-11 * wanted.abs() + 2.0**-25
        else:
            is_within = actual == wanted
        if not is_within.all():
            return True
    return False
