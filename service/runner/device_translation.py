"""Translation on a device: sources keep their places and hypotheses their rows, and few shapes occur.

On a device a step of many rows takes little longer than one of few, while each run of a session and each new shape take
long. So one run writes the keys and values of all newcomers, and one run copies all rows of hypotheses that branch.

Legend: M steps, R rows, N places, W rows of one source, B newcomers, S source, k candidates.
"""

import numpy as np
from numpy.typing import NDArray

from service.base.contract import IntArray
from service.runner.caches import COARSE_LENGTHS, CacheGroup, row_caches, source_caches
from service.runner.device_caches import DeviceCaches
from service.runner.device_encoder import DeviceEncoder
from service.runner.translation import Step, Steps, TranslationGraphs

USUAL_LENGTHS = (33, 1)
"""Numbers of tokens for which the caches have the two usual lengths."""


class DeviceTranslationRunner:
    """Implements `FixedRows` with the graphs. The encoder is that of the same graphs."""

    def __init__(self, graphs: TranslationGraphs, encoder: DeviceEncoder, rows: int, places: int) -> None:
        provider, of_rows, of_sources = graphs.provider, row_caches(graphs.manifest), source_caches(graphs.manifest)
        self._provider, self._encoder = provider, encoder
        self._rows = rows
        self._max_source_tokens = graphs.manifest.limits.max_source_tokens
        self._self_caches = DeviceCaches(of_rows, rows, provider)
        self._cross_caches = DeviceCaches(of_sources, places, provider)
        self._self_attention = CacheGroup(of_rows, self._self_caches, COARSE_LENGTHS)
        self._cross_attention = CacheGroup(of_sources, self._cross_caches, COARSE_LENGTHS)
        self._source_lengths = np.zeros(places, np.int64)
        """The length of the source in each place; 0 if the place is empty."""
        self._longest = self._n_places = 0
        """The longest source, and the number of places up to the last one in use."""
        self._n_tokens = 1
        """Number of tokens of the longest row."""
        self._shortlists = graphs.new_shortlists(places)
        self._steps = Steps(graphs, self._self_attention, self._cross_attention, self._shortlists)
        self._launched: Step | None = None
        self._is_done = True

    def warm_up(self) -> list[int]:
        self._encoder.warm_up()
        return [n for n in USUAL_LENGTHS if n <= self._max_source_tokens]

    def encode(self, places: IntArray, sources: list[list[int]]) -> None:
        self._wait()
        block, shape = self._encoder.encode(sources)
        are_first = self._n_places == 0
        if are_first:
            self._n_tokens = 1
        self._fit(shape[1], self._rows if self._n_places else 0)
        self._cross_caches.write(places, block, shape)
        self._source_lengths[places] = [len(source) for source in sources]
        self._measure()
        if self._shortlists is not None:
            self._shortlists.allow(places.tolist(), sources, are_first=are_first)

    def launch(
        self, token_ids: IntArray, positions: IntArray, rows_of_sources: IntArray, places_of_rows: IntArray, k: int
    ) -> None:
        self._wait()
        (M, R), (N, W) = positions.shape, rows_of_sources.shape
        self._n_tokens = length = int(positions.max()) + 1
        self._fit(1, R)
        step = self._steps.get((M, R, N, W, k))
        step.input_ids[:, 0] = token_ids
        step.positions[:] = positions
        step.total_length[0] = self._self_attention.length if self._provider.captures else length
        step.rows_of_sources[:] = rows_of_sources
        step.places_of_rows[:] = places_of_rows
        step.source_lengths[:] = np.maximum(self._source_lengths[:N], 1)
        step.launch()
        self._launched, self._is_done = step, False

    def fetch(self) -> tuple[IntArray, NDArray[np.float32]]:
        self._wait()
        assert self._launched is not None, "a step is launched first"
        return self._launched.token_ids, self._launched.log_probs

    def copy(self, source_rows: IntArray, target_rows: IntArray) -> None:
        self._wait()
        self._self_caches.copy(source_rows, target_rows)

    def leave(self, places: IntArray) -> None:
        self._source_lengths[places] = 0
        self._measure()

    def clean(self) -> None:
        self._wait()
        self._self_caches.clean()
        self._cross_caches.clean()

    def _wait(self) -> None:
        """Until the launched step is done, nothing may change its inputs and caches."""
        if self._launched is not None and not self._is_done:
            self._is_done = True
            self._launched.wait()

    def _fit(self, needed: int, rows: int) -> None:
        """Make room in the caches for all sources, rows and `needed` columns. All caches have one length: with two,
        many more shapes would occur."""
        length = max(needed, self._longest, self._n_tokens)
        self._self_attention.fit(length, rows)
        self._cross_attention.fit(length, self._n_places)

    def _measure(self) -> None:
        in_use = np.flatnonzero(self._source_lengths)
        self._n_places = int(in_use[-1]) + 1 if len(in_use) else 0
        self._longest = int(self._source_lengths.max())
