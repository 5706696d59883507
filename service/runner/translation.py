"""Decoder rows on ONNX Runtime: slots full of keys and values, one step for all of them.

The step graph works on the caches in place: each is bound as input and as output at one address, so that a key is
scattered into its row and nothing else moves.

Legend: R rows, B newcomers, S source, L cache length, H heads, D head_dim.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.artifact import Artifact
from service.runner.caches import CacheGroup
from service.runner.padding import padded
from service.runner.provider import Provider

ONE_CANDIDATE = np.ones(1, np.int64)


class TranslationRunner:
    """The encoder and the decoder step of one artifact over `slots` rows, of which the first are in use."""

    def __init__(self, artifact: Artifact, provider: Provider, slots: int) -> None:
        manifest = artifact.manifest
        self._provider = provider
        self._slots = slots
        self._pad = manifest.special_tokens.pad
        self._n_heads, self._head_dim = manifest.dimensions.n_heads, manifest.dimensions.head_dim
        self._dtype = np.float16 if manifest.precision == "fp16" else np.float32
        self._encoder = provider.session(artifact.path("encoder.onnx"))
        self._decoder_step = provider.session(artifact.path("decoder_step.onnx"))
        self._self_attention = self._cache_group("decoder", manifest.dimensions.n_decoder_layers)
        self._cross_attention = self._cache_group("encoder", manifest.dimensions.n_decoder_layers)
        self._input_ids = np.full((slots, 1), self._pad, np.int64)
        self._positions = np.zeros(slots, np.int64)
        self._source_lengths = np.ones(slots, np.int64)
        self._token_ids = np.zeros((slots, 1), np.int64)
        self._log_probs = np.zeros((slots, 1), np.float32)
        self._binding: Any = self._decoder_step.io_binding()
        self._bound_rows: int | None = None

    def encode(self, first_slot: int, sources: list[list[int]]) -> None:
        """Read B sources into slots first_slot..first_slot+B-1, as keys and values of every cross-attention."""
        input_ids, lengths = padded(sources, self._pad)  # (B, S), (B)
        rows = first_slot + len(sources)
        self._source_lengths[first_slot:rows] = lengths
        self._fit(self._cross_attention, int(self._source_lengths[:rows].max()), first_slot)
        if first_slot == 0:
            self._fit(self._self_attention, 1, rows=0)
        binding: Any = self._encoder.io_binding()
        binding.bind_cpu_input("input_ids", input_ids)
        binding.bind_cpu_input("source_lengths", lengths)
        for name in self._cross_attention.caches:
            binding.bind_output(f"present.{name}", self._provider.name)
        self._encoder.run_with_iobinding(binding)
        for cache, block in zip(self._cross_attention.caches.values(), binding.get_outputs(), strict=True):
            cache.write(first_slot, block)

    def step(
        self, token_ids: NDArray[np.int64], positions: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Feed token_ids (R) at positions (R): the most probable next tokens (R) and their log-probabilities (R)."""
        R = len(token_ids)
        self._input_ids[:R, 0] = token_ids
        self._positions[:R] = positions
        self._fit(self._self_attention, int(positions.max()) + 1, R)
        self._fit(self._cross_attention, int(self._source_lengths[:R].max()), R)
        self._bind(self._provider.padded_rows(R, self._slots))
        self._decoder_step.run_with_iobinding(self._binding)
        self._binding.synchronize_outputs()
        return self._token_ids[:R, 0].copy(), self._log_probs[:R, 0].copy()

    def move(self, source_slot: int, target_slot: int) -> None:
        """Copy a slot over another one."""
        self._self_attention.move(source_slot, target_slot)
        self._cross_attention.move(source_slot, target_slot)
        self._source_lengths[target_slot] = self._source_lengths[source_slot]

    def _cache_group(self, attention: str, n_layers: int) -> CacheGroup:
        names = [f"{layer}.{attention}.{part}" for layer in range(n_layers) for part in ("key", "value")]
        cache = self._provider.cache
        return CacheGroup({name: cache(self._slots, self._n_heads, self._head_dim, self._dtype) for name in names})

    def _fit(self, group: CacheGroup, needed: int, rows: int) -> None:
        if group.fit(needed, rows):
            self._bound_rows = None

    def _bind(self, rows: int) -> None:
        """Bind the first `rows` rows of everything."""
        # A device gets its copy of a host input when it is bound, so these are bound at every step.
        self._binding.bind_cpu_input("input_ids", self._input_ids[:rows])
        self._binding.bind_cpu_input("positions", self._positions[:rows])
        self._binding.bind_cpu_input("source_lengths", self._source_lengths[:rows])
        if rows == self._bound_rows:
            return
        self._bound_rows = rows
        self._binding.bind_cpu_input("k", ONE_CANDIDATE)
        for group in (self._cross_attention, self._self_attention):
            shape = (rows, self._n_heads, group.length, self._head_dim)
            for name, cache in group.caches.items():
                memory = (self._provider.name, 0, self._dtype, shape, cache.pointer)
                self._binding.bind_input(f"past_key_values.{name}", *memory)
                if group is self._self_attention:
                    self._binding.bind_output(f"present.{name}", *memory)
        self._binding.bind_output("token_ids", "cpu", 0, np.int64, (rows, 1), self._token_ids.ctypes.data)
        self._binding.bind_output("log_probs", "cpu", 0, np.float32, (rows, 1), self._log_probs.ctypes.data)
