"""Running an artifact's translation graphs: greedy search over decoder rows whose caches are bound in place.

Kept small for proof and evaluation; `service` schedules the same graphs for many clients.

Legend: B batch, S source, R decoder rows, L cache length, H heads, D head_dim, E = H * D.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import DTypeLike, NDArray

from export.float_form import open_float_form
from export.padding import pad
from export.session import open_session
from export.signatures import DECODER_PARTS, cache_names
from manifest.layout import WEIGHTS
from manifest.schema import Manifest, Provider
from model.batching import batches_by_length
from model.decoding.search import Hypothesis
from model.networks.shortlist import allowed_tokens
from model.weights import read_weights

Array = NDArray[Any]

ENCODER_BATCH_TOKENS = 2048
"""Largest number of padded source tokens in one encoder batch."""
GROUP_TOKENS = 8192
"""Padded source tokens that are encoded before any of them is decoded; each takes 4 kB in a model of d_model 256."""
FIRST_CACHE_LENGTH = 32
"""Initial L. It doubles when the longest row outgrows it, because attention reads all of L at every step."""


@dataclass
class Memory:
    """Keys and values of one source for each decoder layer in turn, each (S, E)."""

    arrays: list[Array]
    length: int


@dataclass
class RunningSequence:
    """A sequence that is being decoded in a row."""

    index: int
    ids: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)


class Translator:
    """Sessions for an artifact's encoder and decoder step.

    Args:
        n_rows: R, the number of sequences decoded side by side.
        provider: the provider that the graphs were made for.
        threads: threads of each session.
        in_floats: whether to run the float form of the graphs.
    """

    def __init__(
        self,
        directory: Path,
        manifest: Manifest,
        n_rows: int = 32,
        provider: Provider = "cpu",
        threads: int = 1,
        in_floats: bool = False,
    ) -> None:
        open_graph = open_float_form if in_floats else open_session
        self.manifest = manifest
        self.n_rows = n_rows
        self.shortlists = Shortlists(directory, manifest) if manifest.shortlist else None
        self.encoder = open_graph(directory, manifest, f"{provider}/encoder.onnx", threads)
        self.memory_names = cache_names("present", "encoder", manifest.dimensions.n_decoder_layers)
        self.decoder_step = open_graph(directory, manifest, f"{provider}/decoder_step.onnx", threads)
        is_half = any(value.type == "tensor(float16)" for value in self.decoder_step.get_inputs())
        self.dtype = np.float16 if is_half else np.float32

    def greedy(
        self,
        sources: Sequence[Sequence[int]],
        max_target_tokens: int,
        admit_per_step: int | None = None,
        prefix: Sequence[int] = (),
    ) -> list[Hypothesis]:
        """Choose the most probable token at each step, for sources that end in </s>.

        Args:
            max_target_tokens: the most tokens of a target, </s> included.
            admit_per_step: the most sequences that enter at one step (None: as many as there are free rows). With one,
                every row is at a position of its own.
            prefix: tokens with which every target begins; their probabilities are not counted.
        """
        hypotheses: dict[int, Hypothesis] = {}
        # Sources of one length group share their padding, as the rows' cross-attention caches have one size.
        for group in batches_by_length(np.array([len(s) for s in sources]), GROUP_TOKENS):
            decoded = self.greedy_group([sources[i] for i in group], max_target_tokens, admit_per_step, prefix)
            hypotheses |= dict(zip(group.tolist(), decoded, strict=True))
        return [hypotheses[i] for i in range(len(sources))]

    def greedy_group(
        self,
        sources: Sequence[Sequence[int]],
        max_target_tokens: int,
        admit_per_step: int | None,
        prefix: Sequence[int],
    ) -> list[Hypothesis]:
        """Decode sources that are all encoded before the first step."""
        tokens = self.manifest.special_tokens
        waiting = deque(enumerate(self.encode(sources)))
        lists = [self.shortlists.of_source(source) for source in sources] if self.shortlists is not None else []
        rows = DecoderRows(
            self.decoder_step,
            self.manifest,
            self.n_rows,
            max(map(len, sources)),
            self.dtype,
            k=2,
            n_listed=max(map(len, lists), default=None),
        )
        running: dict[int, RunningSequence] = {}
        hypotheses: dict[int, Hypothesis] = {}
        while waiting or running:
            free = [row for row in range(self.n_rows) if row not in running][:admit_per_step]
            for row in free[: len(waiting)]:
                index, memory = waiting.popleft()
                rows.admit(row, tokens.bos, memory)
                if lists:
                    rows.allow(row, lists[index])
                running[row] = RunningSequence(index)
            token_ids, log_probs = rows.step()
            for row, sequence in list(running.items()):
                position = len(sequence.ids)
                choice = int(position == len(prefix) and token_ids[row, 0] == tokens.eos)  # a target is never empty
                token, log_prob = int(token_ids[row, choice]), float(log_probs[row, choice])
                if position < len(prefix):
                    token, log_prob = prefix[position], 0.0
                sequence.ids.append(token)
                sequence.log_probs.append(log_prob)
                finished = token == tokens.eos
                if finished or len(sequence.ids) == max_target_tokens:
                    ids = sequence.ids[:-1] if finished else sequence.ids
                    hypotheses[sequence.index] = Hypothesis(ids, float(np.mean(sequence.log_probs)), finished)
                    del running[row]
                else:
                    rows.advance(row, token)
        return [hypotheses[i] for i in range(len(sources))]

    def encode(self, sources: Sequence[Sequence[int]]) -> list[Memory]:
        """Return the memory of each source."""
        memories: dict[int, Memory] = {}
        for batch in batches_by_length(np.array([len(s) for s in sources]), ENCODER_BATCH_TOKENS):
            input_ids, lengths = pad([sources[i] for i in batch], self.manifest.special_tokens.pad)
            present = self.encoder.run(self.memory_names, {"input_ids": input_ids, "source_lengths": lengths})
            for row, (index, length) in enumerate(zip(batch.tolist(), lengths.tolist(), strict=True)):
                memories[index] = Memory([array[row, :length] for array in present], length)
        return [memories[i] for i in range(len(sources))]


class Shortlists:
    """The shortlists of an artifact."""

    def __init__(self, directory: Path, manifest: Manifest) -> None:
        assert manifest.shortlist is not None
        stored = read_weights(directory / WEIGHTS)
        self._lists = stored["shortlist.offsets"].numpy(), stored["shortlist.tokens"].numpy()
        self._settings = manifest.shortlist
        self._n_target = manifest.dimensions.target_vocab_size

    def of_source(self, source: Sequence[int]) -> NDArray[np.int64]:
        """Return the tokens that a translation of a source may have."""
        return allowed_tokens(source, *self._lists, self._settings.first, self._settings.own, self._n_target)


class DecoderRows:
    """R decoder rows: tokens, positions and caches, bound once as inputs; the caches are also outputs.

    With shortlists a row may first have the n_listed first tokens, by default all.

    The states of SSRUs are caches of length 1. An unused row stays at its position and costs as much as any other.
    """

    def __init__(
        self,
        session: ort.InferenceSession,
        manifest: Manifest,
        n_rows: int,
        source_size: int,
        dtype: DTypeLike,
        k: int = 1,
        n_listed: int | None = None,
    ) -> None:
        dimensions = manifest.dimensions
        R, H, D = n_rows, dimensions.n_heads, dimensions.head_dim
        self.session = session
        self.input_ids = np.full((R, 1), manifest.special_tokens.pad)
        self.positions = np.zeros(R, np.int32)
        self.total_length = np.ones(1, np.int32)
        self.rows_of_sources = np.arange(R)[:, None]  # greedy search: one row for each source
        self.places_of_rows = np.arange(R)
        self.source_lengths = np.ones(R, np.int64)
        self.pad = manifest.special_tokens.pad
        n_listed = (n_listed or dimensions.target_vocab_size) if manifest.shortlist else 0
        self.allowed_tokens = np.tile(np.arange(n_listed), (R, 1))
        parts = DECODER_PARTS[manifest.decoder_self]
        self_names = cache_names("past_key_values", "decoder", dimensions.n_decoder_layers, parts)
        memory_names = cache_names("past_key_values", "encoder", dimensions.n_decoder_layers)
        self.has_states = manifest.decoder_self == "ssru"
        shape = (R, 1, H * D) if self.has_states else (R, H, FIRST_CACHE_LENGTH, D)
        self.caches = {name: np.zeros(shape, dtype) for name in self_names}
        # A step may be repeated, which would change a state in place once more.
        self.present = {name: np.zeros_like(cache) if self.has_states else cache for name, cache in self.caches.items()}
        self.memories = {name: np.zeros((R, source_size, H * D), dtype) for name in memory_names}
        self.ask_for(k)

    def admit(self, row: int, bos: int, memory: Memory) -> None:
        """Begin a new sequence in a row."""
        self.input_ids[row] = bos
        self.positions[row] = 0
        self.source_lengths[row] = memory.length
        for cache, array in zip(self.memories.values(), memory.arrays, strict=True):
            cache[row, : memory.length] = array

    def allow(self, row: int, tokens: NDArray[np.int64]) -> None:
        """Set the tokens that the sequence in a row may have."""
        self.allowed_tokens[row] = self.pad
        self.allowed_tokens[row, : len(tokens)] = tokens

    def advance(self, row: int, token: int) -> None:
        """Continue a row with the token that was chosen."""
        if self.has_states:
            for name, states in self.present.items():
                self.caches[name][row] = states[row]
        self.input_ids[row] = token
        self.positions[row] += 1

    def ask_for(self, k: int) -> None:
        """Set how many candidates a step returns for each row."""
        self.k = np.array([k])
        self.token_ids = np.zeros((len(self.positions), k), np.int64)
        self.log_probs = np.zeros((len(self.positions), k), np.float32)
        self.bind()

    def step(self) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Run a step and return candidates and their log-probabilities, each (R, k); the next step overwrites them."""
        self.total_length[0] = self.positions.max() + 1
        if not self.has_states and self.total_length[0] > self.cache_length:
            self.grow()
        self.session.run_with_iobinding(self.binding)
        return self.token_ids, self.log_probs

    @property
    def cache_length(self) -> int:
        """The length L of the caches."""
        return next(iter(self.caches.values())).shape[2]

    def grow(self) -> None:
        """Double the length of the caches."""
        self.caches = {name: np.concatenate([a, np.zeros_like(a)], axis=2) for name, a in self.caches.items()}
        self.present = self.caches
        self.bind()

    def bind(self) -> None:
        """Bind every array again after some were replaced."""
        binding = self.session.io_binding()
        inputs: dict[str, Array] = {
            "input_ids": self.input_ids,
            "positions": self.positions,
            "total_length": self.total_length,
            "rows_of_sources": self.rows_of_sources,
            "places_of_rows": self.places_of_rows,
            "source_lengths": self.source_lengths,
            "k": self.k,
        }
        if self.allowed_tokens.size:
            inputs["allowed_tokens"] = self.allowed_tokens
        for name, array in {**inputs, **self.caches, **self.memories}.items():
            # On the CPU an OrtValue is a view: the graph reads what is written to the array.
            binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(array))
        for name, array in self.present.items():
            present = name.replace("past_key_values", "present")
            binding.bind_ortvalue_output(present, ort.OrtValue.ortvalue_from_numpy(array))
        binding.bind_ortvalue_output("token_ids", ort.OrtValue.ortvalue_from_numpy(self.token_ids))
        binding.bind_ortvalue_output("log_probs", ort.OrtValue.ortvalue_from_numpy(self.log_probs))
        self.binding = binding
