"""Search again if a translation lacks a slot: return to where the slot was nearest, write it, and search on."""

import math
from dataclasses import replace

from service.engine.search import Hypothesis, Search, TokenScores

MAX_LENGTH_RATIO, SPARE_TOKENS = 1.5, 8
"""Maximum length of a translation with the slot: this many times the length without it, plus this many tokens. Models
invent text in longer ones."""


def rewind(hypothesis: Hypothesis, search: Search) -> Search | None:
    """Return a search for a hypothesis with one more of the tokens in `search.once`, of which this one lacks some.

    The search begins with the tokens of this hypothesis before the step where a missing token was nearest to the chosen
    one, and that token. None if no missing token was near, but at the last step.
    """
    shortfall, step, token = min(
        (
            (shortfall, step, token)
            for step, token_scores in enumerate(hypothesis.token_scores[: search.max_target_tokens - 1])
            for token, shortfall in zip(search.once_tokens, token_scores.shortfalls, strict=True)
            if token not in hypothesis.token_ids
        ),
        default=(math.inf, 0, 0),
    )
    if math.isinf(shortfall):
        return None
    return replace(search, prefix=(*hypothesis.token_ids[:step], token), n_best=1, finished=[])


def join_hypotheses(former: Hypothesis, search: Search) -> Hypothesis:
    """Return the best hypothesis of a search that `rewind` made of `former`, with the scores of its prefix."""
    found, step = search.best()[0], len(search.prefix) - 1
    token, before = search.prefix[-1], former.token_scores[step]
    written = TokenScores(
        before.log_prob - before.shortfalls[search.once_tokens.index(token)],
        tuple(
            math.inf if once == token else shortfall
            for once, shortfall in zip(search.once_tokens, before.shortfalls, strict=True)
        ),
    )
    token_scores = [*former.token_scores[:step], written, *found.token_scores[step + 1 :]]
    return replace(found, log_prob=sum(one.log_prob for one in token_scores), token_scores=token_scores)


def is_better(later: Hypothesis, former: Hypothesis, once: tuple[int, ...]) -> bool:
    """Return whether a hypothesis has more of these tokens than another one, has the same finish reason, and is no
    longer than these tokens explain."""
    more = sum(token in later.token_ids for token in once) > sum(token in former.token_ids for token in once)
    as_long = len(later.token_ids) <= MAX_LENGTH_RATIO * len(former.token_ids) + SPARE_TOKENS
    return more and as_long and later.finish_reason == former.finish_reason
