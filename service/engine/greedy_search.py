"""Greedy search inside continuous batching: each sequence has one decoder row, with the number of its place.

Its result is that of beam search with a beam of one, for less work: nothing is selected, and no hypothesis changes its
row. It has an engine of its own, because cross-attention uses another kernel for one query than for several: it takes
half the time, and its sums end in other bits. An answer must not depend on what shares its steps, so a beam of one
never shares steps with wider beams.
"""

from dataclasses import dataclass, field

from service.base.contract import DecoderRows, Ints
from service.engine.beam_search import (
    MIN_RUNAWAY_TOKENS,
    REPETITION_INTERVAL,
    WATCHED_CANDIDATES,
    Hypothesis,
    Search,
    TokenScores,
    is_runaway,
    prefix_scores,
    reason_of,
    score_token,
)
from service.engine.scheduler import Sequence


@dataclass
class _GreedyState:
    """The target of one sequence so far."""

    token_ids: list[int]
    """Tokens with beginning of sequence."""
    log_prob: float = 0.0
    token_scores: list[TokenScores] = field(default_factory=list)


class GreedySearch:
    """The `Computation` of sequences with a beam of one: running[i] is in place i and in row i.

    Args:
        rows: the decoder, with a row for each sequence that runs.
    """

    def __init__(self, rows: DecoderRows, bos: int, eos: int) -> None:
        self._decoder = rows
        self._bos, self._eos = bos, eos

    def warm_up(self) -> None:
        self._decoder.encode(0, [[self._eos]])
        self._decoder.step([self._bos], [0], [[0]], [0], 2)

    def prefill(self, first_place: int, sequences: list[Sequence[Search]]) -> None:
        self._decoder.encode(first_place, [sequence.source_ids for sequence in sequences])
        for sequence in sequences:
            sequence.state = _GreedyState([self._bos])

    def step(self, running: list[Sequence[Search]]) -> int:
        targets: list[_GreedyState] = [sequence.state for sequence in running]
        token_ids = [target.token_ids[-1] for target in targets]
        positions = [len(target.token_ids) - 1 for target in targets]
        places = list(range(len(running)))
        is_first = [
            position == len(sequence.output.prefix) for position, sequence in zip(positions, running, strict=True)
        ]
        k = max([n_candidates(sequence.output) for sequence in running]) + any(is_first)
        best, log_probs = self._decoder.step(token_ids, positions, [[place] for place in places], places, k)
        for place, (sequence, target) in enumerate(zip(running, targets, strict=True)):
            position, prefix = positions[place], sequence.output.prefix
            if position < len(prefix):
                target.token_ids.append(prefix[position])
                continue
            choice = int(is_first[place] and best[place][0] == self._eos)  # a translation is never empty
            if sequence.output.once_tokens:
                never = self._eos if is_first[place] else None
                choice, token_scores = chosen_once(
                    sequence.output.once_tokens, best[place], log_probs[place], target.token_ids, never
                )
                target.token_scores.append(token_scores)
            target.log_prob += log_probs[place][choice]
            self._append(sequence, target, best[place][choice])
        return len(running)

    def move(self, source_place: int, target_place: int, sequence: Sequence[Search]) -> None:
        self._decoder.move(source_place, target_place)
        self._decoder.copy([source_place], [target_place], len(sequence.state.token_ids) - 1)

    def _append(self, sequence: Sequence[Search], target: _GreedyState, token: int) -> None:
        target.token_ids.append(token)
        length, limit = len(target.token_ids) - 1, sequence.output.max_target_tokens
        check_repetition = length >= MIN_RUNAWAY_TOKENS and length % REPETITION_INTERVAL == 0
        has_run_away = check_repetition and is_runaway(target.token_ids[1:], len(sequence.source_ids))
        if token == self._eos or length >= limit or has_run_away:
            token_ids = target.token_ids[1:]
            reason = reason_of(token_ids, self._eos, limit)
            once, prefix = sequence.output.once_tokens, sequence.output.prefix
            token_scores = [prefix_scores(once)] * len(prefix) + target.token_scores if once else ()
            sequence.output.finished.append(Hypothesis(token_ids, target.log_prob, reason, token_scores))
            sequence.finished = True


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


def n_candidates(search: Search) -> int:
    """Return the number of candidates that are enough, without the one that replaces end of sequence at first."""
    return max(WATCHED_CANDIDATES, 1 + len(search.once_tokens)) if search.once_tokens else 1
