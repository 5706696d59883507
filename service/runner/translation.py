"""Translation on the CPU: sources in places and hypotheses in rows, both without gaps, as rows are what a step costs.

Legend: R rows, N sources, W rows of one source, B newcomers, S source, k candidates.
"""

import math
from typing import Any

import numpy as np

from service.base.contract import Candidates, Ints
from service.runner.arrays import padded
from service.runner.caches import COARSE_LENGTHS, FINE_LENGTHS, CacheGroup, HostCaches, Lengths
from service.runner.steps import Steps, TranslationGraphs

MIN_QUERIES = 2
"""Fewest queries of one cross-attention in beam search. ONNX Runtime multiplies a single row with another kernel than
several rows, and its sums end in other bits. How many rows there are depends on what shares the step, and an answer
must not depend on that."""

MAX_PADDING = 10
"""Tokens of padding that cost as much as another pass of a shipped encoder: 6 with its weights in the CPU's caches,
more without."""


class TranslationRunner:
    """DecoderRows by the graphs, over `n_rows` rows and as many sources.

    Args:
        min_queries: of one cross-attention, one only where no source ever has more rows.
    """

    def __init__(self, graphs: TranslationGraphs, n_rows: int, min_queries: int = MIN_QUERIES) -> None:
        manifest = graphs.manifest
        self._n_rows = n_rows
        self._fewest_queries = min_queries
        self._pad = manifest.special_tokens.pad
        self._provider, self._encoder = graphs.provider, graphs.encoder
        n_heads, head_dim = manifest.dimensions.n_heads, manifest.dimensions.head_dim
        n_layers = manifest.dimensions.n_decoder_layers
        # Self-attention reads what is valid of a cache, cross-attention also padding.
        self._self_attention = self._caches("decoder", n_layers, (n_heads,), head_dim, COARSE_LENGTHS)
        self._cross_attention = self._caches("encoder", n_layers, (), n_heads * head_dim, FINE_LENGTHS)
        self._source_lengths = np.ones(n_rows, np.int64)
        self._n_fitted = 0
        """For how many sources the caches of cross-attention fit; 0 when encode or move has changed a source."""
        self._steps = Steps(graphs, self._self_attention, self._cross_attention)

    def encode(self, first_place: int, sources: list[list[int]]) -> None:
        """Read B sources into places first_place..first_place+B-1, as keys and values of every cross-attention."""
        input_ids, lengths = padded(sources, self._pad)  # (B, S), (B)
        places = first_place + len(sources)
        self._source_lengths[first_place:places] = lengths
        self._n_fitted = 0
        self._cross_attention.fit(int(self._source_lengths[:places].max()), first_place)
        if first_place == 0:
            self._self_attention.fit(1, rows=0)
        binding: Any = self._encoder.io_binding()
        binding.bind_cpu_input("input_ids", input_ids)
        binding.bind_cpu_input("source_lengths", lengths)
        for name in self._cross_attention.names:
            binding.bind_output(f"present.{name}", self._provider.name)
        self._encoder.run_with_iobinding(binding)
        for cache, block in enumerate(binding.get_outputs()):
            self._cross_attention.caches.write(cache, first_place, block.numpy())

    def step(
        self, token_ids: Ints, positions: Ints, rows_of_sources: list[Ints], places_of_rows: Ints, k: int
    ) -> Candidates:
        R, N, W = len(token_ids), len(rows_of_sources), len(rows_of_sources[0])
        length = max(positions) + 1
        self._self_attention.fit(length, R)
        if self._n_fitted != N:
            self._cross_attention.fit(max(self._source_lengths[:N].tolist()), N)
            self._n_fitted = N
        step = self._steps.of((R, N, max(W, self._fewest_queries), k))
        step.input_ids[:, 0] = token_ids
        step.positions[:] = positions
        step.total_length[0] = length
        step.rows_of_sources[:, :W] = rows_of_sources
        if (padding := step.rows_of_sources.shape[1] - W) > 0:
            places_of_rows = [place + place // W * padding for place in places_of_rows]
        step.places_of_rows[:] = places_of_rows
        step.source_lengths[:] = self._source_lengths[:N]
        step.run()
        log_probs: list[list[float]] = step.log_probs.tolist()
        if math.isnan(sum([row[0] for row in log_probs])):
            raise FloatingPointError("the decoder's log-probabilities are not numbers")
        return step.token_ids.tolist(), log_probs

    def copy(self, source_rows: Ints, target_rows: Ints, n_tokens: int) -> None:
        self._self_attention.caches.copy(source_rows, target_rows, n_tokens)

    def move(self, source_place: int, target_place: int) -> None:
        length = int(self._source_lengths[source_place])
        self._cross_attention.caches.copy([source_place], [target_place], length)
        self._source_lengths[target_place] = length
        self._n_fitted = 0

    def _caches(
        self, attention: str, n_layers: int, heads: tuple[int, ...], width: int, lengths: Lengths
    ) -> CacheGroup[HostCaches]:
        names = [f"{layer}.{attention}.{part}" for layer in range(n_layers) for part in ("key", "value")]
        return CacheGroup(names, HostCaches(len(names), self._n_rows, heads, width), lengths)
