"""Search again if a translation lacks a slot: return to the step where it was nearest, write it, and search on."""

import math
from dataclasses import replace

from service.engine.search import Hypothesis, Search, TokenScores

MAX_LENGTH_RATIO, SPARE_TOKENS = 1.5, 8
"""A translation with the slot has at most `MAX_LENGTH_RATIO` times the length without it, plus `SPARE_TOKENS`. In
longer translations, models have invented text."""


def rewind(hypothesis: Hypothesis, search: Search) -> Search | None:
    """Return a search for a hypothesis with one more of the tokens in `search.once_tokens`, some of which are missing.
    It begins with the tokens of this hypothesis before the step where a missing token was nearest to the chosen token,
    and the missing token. None if a missing token was near only at the last step, or never."""
    candidates = (
        (shortfall, step, token)
        for step, token_scores in enumerate(hypothesis.token_scores[: search.max_target_tokens - 1])
        for token, shortfall in zip(search.once_tokens, token_scores.shortfalls, strict=True)
        if token not in hypothesis.token_ids
    )
    shortfall, step, token = min(candidates, default=(math.inf, 0, 0))
    if math.isinf(shortfall):
        return None
    return replace(search, prefix=(*hypothesis.token_ids[:step], token), n_best=1, finished=[])


def join_hypotheses(former: Hypothesis, search: Search) -> Hypothesis:
    """Return the best hypothesis of a search that `rewind` made of `former`, with the scores of its prefix."""
    best, step = search.best()[0], len(search.prefix) - 1
    token, before = search.prefix[-1], former.token_scores[step]
    once = zip(search.once_tokens, before.shortfalls, strict=True)
    shortfalls = tuple(math.inf if other == token else shortfall for other, shortfall in once)
    written = TokenScores(before.log_prob - before.shortfalls[search.once_tokens.index(token)], shortfalls)
    token_scores = [*former.token_scores[:step], written, *best.token_scores[step + 1 :]]
    return replace(best, log_prob=sum(scores.log_prob for scores in token_scores), token_scores=token_scores)


def is_better(later: Hypothesis, former: Hypothesis, once: tuple[int, ...]) -> bool:
    """Return whether `later` has more of the tokens in `once`, ends for the same reason, and is not much longer."""
    more = sum(token in later.token_ids for token in once) > sum(token in former.token_ids for token in once)
    as_long = len(later.token_ids) <= MAX_LENGTH_RATIO * len(former.token_ids) + SPARE_TOKENS
    return more and as_long and later.finish_reason == former.finish_reason
