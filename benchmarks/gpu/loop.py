"""Greedy search as a device wants it, over the service's own graphs: a loop to learn from, not one that serves.

Nothing is moved: a step runs over all places, and those that are empty hold position 0. A finished sequence leaves its
place empty, and a newcomer takes any. All keys and values of all newcomers are written by one run of one graph.
"""

import statistics
import time
from dataclasses import dataclass, field

import numpy as np
import onnx.parser
from numpy.typing import DTypeLike

from benchmarks.engines import Work
from benchmarks.gpu.inputs import ProviderName, artifacts, read, say
from benchmarks.gpu.speed import THREADS
from service.artifact import read_artifacts
from service.runner.caches import FEW_LENGTHS, Caches, DeviceCaches, Lengths
from service.runner.device_graphs import REORDER, WRITE
from service.runner.provider import Provider
from service.runner.translation import TranslationGraphs, TranslationRunner

PLACES = (8, 64, 256)
SHARES = (1 / 8, 1 / 2)
"""Of the places, that must be empty before newcomers are read."""
ROUNDS = 4
"""How often the works are repeated, so that there are enough of them for many places."""


def measure(model: str, provider: ProviderName, n_works: int | None) -> None:
    """Say how many target tokens a second the loop makes, for some numbers of places, with CUDA graphs and without."""
    inputs = read()
    works = (inputs.works[model] * ROUNDS)[:n_works]
    (artifact,) = read_artifacts(artifacts(model))
    for captures in (False, True) if provider == "cuda" else (False,):
        device = Provider("cuda", THREADS, captures) if provider == "cuda" else CpuAsDevice("cpu", THREADS)
        graphs = TranslationGraphs(artifact, device)
        for places in PLACES:
            for share in SHARES:
                answers, seconds, passes = _timed(graphs, works, places, share)
                say(
                    part="loop",
                    model=model,
                    captures=captures,
                    places=places,
                    share=share,
                    tokens_per_s=round(sum(map(len, answers)) / seconds),
                    as_float32_on_cpu=inputs.agreement(model, 1, answers),
                    **passes,
                )


def _timed(
    graphs: TranslationGraphs, works: list[Work], places: int, share: float
) -> tuple[list[list[int]], float, dict[str, int]]:
    """The answers of the last of four runs, the median of the seconds of three, and how many passes there were."""
    seconds = []
    for _ in range(4):
        loop = Loop(graphs, works, places)
        start = time.perf_counter()
        loop.run(max(1, int(places * share)))
        seconds.append(time.perf_counter() - start)
    return loop.answers, statistics.median(seconds[1:]), {"steps": loop.steps, "admissions": loop.admissions}


@dataclass
class Loop:
    """All works through R places, greedily.

    Legend: R places, B newcomers with padding, S source, C caches of cross-attention.
    """

    graphs: TranslationGraphs
    works: list[Work]
    places: int
    answers: list[list[int]] = field(init=False)
    steps: int = 0
    admissions: int = 0

    def __post_init__(self) -> None:
        R, manifest = self.places, self.graphs.manifest
        self._bos, self._eos, self._pad = (getattr(manifest.special_tokens, name) for name in ("bos", "eos", "pad"))
        self.answers = [[] for _ in self.works]
        self._next = 0
        self._longest = FEW_LENGTHS.bucket(max(len(work.source_ids) for work in self.works))
        self._runner = TranslationRunner(self.graphs, R + 1, fewest_queries=1)  # newcomers' padding goes into the last
        self._cross = self._runner._cross_attention
        self._cross.fit(self._longest, 0)
        self._scatter = self.graphs.provider.session(scatter(len(self._cross.names)))
        self._rows = np.arange(R)
        self._work_of = np.zeros(R, np.int64)
        self._active = np.zeros(R, np.bool_)
        self._tokens, self._positions = np.full(R, self._pad), np.zeros(R, np.int64)
        self._limits, self._source_lengths = np.ones(R, np.int64), np.ones(R, np.int64)
        self._written = np.zeros((R, max(work.max_target_tokens for work in self.works)), np.int64)

    def run(self, fewest_empty: int) -> None:
        """Until every work is answered; newcomers are read when so many places are empty."""
        while self._next < len(self.works) or self._active.any():
            empty = np.flatnonzero(~self._active)
            if self._next < len(self.works) and len(empty) >= fewest_empty:
                self._admit(empty[: len(self.works) - self._next])
            self._step()

    def _admit(self, places: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> None:
        """Read as many newcomers as there are places, padded to a power of two and to the length of the caches."""
        B, S, provider = 1 << (len(places) - 1).bit_length(), self._longest, self.graphs.provider
        newcomers = self.works[self._next : self._next + len(places)]
        ids, lengths = np.full((B, S), self._pad), np.ones(B, np.int64)
        for row, work in enumerate(newcomers):
            ids[row, : len(work.source_ids)], lengths[row] = work.source_ids, len(work.source_ids)
        encoding = self.graphs.encoder.io_binding()
        encoding.bind_cpu_input("input_ids", ids)
        encoding.bind_cpu_input("source_lengths", lengths)
        for name in self._cross.names:
            encoding.bind_output(f"present.{name}", provider.name)
        self.graphs.encoder.run_with_iobinding(encoding)

        caches = self._cross.caches
        assert isinstance(caches, DeviceCaches)
        shape = caches._all_rows(S)
        rows = np.full(B, self.places)
        rows[: len(places)] = places
        writing = self._scatter.io_binding()
        memory = (provider.name, 0, np.float32, shape, caches.address(0))
        writing.bind_input("cache", *memory)
        writing.bind_output("written", *memory)
        first_rows = np.arange(len(self._cross.names))[:, None] * (self.places + 1)
        writing.bind_cpu_input("targets", (first_rows + rows).reshape(-1, 1))
        blocks = encoding.get_outputs()
        for i, block in enumerate(blocks):
            writing.bind_input(f"block{i}", provider.name, 0, np.float32, [B, *shape[1:]], block.data_ptr())
        self._scatter.run_with_iobinding(writing)

        self._work_of[places] = np.arange(self._next, self._next + len(places))
        self._limits[places] = [work.max_target_tokens for work in newcomers]
        self._source_lengths[places] = lengths[: len(places)]
        self._tokens[places], self._positions[places], self._active[places] = self._bos, 0, True
        self._next += len(places)
        self.admissions += 1

    def _step(self) -> None:
        R, runner = self.places, self._runner
        length = int(self._positions.max()) + 1
        runner._self_attention.fit(length, R)
        step = runner._step(R, R, 1, 1)
        step.input_ids[:R, 0], step.positions[:R] = self._tokens, self._positions
        step.total_length[0] = runner._self_attention.length if self.graphs.provider.captures else length
        step.rows_of_sources[:R, 0] = step.places_of_rows[:R] = self._rows
        step.source_lengths[:R] = self._source_lengths
        step.run()
        self._tokens = step.token_ids[:R, 0].copy()
        self._written[self._rows, self._positions] = self._tokens
        self._positions += 1
        ended = self._active & ((self._tokens == self._eos) | (self._positions >= self._limits))
        for place in np.flatnonzero(ended):
            written = self._written[place, : self._positions[place]].tolist()
            self.answers[self._work_of[place]] = written[:-1] if written[-1] == self._eos else written
        self._active &= ~ended
        self._positions[~self._active], self._tokens[~self._active] = 0, self._pad
        self.steps += 1


def scatter(n_caches: int) -> bytes:
    """A graph that writes the blocks of newcomers, one of each cache, into rows of all caches."""
    blocks = [f"block{i}" for i in range(n_caches)]
    given = ", ".join(f"float[B,O,L,D] {block}" for block in blocks)
    model = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 24]>'
        f"scatter (float[N,O,L,D] cache, {given}, int64[M,I] targets) => (float[N,O,L,D] written) {{"
        f"rows = Concat<axis = 0>({', '.join(blocks)}) written = ScatterND(cache, targets, rows) }}"
    )
    serialized: bytes = model.SerializeToString()
    return serialized


@dataclass(frozen=True)
class CpuAsDevice(Provider):
    """The CPU with a device's caches and padding, to try the loop without a GPU."""

    def caches(self, n_caches: int, slots: int, heads: tuple[int, ...], width: int, dtype: DTypeLike) -> Caches:
        copier, reorderer = self.session(WRITE), self.session(REORDER)
        return DeviceCaches(n_caches, slots, heads, width, dtype, "cpu", copier, reorderer)

    def padded(self, size: int, limit: int) -> int:
        return min(limit, 1 << (size - 1).bit_length())

    @property
    def source_lengths(self) -> Lengths:
        return FEW_LENGTHS
