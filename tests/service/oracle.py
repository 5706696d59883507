"""Beam search from nothing: what every sequence must get, whoever shares its steps.

Nothing is shared with the code that it is held against: no rows, no caches, no vectors.
"""

import math
from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from service.base.contract import FinishReason
from service.engine.search import Hypothesis, Stop, TokenScores

EOS = 3

NextLogProbs = Callable[[list[int]], NDArray[Any]]
"""Of every token, after a target."""


def beam_search(
    next_log_probs: NextLogProbs,
    n_source: int,
    max_target_tokens: int,
    beam_size: int,
    length_penalty: float,
    n_best: int,
    beam_threshold: float = math.inf,
    stop: Stop = "empty",
    prefix: tuple[int, ...] = (),
    once: tuple[int, ...] = (),
    scored: bool = False,
    may_end: bool = False,
) -> list[Hypothesis]:
    """The n_best targets, best first, each of which begins with the prefix and has each of `once` once at most.
    `may_end`: a target may be the prefix alone."""

    def rank(hypothesis: Hypothesis) -> tuple[bool, float]:
        return hypothesis.finish_reason == "eos", hypothesis.log_prob / len(hypothesis.token_ids) ** length_penalty

    is_full = stop in ("full", "full_no_better") and beam_size > 1
    live: list[tuple[list[int], float]] = [([*prefix], 0.0)]
    finished: list[Hypothesis] = []
    while live:
        continued = [
            ([*target, token], total + float(log_prob))
            for target, total in live
            for token, log_prob in enumerate(next_log_probs(target))
            if (may_end or len(target) > len(prefix) or token != EOS) and not (token in once and token in target)
        ]
        continued.sort(key=lambda hypothesis: -hypothesis[1])
        best = continued[: beam_size if is_full else beam_size - len(finished)]
        least = best[min(n_best, len(best)) - 1][1] - beam_threshold
        if is_full:
            going_on = [hypothesis for hypothesis in continued if hypothesis[0][-1] != EOS][:beam_size]
            best = [
                hypothesis
                for hypothesis in continued
                if hypothesis in going_on or (hypothesis in best and hypothesis[0][-1] == EOS)
            ]
        best = [hypothesis for hypothesis in best if hypothesis[1] >= least]
        reasons = [finish_reason(target, n_source, max_target_tokens) for target, _ in best]
        live = [hypothesis for hypothesis, reason in zip(best, reasons, strict=True) if reason is None]
        finished += [
            Hypothesis(
                *hypothesis, reason, token_scores_along(next_log_probs, hypothesis[0], len(prefix), once, scored)
            )
            for hypothesis, reason in zip(best, reasons, strict=True)
            if reason
        ]
        ended = sorted((rank(hypothesis) for hypothesis in finished if hypothesis.finish_reason == "eos"), reverse=True)
        enough = beam_size if is_full else n_best
        if stop != "empty" and live and len(ended) >= enough:
            best_alive = max(total / len(target) ** length_penalty for target, total in live)
            if stop == "full" or best_alive <= ended[enough - 1][1]:
                break
    return sorted(finished, key=rank, reverse=True)[:n_best]


def token_scores_along(
    next_log_probs: NextLogProbs, target: list[int], n_prefix: int, once: tuple[int, ...], scored: bool
) -> list[TokenScores] | tuple[()]:
    """The log-probability of each token of a target, and how much less probable each of `once` was: infinitely in the
    prefix, where it had been written, and where it was none of the 16 best."""

    def of(token: int, length: int) -> float:
        log_probs = next_log_probs(target[:length])
        is_among_best = sum(log_probs > log_probs[token]) < 16
        is_open = length >= n_prefix and token not in target[:length]
        return float(log_probs[target[length]]) - float(log_probs[token]) if is_open and is_among_best else math.inf

    if not once and not scored:
        return ()
    return [
        TokenScores(
            float(next_log_probs(target[:length])[token]) if length >= n_prefix else 0.0,
            tuple(of(watched, length) for watched in once),
        )
        for length, token in enumerate(target)
    ]


def finish_reason(target: list[int], n_source: int, max_target_tokens: int) -> FinishReason | None:
    """Why a target goes no further; None if it does."""
    if target[-1] == EOS:
        return "eos"
    if len(target) >= max_target_tokens:
        return "length"
    return "repetition" if len(target) % 8 == 0 and goes_round(target, n_source) else None


def goes_round(target: list[int], n_source: int) -> bool:
    """Whether its last tokens, as many as the source has but 24 at least, are one piece four times or more often."""
    n = max(24, n_source)
    tail = target[-n:]
    return len(tail) == n and any((tail[:period] * n)[:n] == tail for period in range(1, n // 4 + 1))
