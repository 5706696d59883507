"""Sources in places and hypotheses in rows on ONNX Runtime: their keys and values, and one step for all of them.

The step graph works on the caches in place: each is bound as input and as output at one address, so that a key is
written into its row and nothing else moves.

Legend: R rows, N sources, W rows of one source, B newcomers, S source, k candidates.
"""

import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from onnxruntime import RunOptions

from service.artifact import MAX_BEAM_SIZE, Artifact
from service.contract import Candidates, Ints
from service.runner.arrays import padded
from service.runner.caches import FEW_LENGTHS, CacheGroup, Lengths
from service.runner.provider import Provider
from service.runner.weights import load

FEWEST_QUERIES = 2
"""Fewest queries of one cross-attention in beam search. ONNX Runtime multiplies a single row with another kernel than
several rows, and its sums end in other bits. How many rows there are depends on what shares the step, and an answer
must not depend on that."""

MOST_STEPS = 1024
"""Most bindings that are kept, each of some kilobytes."""

MOST_CAPTURED = 1024
"""Most steps that are captured, each of one size. ONNX Runtime keeps them as long as the graph is loaded."""
NOT_CAPTURED = -1


class TranslationGraphs:
    """The encoder and the decoder step of one artifact; several runners may share them."""

    def __init__(self, artifact: Artifact, provider: Provider) -> None:
        self.manifest = artifact.manifest
        self.provider = provider
        self.encoder = load(artifact, provider, "encoder.onnx")
        self.decoder_step = load(artifact, provider, "decoder_step.onnx", captured=provider.captures)
        self._numbers = itertools.chain(range(1, MOST_CAPTURED + 1), itertools.repeat(NOT_CAPTURED))

    def capture(self) -> RunOptions | None:
        """Options of the first run of a step: its next runs are then launched as a whole. None where steps are not
        captured."""
        if not self.provider.captures:
            return None
        options = RunOptions()
        options.add_run_config_entry("gpu_graph_id", str(next(self._numbers)))
        return options


class TranslationRunner:
    """DecoderRows by the graphs, over `slots` rows and as many sources.

    Args:
        fewest_queries: of one cross-attention, one only where no source ever has more rows.
    """

    def __init__(self, graphs: TranslationGraphs, slots: int, fewest_queries: int = FEWEST_QUERIES) -> None:
        manifest, provider = graphs.manifest, graphs.provider
        self._provider = provider
        self._slots = slots
        self._fewest_queries = fewest_queries
        self._padded_rows = [provider.padded(size, slots) for size in range(slots + 1)]
        self._padded_widths = [provider.padded(size, MAX_BEAM_SIZE) for size in range(MAX_BEAM_SIZE + 1)]
        self._pad = manifest.special_tokens.pad
        self._dtype = provider.dtype
        self._graphs, self._encoder = graphs, graphs.encoder
        n_layers = manifest.dimensions.n_decoder_layers
        n_heads, head_dim = manifest.dimensions.n_heads, manifest.dimensions.head_dim
        self._self_attention = self._caches("decoder", n_layers, (n_heads,), head_dim, FEW_LENGTHS)
        self._cross_attention = self._caches("encoder", n_layers, (), n_heads * head_dim, provider.source_lengths)
        self._source_lengths = np.ones(slots, np.int64)
        self._n_fitted = 0
        """For how many sources the caches of cross-attention fit; 0 when encode or move has changed a source."""
        self._steps: dict[tuple[int, int, int, int], Step] = {}

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
        self._cross_attention.write(first_place, binding.get_outputs())

    def step(
        self, token_ids: Ints, positions: Ints, rows_of_sources: list[Ints], places_of_rows: Ints, k: int
    ) -> Candidates:
        R, N, W = len(token_ids), len(rows_of_sources), len(rows_of_sources[0])
        length = max(positions) + 1
        self._self_attention.fit(length, R)
        if self._n_fitted != N:
            self._cross_attention.fit(max(self._source_lengths[:N].tolist()), N)
            self._n_fitted = N
        step = self._step(R, N, W, k)
        step.input_ids[:R, 0] = token_ids
        step.positions[:R] = positions
        if len(step.positions) > R:
            step.positions[R:] = 0
        step.total_length[0] = self._self_attention.length if self._provider.captures else length
        step.rows_of_sources[:N, :W] = rows_of_sources
        if (padding := step.rows_of_sources.shape[1] - W) > 0:
            places_of_rows = [place + place // W * padding for place in places_of_rows]
        step.places_of_rows[:R] = places_of_rows
        step.source_lengths[:N] = self._source_lengths[:N]
        if len(step.source_lengths) > N:
            step.source_lengths[N:] = 1
        step.run()
        log_probs: list[list[float]] = step.log_probs[:R].tolist()
        if math.isnan(sum([row[0] for row in log_probs])):
            raise FloatingPointError("the decoder's log-probabilities are not numbers")
        return step.token_ids[:R].tolist(), log_probs

    def copy(self, source_rows: Ints, target_rows: Ints, n_tokens: int) -> None:
        self._self_attention.caches.copy(source_rows, target_rows, n_tokens)

    def move(self, source_place: int, target_place: int) -> None:
        length = int(self._source_lengths[source_place])
        self._cross_attention.caches.copy([source_place], [target_place], length)
        self._source_lengths[target_place] = length
        self._n_fitted = 0

    def _caches(
        self, attention: str, n_layers: int, heads: tuple[int, ...], width: int, lengths: Lengths
    ) -> CacheGroup:
        names = [f"{layer}.{attention}.{part}" for layer in range(n_layers) for part in ("key", "value")]
        return CacheGroup(names, self._provider.caches(len(names), self._slots, heads, width, self._dtype), lengths)

    def _step(self, R: int, N: int, W: int, k: int) -> "Step":  # noqa: N803
        width = self._padded_widths[max(W, self._fewest_queries)]
        sizes = self._padded_rows[R], self._padded_rows[N], width, k
        step = self._steps.pop(sizes, None) or Step(self._graphs, sizes, self._pad)
        if len(self._steps) == MOST_STEPS:
            self._steps.pop(next(iter(self._steps)))  # not used for the longest time
        self._steps[sizes] = step
        step.bind_caches(self._cross_attention, sizes[1], self._dtype, written=False)
        step.bind_caches(self._self_attention, sizes[0], self._dtype, written=True)
        return step


class Step:
    """The step graph at one size, with everything bound that it reads and writes; kept, since binding takes long."""

    def __init__(self, graphs: TranslationGraphs, sizes: tuple[int, int, int, int], pad: int) -> None:
        R, N, W, k = sizes
        self._graphs = graphs
        self._binding: Any = graphs.decoder_step.io_binding()
        self._versions: dict[CacheGroup, int] = {}
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
        self.input_ids[:] = pad
        for place in self._inputs.bound():
            self._binding.bind_input(*place)
        for place in self._outputs.bound():
            self._binding.bind_output(*place)
        self.total_length, self._k = np.ones(1, np.int32), np.array([k])
        for name, array in (("total_length", self.total_length), ("k", self._k)):
            self._binding.bind_cpu_input(name, array)  # which every provider reads where it is

    def bind_caches(self, group: CacheGroup, rows: int, dtype: DTypeLike, written: bool) -> None:
        """Let the graph read the first rows of caches, and write them in place, if they have moved since."""
        if self._versions.get(group) == group.version:
            return
        shape = group.caches.shape(rows)
        for name, address in zip(group.names, group.addresses, strict=True):
            memory = (self._graphs.provider.name, 0, dtype, shape, address)
            self._binding.bind_input(f"past_key_values.{name}", *memory)
            if written:
                self._binding.bind_output(f"present.{name}", *memory)
        self._versions[group] = group.version

    def run(self) -> None:
        """One pass over what the arrays hold."""
        lengths = tuple([group.length for group in self._versions])
        if lengths not in self._captures:
            self._captures[lengths] = self._graphs.capture()
        self._inputs.send()
        self._graphs.decoder_step.run_with_iobinding(self._binding, self._captures[lengths])
        self._binding.synchronize_outputs()
        self._outputs.fetch()
