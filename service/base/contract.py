"""The contract between engine, tasks and runner: array types, protocols, answers and events."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from manifest.schema import AttentionKind
from service.base.backlog import NO_BACKLOG, Backlog

Output = TypeVar("Output")

FinishReason = Literal["eos", "length", "repetition"]
"""Why a target ended, from best to worst."""
Ints = list[int]
IntArray = NDArray[np.int64]
AnyInts = Ints | NDArray[np.integer[Any]]
Candidates = tuple[IntArray, NDArray[np.float32]]
"""The k most probable next tokens of R rows and their log-probabilities, each (R, k)."""
AttentionKinds = frozenset[AttentionKind]
Matrices = dict[AttentionKind, NDArray[np.float32]]
"""Attention matrices (layers, heads, rows, columns) by kind."""
Attend = Callable[[list[list[int]], list[list[int]], AttentionKinds], list[Matrices]]
"""Takes sources, targets and kinds; returns the attention matrices of each pair, without padding."""
Classify = Callable[[list[list[int]]], list[NDArray[np.float32]]]
"""Returns the logits of each token of each source, (S, C), without padding; (1, C) if one state decides."""
Embed = Callable[[list[list[int]]], list[NDArray[np.float32]]]
"""Returns the encoder's last hidden states of each source, (S, E), without padding."""
Project = Callable[[NDArray[np.float32]], NDArray[np.float32]]
"""Applies an encoder's dense layers to pooled states (B, D); returns (B, D')."""
Phase = Literal["probe", "encode", "decode"]


class Answer(NamedTuple, Generic[Output]):
    """The outputs of a request, in the order of its sequences, and how long each phase took."""

    outputs: list[Output]
    queue_s: float
    encode_s: float
    decode_s: float


@dataclass(frozen=True)
class ModelInfo:
    """What is known about a model before it is loaded. `file_bytes` is the total size of the files that are read to
    load it."""

    provider: Literal["cpu", "cuda"]
    engines: tuple[str, ...]
    file_bytes: int


@dataclass(frozen=True)
class EngineState:
    """The state of an engine.

    Attributes:
        unready_reason: why the engine should get no requests now; None if it is ready.
        n_waiting, n_running: numbers of sequences.
        max_rows: most decoder rows that run at once; 0 while the model is not loaded.
        backlog: the work before a sequence that arrives now, from a client that has sent nothing else.
        whole_backlog: all work that waits and runs.
        proved_at: when a forward pass of the engine succeeded last, on the clock of deadlines; None if none has, or the
            model is not loaded.
    """

    unready_reason: str | None
    n_waiting: int
    n_running: int
    max_rows: int
    backlog: Backlog = NO_BACKLOG
    whole_backlog: Backlog = NO_BACKLOG
    proved_at: float | None = None


BACKGROUND = "background_"
"""Prefix of the kind of a background engine, which runs in short steps while others are idle. An engine is
MODEL/KIND."""


def model_of(engine: str) -> str:
    return engine.rpartition("/")[0]


def kind_of(engine: str) -> str:
    """Return the kind of an engine. A background engine has the kind of the engine beside it."""
    return engine.rpartition("/")[2].removeprefix(BACKGROUND)


def in_background(engine: str) -> str:
    """Return the name of the background engine that does the same."""
    return f"{model_of(engine)}/{BACKGROUND}{kind_of(engine)}"


@cache
def is_in_background(engine: str) -> bool:
    return engine == in_background(engine)


class QueueWait(NamedTuple):
    """How long a request, or the part of it that one worker has, waited in the queue."""

    seconds: float


class ForwardPass(NamedTuple):
    """A forward pass that succeeded.

    Attributes:
        source_tokens: the length of each source of an encoder pass.
        sequences: number of sequences of a decoder step, each of which got one more token.
        rows: number of rows of a decoder step.
    """

    phase: Phase
    seconds: float
    source_tokens: tuple[int, ...] = ()
    sequences: int = 0
    rows: int = 0


Event = QueueWait | ForwardPass
"""An event that is counted in the metrics."""


class EncodedSource(NamedTuple):
    """The keys and values of every cross-attention, of one source among those that were encoded in one pass.

    Attributes:
        token_ids: the source.
        block: (C, B, S, E), those of all B sources of the pass, padded.
        row: the number of this source among these B.
    """

    token_ids: Ints
    block: NDArray[np.float32]
    row: int


class BeamLayout(NamedTuple):
    """Which rows belong to which source.

    Attributes:
        rows_of_sources: (N, W), the rows of the source in each place, padded with any row.
        places_of_rows: (R), the index of each row in the flattened rows_of_sources.
    """

    rows_of_sources: list[Ints]
    places_of_rows: Ints


class DecoderRows(Protocol):
    """Sources in places and hypotheses in rows. Places and rows in use are the first ones, without gaps."""

    n_rows: int
    """Number of rows, and of places."""

    def encode(self, sources: list[Ints]) -> list[EncodedSource]:
        """Encode sources in one pass. Raises FloatingPointError: the encoder gives no finite numbers."""

    def enter(self, first_place: int, sources: list[EncodedSource]) -> None:
        """Put sources into the places from `first_place` on."""

    def step(
        self, token_ids: AnyInts, positions: AnyInts, length: int, k: int, beams: BeamLayout | None = None
    ) -> Candidates:
        """Run one decoder step: feed token_ids (R) at positions (R).

        Args:
            length: the largest position and one more.
            k: number of candidates of each row.
            beams: which rows each source has; None: the row with the number of its place.

        Returns:
            Arrays that the next step at these sizes overwrites; the caller may change them.
        """

    def copy(self, source_rows: Ints, target_rows: Ints, n_tokens: int) -> None:
        """Copy the first `n_tokens` of the self-attention caches of rows to other rows. No target is also a source."""

    def move(self, source_place: int, target_place: int) -> None:
        """Copy a source from one place to another."""

    def clean(self) -> None:
        """Replace infinity and NaN in the caches by 0: attention multiplies by 0 what it must not read."""


class FixedRows(Protocol):
    """Sources in places and hypotheses in rows. Each keeps its place or row until it leaves, so there may be gaps."""

    def warm_up(self) -> list[int]:
        """Encode sources of every usual shape, since the first run of a shape takes long. Only called while no place is
        in use. Return the lengths of sources after which steps have all their usual shapes."""

    def encode(self, places: IntArray, sources: list[list[int]]) -> None:
        """Encode sources, one into each of these places."""

    def launch(
        self, token_ids: IntArray, positions: IntArray, rows_of_sources: IntArray, places_of_rows: IntArray, k: int
    ) -> None:
        """Begin M decoder steps: feed token_ids (R) at positions[0], and the most probable token of each step at the
        next positions. Rows that are not in use are fed at position 0.

        Args:
            positions: (M, R).
            rows_of_sources: (N, W), the rows of the source in each place, padded with any row.
            places_of_rows: (R), the index of each row in the flattened rows_of_sources.
            k: number of candidates of each row; 1 if there are several steps.
        """

    def fetch(self) -> tuple[IntArray, NDArray[np.float32]]:
        """Wait for the steps that were launched last. Return the k most probable next tokens and their
        log-probabilities, each (M, R, k), which the next launch may overwrite."""

    def copy(self, source_rows: IntArray, target_rows: IntArray) -> None:
        """Copy the self-attention caches of rows to other rows. No target is also a source."""

    def leave(self, places: IntArray) -> None:
        """Mark places as empty."""

    def clean(self) -> None:
        """Replace by 0 what is no finite number in the caches, as `DecoderRows.clean` does."""
