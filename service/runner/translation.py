"""Sources in places and hypotheses in rows on ONNX Runtime: their keys and values, and one step for all of them.

The step graph works on the caches in place: each is bound as input and as output at one address, so that a key is
written into its row and nothing else moves.

Legend: R rows, N sources, W rows of one source, B newcomers, S source, L cache length, H heads, D head_dim,
k candidates.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.artifact import Artifact
from service.decoding import MAX_BEAM_SIZE
from service.runner.caches import CacheGroup, power_of_two
from service.runner.padding import padded
from service.runner.provider import Provider

Integers = NDArray[np.int64]


class TranslationRunner:
    """The encoder and the decoder step of one artifact, over `slots` rows and as many sources."""

    def __init__(self, artifact: Artifact, provider: Provider, slots: int) -> None:
        manifest = artifact.manifest
        self._provider = provider
        self._slots = slots
        self._pad = manifest.special_tokens.pad
        self._n_heads, self._head_dim = manifest.dimensions.n_heads, manifest.dimensions.head_dim
        self._dtype = np.float16 if manifest.precision == "fp16" else np.float32
        self._encoder = provider.session(artifact.path("encoder.onnx"))
        self._decoder_step = provider.session(artifact.path("decoder_step.onnx"))
        n_layers = manifest.dimensions.n_decoder_layers
        self._self_attention = CacheGroup(self._caches("decoder", n_layers), power_of_two)
        self._cross_attention = CacheGroup(self._caches("encoder", n_layers), provider.source_bucket)
        self._source_lengths = np.ones(slots, np.int64)
        self._binding: Any = self._decoder_step.io_binding()
        self._bound: tuple[int, int] | None = None

    def encode(self, first_place: int, sources: list[list[int]]) -> None:
        """Read B sources into places first_place..first_place+B-1, as keys and values of every cross-attention."""
        input_ids, lengths = padded(sources, self._pad)  # (B, S), (B)
        places = first_place + len(sources)
        self._source_lengths[first_place:places] = lengths
        self._fit(self._cross_attention, int(self._source_lengths[:places].max()), first_place)
        if first_place == 0:
            self._fit(self._self_attention, 1, rows=0)
        binding: Any = self._encoder.io_binding()
        binding.bind_cpu_input("input_ids", input_ids)
        binding.bind_cpu_input("source_lengths", lengths)
        for name in self._cross_attention.caches:
            binding.bind_output(f"present.{name}", self._provider.name)
        self._encoder.run_with_iobinding(binding)
        for cache, block in zip(self._cross_attention.caches.values(), binding.get_outputs(), strict=True):
            cache.write(first_place, block)

    def step(
        self, token_ids: Integers, positions: Integers, rows_of_sources: Integers, places_of_rows: Integers, k: int
    ) -> tuple[Integers, NDArray[np.float32]]:
        """Feed token_ids (R) at positions (R): the k most probable next tokens and their log-probabilities, (R, k).

        Args:
            rows_of_sources: (N, W), the rows of the source in each place, filled up with any row.
            places_of_rows: (R), where in rows_of_sources, flattened, each row stands.
        """
        R, (N, W) = len(token_ids), rows_of_sources.shape
        length = int(positions.max()) + 1
        self._fit(self._self_attention, length, R)
        self._fit(self._cross_attention, int(self._source_lengths[:N].max()), N)
        rows, places = self._provider.padded(R, self._slots), self._provider.padded(N, self._slots)
        width = self._provider.padded(W, MAX_BEAM_SIZE)
        self._bind_caches(rows, places)
        bind = self._binding.bind_cpu_input
        bind("input_ids", filled(token_ids, (rows,), self._pad)[:, None])
        bind("positions", filled(positions, (rows,), 0).astype(np.int32))
        bind("total_length", np.array([length], np.int32))
        bind("rows_of_sources", filled(rows_of_sources, (places, width), 0))
        bind("places_of_rows", filled(places_of_rows // W * width + places_of_rows % W, (rows,), 0))
        bind("source_lengths", filled(self._source_lengths[:N], (places,), 1))
        bind("k", np.array([k]))
        self._binding.bind_output("token_ids", "cpu")
        self._binding.bind_output("log_probs", "cpu")
        self._decoder_step.run_with_iobinding(self._binding)
        outputs = self._binding.get_outputs()
        return outputs[-2].numpy()[:R], outputs[-1].numpy()[:R]

    def copy(self, source_rows: Integers, target_rows: Integers, n_tokens: int) -> None:
        """Copy what rows hold of their first n_tokens over other rows; none of these is also copied from."""
        self._self_attention.copy(source_rows, target_rows, n_tokens)

    def move(self, source_place: int, target_place: int) -> None:
        """Copy a source over another one."""
        length = int(self._source_lengths[source_place])
        self._cross_attention.copy(np.array([source_place]), np.array([target_place]), length)
        self._source_lengths[target_place] = length

    def _caches(self, attention: str, n_layers: int) -> dict[str, Any]:
        names = [f"{layer}.{attention}.{part}" for layer in range(n_layers) for part in ("key", "value")]
        cache = self._provider.cache
        return {name: cache(self._slots, self._n_heads, self._head_dim, self._dtype) for name in names}

    def _fit(self, group: CacheGroup, needed: int, rows: int) -> None:
        if group.fit(needed, rows):
            self._bound = None

    def _bind_caches(self, rows: int, places: int) -> None:
        """Bind the first rows and places of the caches."""
        if self._bound == (rows, places):
            return
        self._bound = rows, places
        self._binding.clear_binding_outputs()
        for group, n in ((self._cross_attention, places), (self._self_attention, rows)):
            shape = (n, self._n_heads, group.length, self._head_dim)
            for name, cache in group.caches.items():
                memory = (self._provider.name, 0, self._dtype, shape, cache.pointer)
                self._binding.bind_input(f"past_key_values.{name}", *memory)
                if group is self._self_attention:
                    self._binding.bind_output(f"present.{name}", *memory)


def filled(values: Integers, shape: tuple[int, ...], padding: int) -> Integers:
    """`values` in the corner of an array of `shape`; they themselves where that is their shape."""
    if values.shape == shape:
        return np.ascontiguousarray(values)
    result = np.full(shape, padding, values.dtype)
    result[tuple(slice(size) for size in values.shape)] = values
    return result
