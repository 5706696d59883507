"""Reference decoding in PyTorch, which every faster decoder must agree with.

Legend: B batch, S source, T target, V vocabulary.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from manifest.schema import Stop
from model.networks.masks import padding_mask
from model.networks.translator import TranslationModel

Prefix = Sequence[int] | Sequence[Sequence[int]]
"""Tokens that a target begins with, or those of each of several targets."""


@dataclass(frozen=True)
class Hypothesis:
    ids: list[int]
    """Target tokens, without <s> and </s>."""
    score: float
    """Mean log-probability per target token, </s> counted where it was produced."""
    finished: bool
    """Whether </s> ended it, rather than the limit on target tokens."""


@torch.inference_mode()
def greedy_search(
    model: TranslationModel,
    source: Tensor,
    source_lengths: Tensor,
    max_target_tokens: int,
    prefix: Prefix = (),
) -> list[Hypothesis]:
    """Choose the most probable token at each step, with cached keys and values, for source (B, S) of lengths (B).

    Args:
        prefix: tokens that every target begins with, or as many for each, (B, P). Their probability does not count.
    """
    source_mask = padding_mask(source_lengths, source.shape[1])
    memory = model.encode(source, source_mask)
    caches, shortlists = model.init_caches(memory, max_target_tokens), model.shortlists(source, source_lengths)
    tokens = model.config.special_tokens
    ids = torch.full_like(source_lengths, tokens.bos)
    running = torch.ones_like(source_lengths, dtype=torch.bool)
    steps: list[tuple[Tensor, Tensor]] = []
    for position in range(max_target_tokens):
        logits = model.decode_step(ids, torch.full_like(ids, position), caches, source_mask)
        log_probs = _allowed(_log_probs(logits, shortlists), position, tokens.eos, prefix)
        score, ids = log_probs.max(dim=-1)
        steps.append((ids, score))
        running &= ids != tokens.eos
        if not running.any():
            break
    return _collect(steps, tokens.eos)


@torch.inference_mode()
def greedy_search_uncached(
    model: TranslationModel,
    source: Tensor,
    source_lengths: Tensor,
    max_target_tokens: int,
    prefix: Sequence[int] = (),
) -> list[Hypothesis]:
    """Search greedily by running the whole prefix through the decoder at every step: slow and obviously right."""
    source_mask = padding_mask(source_lengths, source.shape[1])
    memory, shortlists = model.encode(source, source_mask), model.shortlists(source, source_lengths)
    tokens = model.config.special_tokens
    target = torch.full_like(source_lengths, tokens.bos).unsqueeze(1)  # (B, T)
    steps: list[tuple[Tensor, Tensor]] = []
    for position in range(max_target_tokens):
        logits = model.logits(model.decode(target, memory, source_mask)[:, -1])
        log_probs = _allowed(_log_probs(logits, shortlists), position, tokens.eos, prefix)
        score, ids = log_probs.max(dim=-1)
        steps.append((ids, score))
        target = torch.cat([target, ids.unsqueeze(1)], dim=1)
        if (target[:, 1:] == tokens.eos).any(dim=1).all():
            break
    return _collect(steps, tokens.eos)


def _log_probs(logits: Tensor, shortlists: Tensor | None) -> Tensor:
    """Return log-probabilities (..., V) among the tokens that shortlists (..., V) allow."""
    if shortlists is not None:
        logits = logits.masked_fill(~shortlists, -math.inf)
    return logits.log_softmax(dim=-1)


def _allowed(log_probs: Tensor, position: int, eos: int, prefix: Prefix) -> Tensor:
    """Mask log-probabilities (..., V) at a position of a target: its prefix comes first, and then anything but </s>."""
    begun = torch.tensor(prefix, dtype=torch.long)  # (P), or (B, P)
    if position < begun.shape[-1]:
        tokens = begun[..., position].expand(log_probs.shape[:-1]).unsqueeze(-1)
        return torch.full_like(log_probs, -math.inf).scatter_(-1, tokens, 0.0)
    if position == begun.shape[-1]:
        log_probs[..., eos] = -math.inf
    return log_probs


def _collect(steps: list[tuple[Tensor, Tensor]], eos: int) -> list[Hypothesis]:
    all_ids = torch.stack([ids for ids, _ in steps], dim=1).tolist()
    all_scores = torch.stack([scores for _, scores in steps], dim=1)
    hypotheses = []
    for ids, scores in zip(all_ids, all_scores, strict=True):
        finished = eos in ids
        length = ids.index(eos) if finished else len(ids)
        produced = length + 1 if finished else length
        hypotheses.append(Hypothesis(ids[:length], scores[:produced].mean().item(), finished))
    return hypotheses


@dataclass(frozen=True)
class Candidate:
    """A target of beam search, complete or not."""

    ids: list[int]
    """Target tokens, with </s> if it was produced."""
    log_prob: float
    """Sum of log-probabilities of the tokens."""
    finish_reason: Literal["eos", "length", "repetition"] | None = None

    def rank(self, length_penalty: float) -> tuple[bool, float]:
        """Return a rank, higher is better: candidates with </s> first, then by log-probability over length^penalty."""
        return self.finish_reason == "eos", self.log_prob / len(self.ids) ** length_penalty


@torch.inference_mode()
def beam_search(
    model: TranslationModel,
    source: Tensor,
    max_target_tokens: int,
    beam_size: int,
    length_penalty: float = 1.0,
    n_best: int = 1,
    beam_threshold: float = math.inf,
    stop: Stop = "empty",
    prefix: Sequence[int] = (),
) -> list[Candidate]:
    """Return the n_best targets of one source (S), best first: slow and obviously right (lecture, "beam search").

    At each step every live candidate is continued by every token, and the most probable continuations stay. One that
    ends leaves the beam, which is narrower from then on; one that is less probable than the n_best-th by more than
    beam_threshold, in nats, is dropped (Freitag and Al-Onaizan 2017). The search ends when the beam is empty; with stop
    `no_better` also when n_best candidates have ended and no live one is better, at its present length, than the last
    of them. A `full` beam keeps its width; only candidates that end among the beam_size best of a step count.
    """
    tokens = model.config.special_tokens
    source_mask = torch.ones_like(source, dtype=torch.bool).unsqueeze(0)
    memory = model.encode(source.unsqueeze(0), source_mask)
    shortlists = model.shortlists(source.unsqueeze(0), torch.tensor([len(source)]))
    shortlist = None if shortlists is None else shortlists[0]
    is_full = stop in ("full", "full_no_better") and beam_size > 1
    live = [Candidate([], 0.0)]
    finished: list[Candidate] = []
    while live:
        continued: list[Candidate] = []
        for candidate in live:
            target = torch.tensor([[tokens.bos, *candidate.ids]])
            logits = model.logits(model.decode(target, memory, source_mask)[0, -1])
            log_probs = _allowed(_log_probs(logits, shortlist), len(candidate.ids), tokens.eos, prefix)
            for log_prob, token in zip(*(x.tolist() for x in log_probs.topk(beam_size + is_full)), strict=True):
                if log_prob > -math.inf:
                    continued.append(Candidate([*candidate.ids, token], candidate.log_prob + log_prob))
        continued.sort(key=lambda candidate: -candidate.log_prob)
        best = continued[: beam_size if is_full else beam_size - len(finished)]
        least = best[:n_best][-1].log_prob - beam_threshold
        if is_full:
            going_on = [candidate for candidate in continued if candidate.ids[-1] != tokens.eos][:beam_size]
            ended_now = [candidate for candidate in best if candidate.ids[-1] == tokens.eos]
            best = sorted(going_on + ended_now, key=lambda candidate: -candidate.log_prob)
        live = []
        for candidate in best:
            if candidate.log_prob < least:
                break
            reason = _finish_reason(candidate.ids, len(source), max_target_tokens, tokens.eos)
            (live if reason is None else finished).append(Candidate(candidate.ids, candidate.log_prob, reason))
        ended = sorted((c.rank(length_penalty) for c in finished if c.finish_reason == "eos"), reverse=True)
        enough = beam_size if is_full else n_best
        if stop != "empty" and len(ended) >= enough and live:
            best_alive = max(candidate.log_prob for candidate in live) / len(live[0].ids) ** length_penalty
            if stop == "full" or best_alive <= ended[enough - 1][1]:
                break
    return sorted(finished, key=lambda candidate: candidate.rank(length_penalty), reverse=True)[:n_best]


def _finish_reason(
    ids: list[int], n_source: int, max_target_tokens: int, eos: int
) -> Literal["eos", "length", "repetition"] | None:
    if ids[-1] == eos:
        return "eos"
    if len(ids) == max_target_tokens:
        return "length"
    return "repetition" if is_runaway(ids, n_source) else None


def is_runaway(ids: list[int], n_source: int) -> bool:
    """Whether a target repeats itself: its last max(24, n_source) tokens are 4 or more equal pieces.

    Checked after every eighth token. A source that repeats itself may be translated by such a target.
    """
    n = max(24, n_source)
    if len(ids) % 8 != 0 or len(ids) < n:
        return False
    tail = ids[-n:]
    return any(tail[period:] == tail[:-period] for period in range(1, n // 4 + 1))
