"""The encoder and the decoder step of one artifact, and a step at one size with everything bound that it takes.

The step graph works on the caches in place: each is bound as input and as output at one address, so that a key is
written into its row and nothing else moves.

Legend: R rows, N sources, W rows of one source, k candidates.
"""

import itertools
from typing import Any

import numpy as np
from onnxruntime import RunOptions

from service.base.artifact import Artifact
from service.runner.caches import CacheGroup
from service.runner.provider import Provider
from service.runner.weights import Weights, load_session

MAX_STEPS = 1024
"""Most bindings that are kept, each of some kilobytes."""

MAX_CAPTURES = 1024
"""Most passes that are captured, each of one size. ONNX Runtime keeps them as long as the graph is loaded."""
NOT_CAPTURED = -1

Sizes = tuple[int, int, int, int]
"""R, N, W and k."""


class TranslationGraphs:
    """The encoder and the decoder step of one artifact; several runners may share them."""

    def __init__(self, artifact: Artifact, provider: Provider, weights: Weights | None = None) -> None:
        self.manifest = artifact.manifest
        self.provider = provider
        self.encoder = load_session(artifact, provider, "encoder.onnx", provider.captures, weights)
        self.decoder_step = load_session(artifact, provider, "decoder_step.onnx", provider.captures, weights)
        self._numbers = itertools.chain(range(1, MAX_CAPTURES + 1), itertools.repeat(NOT_CAPTURED))

    def capture(self) -> RunOptions | None:
        """Options of all runs of one pass at one size, other ones each time: after the first run they are launched as a
        whole. None where nothing is captured."""
        if not self.provider.captures:
            return None
        options = _numbered(next(self._numbers))
        options.add_run_config_entry("disable_synchronize_execution_providers", "1")  # who launches it waits for it
        return options

    def no_capture(self) -> RunOptions | None:
        """Options of runs that are not captured, of these graphs."""
        return _numbered(NOT_CAPTURED) if self.provider.captures else None


def _numbered(number: int) -> RunOptions:
    """Options of a run of a graph whose runs are captured, each under a number."""
    options = RunOptions()
    options.add_run_config_entry("gpu_graph_id", str(number))
    return options


class Step:
    """The step graph at one size, with everything bound that it reads and writes; kept, since binding takes long."""

    def __init__(self, graphs: TranslationGraphs, sizes: Sizes) -> None:
        R, N, W, k = sizes
        self._graphs = graphs
        self._binding: Any = graphs.decoder_step.io_binding()
        self._versions: dict[CacheGroup[Any], int] = {}
        """Of the caches that are bound."""
        self._captures: dict[tuple[int, ...], RunOptions | None] = {}
        """By the lengths of the caches, which tell where they are."""
        provider = graphs.provider
        self._inputs = provider.arrays(
            input_ids=(np.int64, (R, 1)),
            positions=(np.int32, (R,)),
            rows_of_sources=(np.int64, (N, W)),
            places_of_rows=(np.int64, (R,)),
            source_lengths=(np.int64, (N,)),
        )
        self._outputs = provider.arrays(token_ids=(np.int64, (R, k)), log_probs=(np.float32, (R, k)))
        self.input_ids, self.positions = self._inputs["input_ids"], self._inputs["positions"]
        self.rows_of_sources, self.places_of_rows = self._inputs["rows_of_sources"], self._inputs["places_of_rows"]
        self.source_lengths = self._inputs["source_lengths"]
        self.token_ids, self.log_probs = self._outputs["token_ids"], self._outputs["log_probs"]
        for place in self._inputs.bound():
            self._binding.bind_input(*place)
        for place in self._outputs.bound():
            self._binding.bind_output(*place)
        self.total_length, self._k = np.ones(1, np.int32), np.array([k])
        for name, array in (("total_length", self.total_length), ("k", self._k)):
            self._binding.bind_cpu_input(name, array)  # which every provider reads where it is

    def bind_caches(self, group: CacheGroup[Any], rows: int, written: bool) -> None:
        """Let the graph read the first rows of caches, and write them in place, if they have moved since."""
        if self._versions.get(group) == group.version:
            return
        provider, shape = self._graphs.provider, group.caches.shape(rows)
        for name, address in zip(group.names, group.addresses, strict=True):
            memory = (provider.name, 0, provider.dtype, shape, address)
            self._binding.bind_input(f"past_key_values.{name}", *memory)
            if written:
                self._binding.bind_output(f"present.{name}", *memory)
        self._versions[group] = group.version

    def run(self) -> None:
        """One pass over what the arrays hold."""
        self.launch()
        self.wait()

    def launch(self) -> None:
        """Begin it. The device may still be at work afterwards, where steps are captured."""
        lengths = tuple([group.length for group in self._versions])
        options = self._captures.pop(lengths, None) or self._graphs.capture()
        self._inputs.send()
        self._graphs.decoder_step.run_with_iobinding(self._binding, options)
        self._captures[lengths] = options  # what a run that fails has captured is not launched again

    def wait(self) -> None:
        """Until the device has done it."""
        self._binding.synchronize_outputs()
        self._outputs.fetch()


class Steps:
    """Steps of all sizes over the same caches.

    Args:
        self_attention, cross_attention: the caches of R rows and of N sources.
    """

    def __init__(
        self, graphs: TranslationGraphs, self_attention: CacheGroup[Any], cross_attention: CacheGroup[Any]
    ) -> None:
        self._graphs = graphs
        self._self_attention, self._cross_attention = self_attention, cross_attention
        self._steps: dict[Sizes, Step] = {}

    def of(self, sizes: Sizes) -> Step:
        """The step of these sizes, over the caches where they are now."""
        step = self._steps.pop(sizes, None) or Step(self._graphs, sizes)
        if len(self._steps) == MAX_STEPS:
            self._steps.pop(next(iter(self._steps)))  # not used for the longest time
        self._steps[sizes] = step
        step.bind_caches(self._cross_attention, sizes[1], written=False)
        step.bind_caches(self._self_attention, sizes[0], written=True)
        return step
