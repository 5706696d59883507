"""Greedy search inside continuous batching: each sequence has one decoder row, with the number of its place.

Its result is that of beam search with a beam of one, for less work: nothing is selected, and no hypothesis changes its
row. It has an engine of its own, because cross-attention uses another kernel for one query than for several: it takes
half the time, and its sums end in other bits. An answer must not depend on what shares its steps, so a beam of one
never shares steps with wider beams.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from service.base.contract import DecoderRows, Ints
from service.engine.scheduler import Sequence
from service.engine.search import (
    MIN_RUNAWAY_TOKENS,
    REPETITION_INTERVAL,
    WATCHED_CANDIDATES,
    Hypothesis,
    Search,
    TokenScores,
    encode_sources,
    fail_without_numbers,
    is_runaway,
    prefix_scores,
    reason_of,
    score_token,
    try_out,
)


@dataclass
class _GreedyState:
    """The target of one sequence so far, without beginning of sequence."""

    token_ids: Ints = field(default_factory=list)
    token_scores: list[TokenScores] = field(default_factory=list)
    next_tokens: list[tuple[int, float]] | tuple[()] = ()

    def steps_to_check(self, search: Search) -> int:
        """Return after how many tokens the sequence is at its limit, or checked for repetition."""
        n = len(self.token_ids)
        check = max(n + 1, MIN_RUNAWAY_TOKENS)
        limit = max(search.max_target_tokens, len(search.prefix) + 1)
        return min(check + -check % REPETITION_INTERVAL, limit) - n


class GreedySearch:
    """The `Computation` of sequences with a beam of one: running[i] is in place i and in row i of `rows`, the decoder.
    Tokens are fed back as arrays. Python looks at a single row only when it may have ended, or when its token is not
    simply the most probable one."""

    def __init__(self, rows: DecoderRows, bos: int, eos: int) -> None:
        self._decoder, n_rows = rows, rows.n_rows
        self._bos, self._eos = bos, eos
        self._tokens, self._positions = np.zeros(n_rows, np.int64), np.zeros(n_rows, np.int32)
        self._log_probs = np.zeros(n_rows)
        """The sum of each row."""
        self._has_changed = True
        """Whether sequences have come, gone or moved since the last step."""
        self._append: list[Callable[[int], None]] = []
        """For each row, appends a token to its target."""
        self._first: Ints = []
        """Rows whose first token comes next."""
        self._guided: list[tuple[int, Sequence[Search]]] = []
        """Rows whose token may not be the most probable one, or not the only one that is recorded: of sequences with a
        prefix, with recorded scores or with `n_next_tokens`."""
        self._length = 0
        """The largest position and one more."""
        self._steps_to_check = 0
        """Steps until a sequence is at its limit, or is checked for repetition."""

    def warm_up(self) -> None:
        try_out(self._decoder, self._bos, self._eos, N_CANDIDATES)

    def encode(self, sequences: list[Sequence[Search]]) -> None:
        encode_sources(self._decoder, sequences)

    def enter(self, first_place: int, sequences: list[Sequence[Search]]) -> None:
        self._has_changed = True
        self._decoder.enter(first_place, [sequence.state for sequence in sequences])
        for sequence in sequences:
            sequence.state = _GreedyState()
        rows = slice(first_place, first_place + len(sequences))
        self._tokens[rows], self._positions[rows], self._log_probs[rows] = self._bos, 0, 0.0

    def step(self, running: list[Sequence[Search]]) -> int:
        R = len(running)
        if self._has_changed or len(self._append) != R:
            self._look_at_all(running)
        guided = [(sequence.output, len(sequence.state.token_ids)) for _, sequence in self._guided]
        k = max([n_candidates(search, position) for search, position in guided], default=N_CANDIDATES)
        candidates, log_probs = self._decoder.step(self._tokens[:R], self._positions[:R], self._length, k)
        best, gained = candidates[:, 0], log_probs[:, 0]
        for row, sequence in self._guided:
            best[row], gained[row] = _guide(sequence, candidates[row].tolist(), log_probs[row].tolist(), self._eos)
        for row in self._first:
            if best[row] == self._eos:  # a translation is never empty
                best[row], gained[row] = candidates[row, 1], log_probs[row, 1]
        self._first = []
        self._log_probs[:R] += gained
        if math.isnan(np.add.reduce(gained)):
            self._fail_without_numbers(running)
        self._tokens[:R] = best
        self._positions[:R] += 1
        self._length += 1
        self._steps_to_check -= 1
        tokens: Ints = best.tolist()
        for append, token in zip(self._append, tokens, strict=True):
            append(token)
        if self._steps_to_check == 0 or self._eos in tokens:
            self._has_changed = True
            for row, sequence in enumerate(running):
                if not sequence.finished:
                    self._finish(sequence, row)
        return R

    def move(self, source_place: int, target_place: int, sequence: Sequence[Search]) -> None:
        self._has_changed = True
        self._decoder.move(source_place, target_place)
        self._decoder.copy([source_place], [target_place], len(sequence.state.token_ids))
        for array in (self._tokens, self._positions, self._log_probs):
            array[target_place] = array[source_place]

    def _look_at_all(self, running: list[Sequence[Search]]) -> None:
        """Note what the next steps need of the sequences that run now."""
        states: list[_GreedyState] = [sequence.state for sequence in running]
        self._append = [state.token_ids.append for state in states]
        lengths = [len(state.token_ids) for state in states]
        self._length = max(lengths) + 1
        self._guided, self._first, checks = [], [], []
        for row, (sequence, state, length) in enumerate(zip(running, states, lengths, strict=True)):
            search = sequence.output
            if search.prefix or search.scored or search.once_tokens or search.n_next_tokens:
                self._guided.append((row, sequence))
            elif length == 0:
                self._first.append(row)
            checks.append(state.steps_to_check(search))
        self._steps_to_check = min(checks)
        self._has_changed = False

    def _fail_without_numbers(self, running: list[Sequence[Search]]) -> None:
        self._has_changed = True
        rows = np.flatnonzero(np.isnan(self._log_probs[: len(running)]))
        fail_without_numbers(self._decoder, [running[row] for row in rows])

    def _finish(self, sequence: Sequence[Search], row: int) -> None:
        state: _GreedyState = sequence.state
        token_ids, search = state.token_ids, sequence.output
        n, limit = len(token_ids), search.max_target_tokens
        if n <= len(search.prefix):
            return
        if token_ids[-1] != self._eos and n < limit:
            is_checked = n >= MIN_RUNAWAY_TOKENS and n % REPETITION_INTERVAL == 0
            if not is_checked or not is_runaway(token_ids, len(sequence.source_ids)):
                return
        once, prefix = search.once_tokens, search.prefix
        scores = [prefix_scores(once)] * len(prefix) + state.token_scores if once or search.scored else ()
        log_prob = float(self._log_probs[row])
        reason = reason_of(token_ids, self._eos, limit)
        search.finished.append(Hypothesis(token_ids, log_prob, reason, scores, state.next_tokens))
        sequence.finished = True


def _guide(sequence: Sequence[Search], candidates: Ints, log_probs: list[float], eos: int) -> tuple[int, float]:
    """Return the next token of a guided sequence, and its log-probability."""
    search, state = sequence.output, sequence.state
    position = len(state.token_ids)
    if position < len(search.prefix):
        return search.prefix[position], 0.0
    is_first = position == len(search.prefix)
    never = eos if is_first and not search.may_end else None
    if is_first and search.n_next_tokens:
        n = search.n_next_tokens
        state.next_tokens = [*zip(candidates[:n], log_probs[:n], strict=True)]
    if not search.scored and not search.once_tokens:
        choice = int(candidates[0] == never)
    else:
        n = n_candidates(search, position)  # other sequences may need more
        written = state.token_ids
        choice, scores = chosen_once(search.once_tokens, candidates[:n], log_probs[:n], written, never)
        state.token_scores.append(scores)
    return candidates[choice], log_probs[choice]


def chosen_once(
    once: tuple[int, ...], candidates: Ints, log_probs: list[float], written: Ints, never: int | None
) -> tuple[int, TokenScores]:
    """Return the index of the best candidate that may be written, and its scores.

    Args:
        once: `Search.once_tokens`.
        written: tokens of the target so far.
        never: a token that may not be written.
    """
    barred = {token for token in once if token in written} | {never}
    choice = next(i for i, token in enumerate(candidates) if token not in barred)
    return choice, score_token(once, candidates, log_probs, log_probs[choice], barred.__contains__)


N_CANDIDATES = 2
"""Enough candidates of a row: the best may be end of sequence, which does not come first."""


def n_candidates(search: Search, position: int) -> int:
    """Return the number of candidates that are enough for the token at a position."""
    n = max(N_CANDIDATES, search.n_next_tokens if position == len(search.prefix) else 0)
    return max(WATCHED_CANDIDATES, n, N_CANDIDATES + len(search.once_tokens)) if search.once_tokens else n
