"""Translation: the graphs of one artifact, their decoder steps, and the runner for the CPU.

The runner keeps sources in places and hypotheses in rows, both without gaps, because on a CPU the cost of a step is its
number of rows. The step graph updates the caches in place: each is bound as input and as output at one address, so that
a key is written into its row and nothing else moves. The states of SSRUs are kept and copied like caches.

Legend: M steps, R rows, N sources, W rows of one source, B newcomers, S source, k candidates.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from onnxruntime import RunOptions

from service.base.artifact import Artifact
from service.base.contract import AnyInts, BeamLayout, Candidates, EncodedSource, Ints
from service.runner.arrays import padded
from service.runner.caches import (
    COARSE_LENGTHS,
    FINE_LENGTHS,
    CacheGroup,
    CacheShapes,
    HostCaches,
    LengthBuckets,
    row_caches,
    source_caches,
)
from service.runner.provider import Captures, Provider
from service.runner.shortlist import PlacedShortlists, Shortlist
from service.runner.weights import Weights, load_session, read_rows, read_weights

MIN_QUERIES = 2
"""Fewest queries of one cross-attention in beam search. ONNX Runtime multiplies a single row with another kernel than
several rows, and its sums end in other bits. The number of rows depends on what shares the step, and an answer must not
depend on that."""
MAX_PADDING = 10
"""Tokens of padding that cost as much as another pass of a shipped encoder: 6 if its weights are in the CPU's caches,
more if they are not."""
MAX_STEPS = 1024
"""Most bound steps that are kept, each of some kilobytes."""
Sizes = tuple[int, int, int, int, int]
"""M, R, N, W and k."""


class TranslationRunner:
    """Implements `DecoderRows` with the graphs, over `n_rows` rows and as many places.

    Args:
        min_queries: fewest queries of one cross-attention; 1 only if no source ever has more rows.
    """

    def __init__(self, graphs: "TranslationGraphs", n_rows: int, min_queries: int = MIN_QUERIES) -> None:
        manifest = graphs.manifest
        self.n_rows = n_rows
        self._width = manifest.dimensions.n_heads * manifest.dimensions.head_dim
        self._min_queries = min_queries
        self._pad = manifest.special_tokens.pad
        self._provider, self._encoder, self._decoder_step = graphs.provider, graphs.encoder, graphs.decoder_step
        # Self-attention reads only the valid part of a cache, cross-attention also the padding.
        self._self_attention = self._caches(row_caches(manifest), COARSE_LENGTHS)
        self._cross_attention = self._caches(source_caches(manifest), FINE_LENGTHS)
        self._source_lengths = np.ones(n_rows, np.int64)
        self._sources_version = 0
        """A number that changes whenever a source is put into a place."""
        self._n_fitted = 0
        """Number of sources that the caches of cross-attention fit; 0 if encode or move has changed a source."""
        self._shortlists = graphs.new_shortlists(n_rows)
        self._steps = Steps(graphs, self._self_attention, self._cross_attention, self._shortlists)

    def encode(self, sources: list[Ints]) -> list[EncodedSource]:
        input_ids, lengths = padded(sources, self._pad)  # (B, S), (B)
        names = self._cross_attention.names
        block = np.empty((len(names), *input_ids.shape, self._width), np.float32)
        read_rows(self._encoder, input_ids)
        binding: Any = self._encoder.io_binding()
        binding.bind_cpu_input("input_ids", input_ids)
        binding.bind_cpu_input("source_lengths", lengths)
        address, shape = int(block.ctypes.data), block.shape[1:]
        for name in names:
            binding.bind_output(f"present.{name}", self._provider.name, 0, np.float32, shape, address)
            address += block.strides[0]
        self._encoder.run_with_iobinding(binding)
        # Of layer 0 alone, as all of them are products of the same states.
        if not math.isfinite(block[0].sum()):
            for keys, source in zip(block[0], sources, strict=True):
                if not np.isfinite(keys[: len(source)]).all():
                    raise FloatingPointError("the encoder's states are not finite numbers")
        return [EncodedSource(source, block, row) for row, source in enumerate(sources)]

    def enter(self, first_place: int, sources: list[EncodedSource]) -> None:
        places = range(first_place, first_place + len(sources))
        lengths = [len(source.token_ids) for source in sources]
        self._source_lengths[places.start : places.stop] = lengths
        self._sources_version += 1
        self._n_fitted = 0
        self._cross_attention.fit(int(self._source_lengths[: places.stop].max()), first_place)
        if first_place == 0:
            self._self_attention.fit(1, rows=0)
        for place, source, length in zip(places, sources, lengths, strict=True):
            self._cross_attention.caches.write(place, source.block[:, source.row, :length])
        if self._shortlists is not None:
            self._shortlists.allow(places, [source.token_ids for source in sources], are_first=first_place == 0)

    def step(
        self, token_ids: AnyInts, positions: AnyInts, length: int, k: int, beams: BeamLayout | None = None
    ) -> Candidates:
        R = len(token_ids)
        N, W = (R, 1) if beams is None else (len(beams.rows_of_sources), len(beams.rows_of_sources[0]))
        self._self_attention.fit(length, R)
        if self._n_fitted != N:
            self._cross_attention.fit(int(self._source_lengths[:N].max()), N)
            self._n_fitted = N
        read_rows(self._decoder_step, token_ids)
        step = self._steps.get((1, R, N, max(W, self._min_queries), k))
        step.input_ids[:, 0] = token_ids
        step.positions[:] = positions
        step.total_length[0] = length
        if beams is not None:
            rows_of_sources, places_of_rows = beams
            step.rows_of_sources[:, :W] = rows_of_sources
            if (padding := step.rows_of_sources.shape[1] - W) > 0:
                places_of_rows = [place + place // W * padding for place in places_of_rows]
            step.places_of_rows[:] = places_of_rows
        if step.sources_version != self._sources_version:
            step.source_lengths[:] = self._source_lengths[:N]
            step.sources_version = self._sources_version
        step.run()
        return step.token_ids[0], step.log_probs[0]

    def copy(self, source_rows: Ints, target_rows: Ints, n_tokens: int) -> None:
        self._self_attention.caches.copy(source_rows, target_rows, n_tokens)

    def move(self, source_place: int, target_place: int) -> None:
        length = int(self._source_lengths[source_place])
        self._cross_attention.caches.copy([source_place], [target_place], length)
        self._source_lengths[target_place] = length
        self._sources_version += 1
        self._n_fitted = 0
        if self._shortlists is not None:
            self._shortlists.move(source_place, target_place)

    def clean(self) -> None:
        self._self_attention.caches.clean()
        self._cross_attention.caches.clean()

    def _caches(self, shapes: CacheShapes, lengths: LengthBuckets) -> CacheGroup[HostCaches]:
        return CacheGroup(shapes, HostCaches(shapes, self.n_rows), lengths)


class TranslationGraphs:
    """The encoder and the decoder step of one artifact; several runners may share them."""

    def __init__(self, artifact: Artifact, provider: Provider, weights: Weights | None = None) -> None:
        if artifact.manifest.decoder_self == "ssru":  # a capture runs the pass more than once, and its state with it
            provider = replace(provider, captures=False)
        self.manifest = artifact.manifest
        self.provider = provider
        self.encoder = load_session(artifact, provider, "encoder.onnx", provider.captures, weights)
        self.decoder_step = load_session(artifact, provider, "decoder_step.onnx", provider.captures, weights)
        self._shortlist = None
        if artifact.manifest.shortlist is not None:
            self._shortlist = Shortlist(artifact.manifest, weights or read_weights(artifact))
        self.captures = Captures(provider)

    def new_shortlists(self, n_places: int) -> PlacedShortlists | None:
        """Return shortlists for the sources in places, if the artifact has shortlists."""
        if self._shortlist is None:
            return None
        return PlacedShortlists(self._shortlist, self.provider, n_places)


class Step:
    """The step graph at one size, with all its inputs and outputs bound; it is reused, since binding takes long. On a
    device it may be M steps that run one after the other, each on what the one before has written."""

    def __init__(self, graphs: TranslationGraphs, sizes: Sizes) -> None:
        M, R, N, W, k = sizes
        self._graphs = graphs
        self._bindings: list[Any] = [graphs.decoder_step.io_binding() for _ in range(M)]
        self.versions: dict[CacheGroup[Any], int] = {}
        """The versions of the caches that are bound."""
        self._captures: dict[tuple[int, ...], list[RunOptions | None]] = {}
        """Run options of each step by the lengths of caches and shortlists, on which their addresses depend."""
        self._n_listed = 0
        provider = graphs.provider
        self._inputs = provider.arrays(
            input_ids=(np.int64, (R, 1)),
            positions=(np.int32, (M, R)),
            rows_of_sources=(np.int64, (N, W)),
            places_of_rows=(np.int64, (R,)),
            source_lengths=(np.int64, (N,)),
        )
        self._outputs = provider.arrays(token_ids=(np.int64, (M, R, k)), log_probs=(np.float32, (M, R, k)))
        self.input_ids, self.positions = self._inputs["input_ids"], self._inputs["positions"]
        self.rows_of_sources, self.places_of_rows = self._inputs["rows_of_sources"], self._inputs["places_of_rows"]
        # Until it is told otherwise, each source has the row with the number of its place.
        self.rows_of_sources[:], self.places_of_rows[:] = np.arange(N)[:, None], np.arange(R) * W
        self.source_lengths, self.sources_version = self._inputs["source_lengths"], -1
        self.token_ids, self.log_probs = self._outputs["token_ids"], self._outputs["log_probs"]
        self.total_length, self._k = np.ones(1, np.int32), np.array([k])
        for i, binding in enumerate(self._bindings):
            for input_memory in self._inputs.bindings():
                binding.bind_input(*input_memory)
            binding.bind_input("positions", *self._inputs.part("positions", i))
            if i > 0:
                binding.bind_input("input_ids", *self._outputs.part("token_ids", i - 1))
            for name in ("token_ids", "log_probs"):
                binding.bind_output(name, *self._outputs.part(name, i))
            for name, array in (("total_length", self.total_length), ("k", self._k)):
                binding.bind_cpu_input(name, array)  # every provider reads these from main memory

    def bind_caches(self, group: CacheGroup[Any], rows: int, is_updated: bool) -> None:
        """Let the graph read the first rows of caches and, if `is_updated`, write them in place."""
        provider, shape = self._graphs.provider, group.caches.shape(rows)
        for name, address in zip(group.names, group.addresses, strict=True):
            memory = (provider.name, 0, provider.dtype, shape, address)
            for binding in self._bindings:
                binding.bind_input(f"past_key_values.{name}", *memory)
                if is_updated:
                    binding.bind_output(f"present.{name}", *memory)
        self.versions[group] = group.version

    def bind_shortlists(self, shortlists: PlacedShortlists, n_places: int) -> None:
        """Let the graph read the shortlists of the first places."""
        for binding in self._bindings:
            shortlists.bind(binding, n_places)
        self._n_listed = shortlists.size

    def run(self) -> None:
        """Run one pass over the contents of the arrays, on the CPU."""
        self._graphs.decoder_step.run_with_iobinding(self._bindings[0])

    def launch(self) -> None:
        """Begin the passes on a device, which may still compute afterwards if steps are captured."""
        lengths = (*[group.length for group in self.versions], self._n_listed)
        captures = self._captures.pop(lengths, None) or [self._graphs.captures.new() for _ in self._bindings]
        self._inputs.upload()
        for binding, options in zip(self._bindings, captures, strict=True):
            self._graphs.decoder_step.run_with_iobinding(binding, options)
        self._captures[lengths] = captures  # not if a run fails: its capture is not launched again

    def wait(self) -> None:
        """Wait until the device has completed the passes."""
        self._bindings[0].synchronize_outputs()
        self._outputs.download()


class Steps:
    """Steps of all sizes over the same caches.

    Args:
        self_attention, cross_attention: the caches or states of R rows, and the caches of N sources.
        shortlists: of N sources, if the model has shortlists.
    """

    def __init__(
        self,
        graphs: TranslationGraphs,
        self_attention: CacheGroup[Any],
        cross_attention: CacheGroup[Any],
        shortlists: PlacedShortlists | None,
    ) -> None:
        self._graphs, self._shortlists = graphs, shortlists
        self._self_attention, self._cross_attention = self_attention, cross_attention
        self._steps: dict[Sizes, Step] = {}

    def get(self, sizes: Sizes) -> Step:
        """Return the step of these sizes, bound to the caches where they are now."""
        step = self._steps.pop(sizes, None) or Step(self._graphs, sizes)
        if len(self._steps) == MAX_STEPS:
            self._steps.pop(next(iter(self._steps)))  # the least recently used
        self._steps[sizes] = step
        _, R, N, _, _ = sizes
        if step.versions.get(self._cross_attention) != self._cross_attention.version:
            step.bind_caches(self._cross_attention, N, is_updated=False)
        if step.versions.get(self._self_attention) != self._self_attention.version:
            step.bind_caches(self._self_attention, R, is_updated=True)
        if self._shortlists is not None:
            step.bind_shortlists(self._shortlists, N)
        return step
