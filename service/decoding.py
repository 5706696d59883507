"""Greedy search: at every step each row takes its most probable token, until the end of sequence or its limit.

Beam search will stand beside it as another `Computation`.
"""

from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from service.scheduler import Sequence

MAX_BEAM_SIZE = 1
"""The widest search that this version runs; manifests and requests are held to it."""


@dataclass
class Hypothesis:
    """A target in the making: its tokens, end of sequence included, and the sum of their log-probabilities."""

    max_target_tokens: int
    token_ids: list[int] = field(default_factory=list)
    log_prob: float = 0.0
    finish_reason: Literal["eos", "length"] | None = None


class DecoderRows(Protocol):
    """Decoder rows in slots: row i of every argument and result belongs to slot i."""

    def encode(self, first_slot: int, sources: list[list[int]]) -> None:
        """Read sources, one into each slot from `first_slot` on."""

    def step(
        self, token_ids: NDArray[np.int64], positions: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Feed token_ids (R) at positions (R): the most probable next tokens (R) and their log-probabilities (R)."""

    def move(self, source_slot: int, target_slot: int) -> None:
        """Copy a slot over another one."""


class GreedyDecoding:
    """The computation of a translation engine."""

    def __init__(self, rows: DecoderRows, bos: int, eos: int) -> None:
        self._rows = rows
        self._bos = bos
        self._eos = eos

    def warm_up(self) -> None:
        self._rows.encode(0, [[self._eos]])
        self._rows.step(np.array([self._bos]), np.array([0]))

    def prefill(self, first_slot: int, sequences: list[Sequence[Hypothesis]]) -> None:
        self._rows.encode(first_slot, [sequence.source_ids for sequence in sequences])

    def step(self, running: list[Sequence[Hypothesis]]) -> None:
        targets = [sequence.output.token_ids for sequence in running]
        last = np.array([target[-1] if target else self._bos for target in targets])
        positions = np.array([len(target) for target in targets])
        token_ids, log_probs = self._rows.step(last, positions)
        for sequence, token_id, log_prob in zip(running, token_ids.tolist(), log_probs.tolist(), strict=True):
            self._append(sequence.output, token_id, log_prob)
            sequence.finished = sequence.output.finish_reason is not None

    def move(self, source_slot: int, target_slot: int) -> None:
        self._rows.move(source_slot, target_slot)

    def _append(self, hypothesis: Hypothesis, token_id: int, log_prob: float) -> None:
        hypothesis.token_ids.append(token_id)
        hypothesis.log_prob += log_prob
        if token_id == self._eos:
            hypothesis.finish_reason = "eos"
        elif len(hypothesis.token_ids) == hypothesis.max_target_tokens:
            hypothesis.finish_reason = "length"
