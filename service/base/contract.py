"""What the engine and the tasks ask of the runner, and the answers that the engine gives."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Output = TypeVar("Output")

FinishReason = Literal["eos", "length", "repetition"]
"""The worst comes last."""
Ints = list[int]
Candidates = tuple[list[Ints], list[list[float]]]
"""The k most probable next tokens of R rows and their log-probabilities, each (R, k)."""
IntArray = NDArray[np.int64]
AttentionKind = Literal["cross", "encoder", "decoder"]
AttentionKinds = frozenset[AttentionKind]
Matrices = dict[AttentionKind, NDArray[np.float32]]
"""By kind: (layers, heads, rows, columns)."""

Attend = Callable[[list[list[int]], list[list[int]], AttentionKinds], list[Matrices]]
"""What each source and target attended to, without padding."""
Classify = Callable[[list[list[int]]], list[NDArray[np.float32]]]
"""The logits of each token of each source, (S, C), without padding; (1, C) where the first token decides."""
Embed = Callable[[list[list[int]]], list[NDArray[np.float32]]]
"""What the encoder makes of each source, (S, E), without padding."""
Project = Callable[[NDArray[np.float32]], NDArray[np.float32]]
"""What an encoder's dense layers make of pooled states (B, D): (B, D')."""


Phase = Literal["probe", "encode", "decode"]


@dataclass(frozen=True)
class Answer(Generic[Output]):
    """The outputs in the order of the sequences, and where the time went."""

    outputs: list[Output]
    queue_s: float
    encode_s: float
    decode_s: float


@dataclass(frozen=True)
class ModelInfo:
    """What is known of a model before it is loaded.

    Attributes:
        provider: that runs it.
        engines: their names.
        file_bytes: of the files that are read to load it.
    """

    provider: Literal["cpu", "cuda"]
    engines: tuple[str, ...]
    file_bytes: int


@dataclass(frozen=True)
class EngineState:
    """How an engine does: why it should get no requests now, if so, and how many sequences wait and run."""

    unready_reason: str | None
    n_waiting: int
    n_running: int
    max_rows: int


class QueueWait(NamedTuple):
    """A request, or the part of it that one loop has, waited for so many seconds."""

    seconds: float


class ForwardPass(NamedTuple):
    """A forward pass succeeded.

    Attributes:
        source_tokens: the length of each sequence that it read.
        rows: of a decoder step; one more token was written for each of so many sequences.
    """

    phase: Phase
    seconds: float
    source_tokens: tuple[int, ...] = ()
    sequences: int = 0
    rows: int = 0


Event = QueueWait | ForwardPass
"""What an engine tells metrics."""


class DecoderRows(Protocol):
    """Sources in places, and hypotheses in rows; both in use from 0 on without gaps."""

    def encode(self, first_place: int, sources: list[list[int]]) -> None:
        """Read sources, one into each place from `first_place` on."""

    def step(
        self, token_ids: Ints, positions: Ints, rows_of_sources: list[Ints], places_of_rows: Ints, k: int
    ) -> Candidates:
        """Feed token_ids (R) at positions (R).

        Args:
            rows_of_sources: (N, W), the rows of the source in each place, filled up with any row.
            places_of_rows: (R), where in rows_of_sources, flattened, each row stands.
        """

    def copy(self, source_rows: Ints, target_rows: Ints, n_tokens: int) -> None:
        """Copy what rows hold of their first n_tokens over other rows; none of these is also copied from."""

    def move(self, source_place: int, target_place: int) -> None:
        """Copy a source over another one."""


class FixedRows(Protocol):
    """Sources in places, and hypotheses in rows. Each stays where it is until it leaves, with gaps between them."""

    def warm_up(self) -> None:
        """Read sources of every usual shape, since the first run of a shape takes long. Only called while no place is
        in use."""

    def encode(self, places: IntArray, sources: list[list[int]]) -> None:
        """Read sources, one into each of these places."""

    def launch(
        self, token_ids: IntArray, positions: IntArray, rows_of_sources: IntArray, places_of_rows: IntArray, k: int
    ) -> None:
        """Begin to feed token_ids (R) at positions (R). Rows that are not in use are fed at position 0.

        Args:
            rows_of_sources: (N, W), the rows of the source in each place, filled up with any row.
            places_of_rows: (R), where in rows_of_sources, flattened, each row stands.
        """

    def fetch(self) -> tuple[IntArray, NDArray[np.float32]]:
        """What the step that was launched last has found: the k most probable next tokens and their log-probabilities,
        each (R, k). The next launch may overwrite them."""

    def copy(self, source_rows: IntArray, target_rows: IntArray) -> None:
        """Copy rows over other rows; none of these is also copied from."""

    def leave(self, places: IntArray) -> None:
        """These places are empty from now on."""
