"""Reading sources on a device, in shapes that are seen before: the first pass of a shape takes long.

Legend: B newcomers, S source, C caches, E d_model.
"""

from itertools import product
from typing import Any

import numpy as np
from onnxruntime import OrtValue

from service.contract import IntArray
from service.runner.caches import FEW_LENGTHS
from service.runner.steps import TranslationGraphs

FEWEST_NEWCOMERS = 8
"""Of one pass: fewer are padded to so many."""


def padded(n: int) -> int:
    """A power of two, so that few shapes are ever seen."""
    return max(FEWEST_NEWCOMERS, 1 << (n - 1).bit_length())


class DeviceEncoder:
    """The encoder of one artifact, which several runners may share.

    Args:
        most_sources, most_tokens: of one pass; tokens are longest source x count.
    """

    def __init__(self, graphs: TranslationGraphs, most_sources: int, most_tokens: int) -> None:
        dimensions = graphs.manifest.dimensions
        self._session, self._provider = graphs.encoder, graphs.provider
        self._pad = graphs.manifest.special_tokens.pad
        self._longest = graphs.manifest.limits.max_source_tokens
        self._most_sources, self._most_tokens = most_sources, most_tokens
        self._width = dimensions.n_heads * dimensions.head_dim
        self._names = [
            f"present.{i}.encoder.{part}" for i in range(dimensions.n_decoder_layers) for part in ("key", "value")
        ]
        self._block: OrtValue | None = None
        self._is_warm = False

    def warm_up(self) -> None:
        """A pass of every usual shape, once."""
        if self._is_warm:
            return
        lengths = {FEW_LENGTHS.bucket(length) for length in range(1, self._longest + 1)}
        counts = {padded(count) for count in range(1, self._most_sources + 1)}
        for B, S in product(counts, lengths):
            if self._most_tokens > B // 2 * (S // 2):  # else there is no pass that is padded to this
                self._run(np.full((B, S), self._pad), np.ones(B, np.int64))
        self._is_warm = True

    def read(self, sources: list[list[int]]) -> tuple[int, tuple[int, int]]:
        """The address of the keys and values (C, B, S, E) of all cross-attentions, until the next sources are read, and
        (B, S): rows beyond the sources mean nothing."""
        B, S = padded(len(sources)), FEW_LENGTHS.bucket(max(map(len, sources)))
        input_ids, lengths = np.full((B, S), self._pad), np.ones(B, np.int64)
        for row, source in enumerate(sources):
            input_ids[row, : len(source)], lengths[row] = source, len(source)
        return self._run(input_ids, lengths), (B, S)

    def _run(self, input_ids: IntArray, lengths: IntArray) -> int:
        B, S = input_ids.shape
        device, dtype = self._provider.name, np.dtype(self._provider.dtype)
        n_bytes = B * S * self._width * dtype.itemsize
        if self._block is None or self._block.shape()[0] < len(self._names) * n_bytes:
            self._block = OrtValue.ortvalue_from_shape_and_type([len(self._names) * n_bytes], np.uint8, device, 0)
        address = int(self._block.data_ptr())
        binding: Any = self._session.io_binding()
        binding.bind_cpu_input("input_ids", input_ids)
        binding.bind_cpu_input("source_lengths", lengths)
        for i, name in enumerate(self._names):
            binding.bind_output(name, device, 0, dtype, (B, S, self._width), address + i * n_bytes)
        self._session.run_with_iobinding(binding)
        return address
