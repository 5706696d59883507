"""The encoder on a device. It uses few shapes, since the first pass of a shape takes long.

Legend: B newcomers, S source, C caches, E d_model.
"""

import math
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from onnxruntime import OrtValue

from service.runner.caches import COARSE_LENGTHS
from service.runner.device_caches import MIN_ROWS, padded_count
from service.runner.translation import TranslationGraphs

Shape = tuple[int, int]
"""B and S."""


class DeviceEncoder:
    """The encoder of one artifact, which several runners may share. `max_sources` and `max_tokens` are limits of one
    pass, whose tokens are longest source x count."""

    def __init__(self, graphs: TranslationGraphs, max_sources: int, max_tokens: int) -> None:
        dimensions = graphs.manifest.dimensions
        self._graphs = graphs
        self._pad = graphs.manifest.special_tokens.pad
        self._max_source_tokens = graphs.manifest.limits.max_source_tokens
        self._max_sources, self._max_tokens = max_sources, max_tokens
        self._width = dimensions.n_heads * dimensions.head_dim
        self._names = [
            f"present.{i}.encoder.{part}" for i in range(dimensions.n_decoder_layers) for part in ("key", "value")
        ]
        self._block: OrtValue | None = None
        self._passes: dict[Shape, _Pass] = {}
        """The passes that write into this block."""
        self._is_warm = False

    def warm_up(self) -> None:
        """Run a pass of every usual shape, once."""
        if self._is_warm:
            return
        lengths = {COARSE_LENGTHS.bucket(length) for length in range(1, self._max_source_tokens + 1)}
        counts = {padded_count(count) for count in range(1, self._max_sources + 1)}
        for shape in sorted(product(counts, lengths), key=math.prod, reverse=True):  # so the block never has to grow
            B, S = shape
            # Other shapes never occur. One long source is encoded whatever the limit.
            if B == MIN_ROWS or self._max_tokens > B // 2 * (S // 2):
                self._run(shape, [])
        self._is_warm = True

    def encode(self, sources: list[list[int]]) -> tuple[int, Shape]:
        """Encode sources. Return the address of the keys and values (C, B, S, E) of all cross-attentions, which is
        valid until the next sources are encoded; and (B, S). Rows beyond the sources are padding."""
        shape = padded_count(len(sources)), COARSE_LENGTHS.bucket(max(map(len, sources)))
        return self._run(shape, sources), shape

    def _run(self, shape: Shape, sources: list[list[int]]) -> int:
        address = self._address(shape)
        encoder_pass = self._passes.pop(shape, None) or _Pass(self._graphs, shape, self._names, self._width, address)
        encoder_pass.run(sources, self._pad)
        self._passes[shape] = encoder_pass  # not if the run fails: its capture is not launched again
        return address

    def _address(self, shape: Shape) -> int:
        """Return the address of a block that is large enough."""
        size = len(self._names) * _size(shape, self._width, self._graphs.provider.dtype)
        if self._block is None or self._block.shape()[0] < size:
            self._passes.clear()
            self._block = OrtValue.ortvalue_from_shape_and_type([size], np.uint8, self._graphs.provider.name, 0)
        return int(self._block.data_ptr())


class _Pass:
    """The encoder at one shape, with all its inputs and outputs bound. The outputs are written one after the other from
    `address` on."""

    def __init__(self, graphs: TranslationGraphs, shape: Shape, names: list[str], width: int, address: int) -> None:
        B, S = shape
        provider = graphs.provider
        self._session, self._options = graphs.encoder, graphs.captures.new()
        self._binding: Any = graphs.encoder.io_binding()
        self._inputs = provider.arrays(input_ids=(np.int64, shape), source_lengths=(np.int64, (B,)))
        for input_memory in self._inputs.bindings():
            self._binding.bind_input(*input_memory)
        size = _size(shape, width, provider.dtype)
        for i, name in enumerate(names):
            self._binding.bind_output(name, provider.name, 0, provider.dtype, (B, S, width), address + i * size)

    def run(self, sources: list[list[int]], pad: int) -> None:
        """Encode sources; rows beyond them are padding."""
        input_ids, lengths = self._inputs["input_ids"], self._inputs["source_lengths"]
        input_ids.fill(pad)
        lengths.fill(1)
        for row, source in enumerate(sources):
            input_ids[row, : len(source)], lengths[row] = source, len(source)
        self._inputs.upload()
        self._session.run_with_iobinding(self._binding, self._options)
        self._binding.synchronize_outputs()


def _size(shape: Shape, width: int, dtype: DTypeLike) -> int:
    """Return the size in bytes of the keys, or the values, of one layer."""
    B, S = shape
    return B * S * width * np.dtype(dtype).itemsize
