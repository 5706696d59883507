"""Beam search inside continuous batching: every sequence has its own beam, and all share the decoder's steps.

Each live hypothesis is one decoder row. At every step the most probable continuations of a sequence's rows live on. A
hypothesis that ends leaves the beam, which is narrower from then on. A hypothesis that is much less probable than the
best is dropped: the cost of a step is its number of rows. With a beam of one this is greedy search. A sequence gets the
result of `beam_search` in model/decoding/search.py, whatever other sequences share its steps.

Legend: N sequences, W most live hypotheses of a sequence, R rows, k candidates of a row.
"""

import math

from service.base.contract import BeamLayout, DecoderRows, Ints
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

Target = tuple[int, "Target | None"]
"""A target as a linked list: its last token, and the target before it, which several hypotheses may share. The first
token is beginning of sequence."""
LiveHypothesis = tuple[float, int, Target]
"""The sum of a hypothesis's log-probabilities, its row, and its target."""
NO_ROW = -1
"""The row of a hypothesis that has just begun."""


class BeamSearch:
    """The `Computation` of sequences with beams: running[i] is in place i.

    The work around a step is plain Python over short lists. In numpy it took 1.6 to 3.5 times as long, because a call
    on arrays of this size costs as much as a whole hypothesis does here. `rows` is the decoder, with a row for each
    hypothesis that runs.
    """

    def __init__(self, rows: DecoderRows, bos: int, eos: int) -> None:
        self._decoder = rows
        self._bos, self._eos = bos, eos

    def warm_up(self) -> None:
        try_out(self._decoder, self._bos, self._eos, k=1)

    def encode(self, sequences: list[Sequence[Search]]) -> None:
        encode_sources(self._decoder, sequences)

    def enter(self, first_place: int, sequences: list[Sequence[Search]]) -> None:
        self._decoder.enter(first_place, [sequence.state for sequence in sequences])
        for sequence in sequences:
            sequence.state = Beam(sequence, self._bos)

    def step(self, running: list[Sequence[Search]]) -> int:
        beams: list[Beam] = [sequence.state for sequence in running]
        R = self._assign_rows(beams)
        W = max([len(beam.live) for beam in beams])
        token_ids, positions, places = [0] * R, [0] * R, [0] * R
        rows_of_sources = []
        for place, beam in enumerate(beams):
            rows = [row for _, row, _ in beam.live]
            rows_of_sources.append(rows + rows[:1] * (W - len(rows)))
            for column, (_, row, target) in enumerate(beam.live, place * W):
                token_ids[row], positions[row], places[row] = target[0], beam.length, column
        k = max([beam.n_candidates for beam in beams])
        length = max([beam.length for beam in beams]) + 1
        candidates = self._decoder.step(token_ids, positions, length, k, BeamLayout(rows_of_sources, places))
        best, log_probs = candidates[0].tolist(), candidates[1].tolist()
        if math.isnan(sum([row[0] for row in log_probs])):
            failed = [sequence for sequence in running if sequence.state.lacks_numbers(log_probs)]
            fail_without_numbers(self._decoder, failed)
        for sequence, beam in zip(running, beams, strict=True):
            sequence.finished = sequence.finished or beam.advance(best, log_probs, self._eos)
        return R

    def move(self, source_place: int, target_place: int, _sequence: Sequence[Search]) -> None:
        self._decoder.move(source_place, target_place)

    def _assign_rows(self, beams: "list[Beam]") -> int:
        """Live hypotheses get the rows from 0 on without gaps; most keep the row of their parent. Return the number of
        rows."""
        n = sum([len(beam.live) for beam in beams])
        free = [True] * n
        moving = []
        for beam in beams:
            for i, (_, row, _) in enumerate(beam.live):
                if 0 <= row < n and free[row]:
                    free[row] = False
                else:
                    moving.append((beam, i))
        if not moving:
            return n
        moves = list(zip(moving, [row for row in range(n) if free[row]], strict=True))
        written = [(beam.live[i][1], row, beam.length) for (beam, i), row in moves if beam.length > 0]
        if written:
            sources, targets, lengths = zip(*written, strict=True)
            self._decoder.copy(list(sources), list(targets), max(lengths))
        for (beam, i), row in moves:  # after the copy: if that fails, nothing has moved
            log_prob, _, target = beam.live[i]
            beam.live[i] = log_prob, row, target
        return n


class Beam:
    """The live hypotheses of one sequence.

    Attributes:
        width: most live hypotheses.
        length: number of tokens of each.
        live: the live hypotheses, best first.
    """

    def __init__(self, sequence: Sequence[Search], bos: int) -> None:
        self._search = sequence.output
        self._n_source = len(sequence.source_ids)
        self._rank_to_beat = -math.inf
        self._has_fixed_width = self._search.has_fixed_width
        self._records_scores = self._search.scored or bool(self._search.once_tokens)
        self.width = self._search.beam_size
        self.length = 0
        self.live: list[LiveHypothesis] = [(0.0, NO_ROW, (bos, None))]
        self._scores: dict[int, TokenScores] = {}
        """The scores of the last token of each target, by the target's id()."""

    @property
    def n_candidates(self) -> int:
        """The number of candidates that each row needs: one may be end of sequence, and others may be forbidden."""
        search = self._search
        enough = self.width + (self._has_fixed_width or self.length == len(search.prefix))
        return max(WATCHED_CANDIDATES, enough + len(search.once_tokens)) if search.once_tokens else enough

    def lacks_numbers(self, log_probs: list[list[float]]) -> bool:
        """Whether a live hypothesis has log-probabilities (R, k) that are not numbers."""
        return any(math.isnan(log_probs[row][0]) for _, row, _ in self.live)

    def advance(self, token_ids: list[Ints], log_probs: list[list[float]], eos: int) -> bool:
        """Continue the live hypotheses with the best of the candidates (R, k). Return True if the search has ended. The
        new hypotheses have the rows of their parents, so that several may have the same row."""
        search, live = self._search, self.live
        if self.length < len(search.prefix):
            [(total, row, target)] = live
            self.live = [(total, row, (search.prefix[self.length], target))]
            self.length += 1
            return False
        k = min(self.n_candidates, len(log_probs[live[0][1]]))  # other sequences may need more
        totals = [total + log_prob for total, row, _ in live for log_prob in log_probs[row][:k]]
        if self.length == len(search.prefix) and not search.may_end:  # a translation is never empty
            candidates = token_ids[live[0][1]][:k]
            totals = [-math.inf if token == eos else total for token, total in zip(candidates, totals, strict=True)]
        if search.once_tokens:
            self._bar_written(totals, token_ids, k)
        has_fixed_width = self._has_fixed_width
        n = 2 * self.width if has_fixed_width else self.width  # half of them may end
        best = sorted(range(len(totals)), key=totals.__getitem__, reverse=True)[:n]
        least = totals[best[: search.n_best][-1]] - search.beam_threshold
        self.length += 1
        at_limit = self.length >= search.max_target_tokens
        check_repetition = self.length >= MIN_RUNAWAY_TOKENS and self.length % REPETITION_INTERVAL == 0
        living: list[LiveHypothesis] = []
        n_going_on = 0
        for rank, i in enumerate(best):
            total = totals[i]
            if total < least or (has_fixed_width and (n_going_on == self.width or total == -math.inf)):
                break
            _, row, target = live[i // k]
            token = token_ids[row][i % k]
            if has_fixed_width:
                if token == eos and rank >= self.width:
                    continue
                n_going_on += token != eos
            longer = token, target
            if self._records_scores:
                self._watch(longer, token_ids[row][:k], log_probs[row], log_probs[row][i % k])
            if token == eos or at_limit or (check_repetition and is_runaway(tokens_of(longer), self._n_source)):
                self._end(longer, total, eos)
            else:
                living.append((total, row, longer))
        if living and living[0][0] / self.length**search.length_penalty > self._rank_to_beat:
            self.live = living
            return False
        self.live = []
        return True

    def _bar_written(self, totals: list[float], token_ids: list[Ints], k: int) -> None:
        """Forbid candidates that are among `once_tokens` and that their hypothesis has written."""
        for n, (_, row, target) in enumerate(self.live):
            written = {token for token in self._search.once_tokens if is_in(token, target)}
            for j, token in enumerate(token_ids[row][:k] if written else ()):
                if token in written:
                    totals[n * k + j] = -math.inf

    def _watch(self, target: Target, candidates: Ints, log_probs: list[float], chosen: float) -> None:
        _, before = target
        assert before is not None
        self._scores[id(target)] = score_token(
            self._search.once_tokens, candidates, log_probs, chosen, lambda token: is_in(token, before)
        )

    def _end(self, target: Target, log_prob: float, eos: int) -> None:
        token_ids = tokens_of(target)
        reason = reason_of(token_ids, eos, self._search.max_target_tokens)
        token_scores: list[TokenScores] | tuple[()] = ()
        if self._records_scores:
            of_prefix = prefix_scores(self._search.once_tokens)
            token_scores = [self._scores.get(id(node), of_prefix) for node in nodes_of(target)]
        self._search.finished.append(Hypothesis(token_ids, log_prob, reason, token_scores))
        self._rank_to_beat = self._search.rank_to_beat()
        self.width -= not self._has_fixed_width


def tokens_of(target: Target) -> list[int]:
    """Return the tokens of a target in order, without beginning of sequence."""
    tokens = []
    token, before = target
    while before is not None:
        tokens.append(token)
        token, before = before
    return tokens[::-1]


def nodes_of(target: Target) -> list[Target]:
    """Return the target up to each of its tokens, in order."""
    nodes = []
    node: Target | None = target
    while node is not None and node[1] is not None:
        nodes.append(node)
        node = node[1]
    return nodes[::-1]


def is_in(token: int, target: Target | None) -> bool:
    """Whether a target contains a token."""
    while target is not None:
        if target[0] == token:
            return True
        target = target[1]
    return False
