"""Stand-ins for a GPU, by which the host's part of the work is measured without one.

Python and numpy are the service's own, and their processor time counts. Graphs compute nothing: their runs take the
time that a GPU took (docs/gpu.md), on a clock of its own, while the host goes on. So a simulated second is neither a
second here nor one on a GPU; it tells what the host costs beside the device, and compares constants.

Legend: R rows, W rows of one source, k candidates, B newcomers, S source.
"""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import c_uint8
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from manifest.schema import Manifest
from service.base.contract import IntArray
from service.runner.arrays import Field, GraphArrays
from service.runner.device_encoder import DeviceEncoder
from service.runner.device_translation import DeviceTranslationRunner
from service.runner.provider import NOT_CAPTURED, Captures, Provider
from service.runner.translation import TranslationGraphs

STEP_S = (1, 8, 64, 256, 1024), (170e-6, 180e-6, 200e-6, 350e-6, 950e-6)
"""Rows, and the seconds of a captured step on an H200, the host's part included; the last one is extrapolated."""
ENCODER_S = (24, 192, 1536, 6144, 24576), (0.89e-3, 0.91e-3, 0.96e-3, 1.5e-3, 3.7e-3)
"""Padded tokens, and the seconds of an encoder pass that is not captured; the last one is extrapolated."""
NEW_SHAPE_S = 20e-3
RUN_S, COPY_S, TRANSFER_S = 15e-6, 10e-6, 10e-6
"""The host's seconds for a run of a session and for a transfer between its memory and the device's, and the device's
seconds for a copy."""
COPIED_BYTES_PER_S = 1e12

SURE = 0.75
"""Least probability of the best token. With it a beam of 4 has 2.4 live hypotheses on average, as with
`translate-en-fr` and sentences of the corpora."""
Lengths = dict[tuple[int, ...], int]
"""The number of target tokens of each source."""


class Clock:
    """The host's processor time and its waits for the device, in seconds."""

    def __init__(self) -> None:
        self._added = -time.thread_time()
        self._device_done_at = self._launched_s = 0.0

    def now(self) -> float:
        return time.thread_time() + self._added

    def add(self, seconds: float) -> None:
        self._added += seconds

    def launch(self, seconds: float) -> None:
        """Let the device work when it has done what was launched before."""
        self._device_done_at = max(self._device_done_at, self.now()) + seconds
        self._launched_s += seconds

    def device_s(self) -> float:
        """Return how long the device has worked."""
        return self._launched_s - max(0.0, self._device_done_at - self.now())

    def forget(self) -> None:
        """Count the device's work from now on."""
        self._launched_s = max(0.0, self._device_done_at - self.now())

    def wait(self) -> None:
        self.wait_until(self._device_done_at)

    def wait_until(self, seconds: float) -> None:
        self._added += max(0.0, seconds - self.now())

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Do not count what a stand-in does itself."""
        began = self.now()
        yield
        self._added -= self.now() - began


class _Arrays(GraphArrays):
    """Arrays whose copies take as long as to a device."""

    def __init__(self, clock: Clock, **fields: Field) -> None:
        super().__init__("cpu", **fields)
        self._clock = clock

    def upload(self) -> None:
        super().upload()
        self._clock.add(TRANSFER_S)

    def download(self) -> None:
        super().download()
        self._clock.add(TRANSFER_S)


class _Session:
    """A session of a graph, and its own binding. It remembers shapes and addresses, and computes nothing."""

    def __init__(self, provider: "SimulatedProvider", graph: str) -> None:
        self._provider, self._graph = provider, graph
        self.shapes: set[tuple[Any, ...]] = set()
        self.targets: Any = None
        """The targets of the runner that launched a step last."""

    def io_binding(self) -> "_Binding":
        return _Binding(self._provider.clock)

    def run_with_iobinding(self, binding: "_Binding", options: Any) -> None:
        provider = self._provider
        with provider.clock.stopped():
            seconds = getattr(self, f"_run_{self._graph}")(binding)
            provider.runs[self._graph] += 1
            shape = tuple(sorted((name, memory[2]) for name, memory in binding.inputs.items()))
            is_new = shape not in self.shapes and options.get_run_config_entry("gpu_graph_id") != str(NOT_CAPTURED)
            self.shapes.add(shape)
        provider.clock.add(RUN_S)
        provider.clock.launch(seconds)
        if is_new:  # the host captures what the device then does
            provider.clock.add(NEW_SHAPE_S)

    def _run_copy(self, binding: "_Binding") -> float:
        (rows, _), (units,) = binding.inputs["target_rows"][2], binding.inputs["target_steps"][2]
        return COPY_S + 2 * 8 * rows * units * binding.inputs["cache"][2][1] / COPIED_BYTES_PER_S

    def _run_encoder(self, binding: "_Binding") -> float:
        B, S = binding.inputs["input_ids"][2]
        return float(np.interp(B * S, *ENCODER_S))

    def _run_step(self, binding: "_Binding") -> float:
        token_ids, positions, rows_of_sources, places_of_rows = (
            binding.array(binding.inputs[name])
            for name in ("input_ids", "positions", "rows_of_sources", "places_of_rows")
        )
        places = places_of_rows // rows_of_sources.shape[1]
        best, log_probs = (binding.array(binding.outputs[name]) for name in ("token_ids", "log_probs"))
        self.targets.candidates(places, token_ids[:, 0], positions, best, log_probs)
        return float(np.interp(len(places), *STEP_S))


@dataclass
class _Binding:
    clock: Clock
    inputs: dict[str, tuple[int, DTypeLike, tuple[int, ...]]] = field(default_factory=dict)
    outputs: dict[str, tuple[int, DTypeLike, tuple[int, ...]]] = field(default_factory=dict)
    """Address, type and shape by name."""

    def bind_input(self, name: str, _device: str, _number: int, dtype: DTypeLike, shape: Any, address: int) -> None:
        self.inputs[name] = address, dtype, tuple(shape)

    def bind_output(self, name: str, _device: str, _number: int, dtype: DTypeLike, shape: Any, address: int) -> None:
        self.outputs[name] = address, dtype, tuple(shape)

    def bind_cpu_input(self, name: str, array: NDArray[Any]) -> None:
        """Do nothing: nobody reads it."""

    def synchronize_outputs(self) -> None:
        self.clock.wait()

    @staticmethod
    def array(memory: tuple[int, DTypeLike, tuple[int, ...]]) -> NDArray[Any]:
        address, dtype, shape = memory
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        numbers: Any = (c_uint8 * size).from_address(address)
        return np.ndarray(shape, dtype, numbers)


class Targets:
    """What the decoder answers: pseudo-random tokens, and end of sequence about where a sequence's target ends."""

    def __init__(self, n_places: int, eos: int, vocabulary_size: int, lengths: Lengths) -> None:
        self._eos, self._vocabulary_size, self._lengths = eos, vocabulary_size, lengths
        self._ends, self._seeds = np.zeros(n_places, np.int64), np.zeros(n_places, np.uint64)

    def enter(self, places: IntArray, sources: list[list[int]]) -> None:
        self._ends[places] = [self._lengths.get(tuple(source), 0) for source in sources]
        self._seeds[places] = [hash(tuple(source)) & 0xFFFFFFFF for source in sources]

    def candidates(
        self, places: IntArray, tokens: IntArray, positions: IntArray, best: IntArray, log_probs: NDArray[np.float32]
    ) -> None:
        """Write the k best tokens of rows and their log-probabilities, each (R, k). The best one has a probability
        of SURE at least; each further one has as large a part of what is left."""
        k = best.shape[1]
        seeds = self._seeds[places] * np.uint64(31) + (positions * 1009 + tokens).astype(np.uint64)
        drawn: Any = seeds[:, None] * np.uint64(64) + np.arange(k, dtype=np.uint64)
        drawn *= np.uint64(0x9E3779B97F4A7C15)
        drawn ^= drawn >> np.uint64(29)
        drawn *= np.uint64(0xBF58476D1CE4E5B9)
        drawn ^= drawn >> np.uint64(32)
        shares = SURE + (1 - SURE) * np.sqrt((drawn % np.uint64(1 << 20)).astype(np.float64) / (1 << 20))
        left = np.cumprod(1 - shares + 1e-6, axis=1)
        left[:, 1:], left[:, 0] = left[:, :-1].copy(), 1.0
        log_probs[:] = np.sort(np.log(np.maximum(left * shares, 1e-9)), axis=1)[:, ::-1]
        best[:] = self._eos + 1 + (drawn >> np.uint64(20)) % np.uint64(self._vocabulary_size - self._eos - 1)
        ends = positions >= self._ends[places] + (drawn[:, 0] % np.uint64(2)).astype(np.int64)
        best[ends, 0] = self._eos


@dataclass(frozen=True, eq=False)
class SimulatedProvider(Provider):
    """A provider whose sessions are stand-ins."""

    clock: Clock = field(default_factory=Clock)
    runs: Counter[str] = field(default_factory=Counter)

    def forget(self) -> None:
        """Reset the counts."""
        self.clock.forget()
        self.runs.clear()

    @property
    def dtype(self) -> DTypeLike:
        return np.float16

    def session(self, *_: object, **__: object) -> Any:
        return _Session(self, "copy")

    def arrays(self, **fields: Field) -> GraphArrays:
        return _Arrays(self.clock, **fields)


class SimulatedGraphs(TranslationGraphs):
    """The graphs of a model that is known by its manifest only."""

    def __init__(self, manifest: Manifest, provider: SimulatedProvider, lengths: Lengths) -> None:
        self.manifest, self.provider, self.captures = manifest, provider, Captures(provider)
        self.lengths = lengths
        self.encoder, self.decoder_step = _Session(provider, "encoder"), _Session(provider, "step")

    def new_shortlists(self, _: int) -> None:
        return None


class SimulatedRunner(DeviceTranslationRunner):
    """A runner that knows which source is in which place."""

    def __init__(self, graphs: TranslationGraphs, encoder: DeviceEncoder, rows: int, places: int) -> None:
        assert isinstance(graphs, SimulatedGraphs)
        super().__init__(graphs, encoder, rows, places)
        assert isinstance(graphs.provider, SimulatedProvider)
        self._clock, self._step, manifest = graphs.provider.clock, graphs.decoder_step, graphs.manifest
        self._targets = Targets(places, manifest.special_tokens.eos, manifest.dimensions.vocab_size, graphs.lengths)

    def encode(self, places: IntArray, sources: list[list[int]]) -> None:
        with self._clock.stopped():
            self._targets.enter(places, sources)
        super().encode(places, sources)

    def launch(self, *arguments: Any) -> None:
        self._step.targets = self._targets
        super().launch(*arguments)
