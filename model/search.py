"""Reference decoding in PyTorch: what every faster decoder must agree with.

Legend: B batch, S source, T target, V vocabulary.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from model.tokenizer import BOS_ID, EOS_ID
from model.transformer import Transformer, padding_mask


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
    model: Transformer, source: Tensor, source_lengths: Tensor, max_target_tokens: int
) -> list[Hypothesis]:
    """The most probable token at each step, with cached keys and values, for source (B, S) of lengths (B)."""
    source_mask = padding_mask(source_lengths, source.shape[1])
    memory = model.encode(source, source_mask)
    caches = model.init_caches(memory, max_target_tokens)
    ids = torch.full_like(source_lengths, BOS_ID)
    running = torch.ones_like(source_lengths, dtype=torch.bool)
    steps: list[tuple[Tensor, Tensor]] = []
    for position in range(max_target_tokens):
        log_probs = model.decode_step(ids, torch.full_like(ids, position), caches, source_mask).log_softmax(dim=-1)
        score, ids = log_probs.max(dim=-1)
        steps.append((ids, score))
        running &= ids != EOS_ID
        if not running.any():
            break
    return _collect(steps)


@torch.inference_mode()
def greedy_search_uncached(
    model: Transformer, source: Tensor, source_lengths: Tensor, max_target_tokens: int
) -> list[Hypothesis]:
    """The same by running the whole prefix through the decoder at every step: slow and obviously right."""
    source_mask = padding_mask(source_lengths, source.shape[1])
    memory = model.encode(source, source_mask)
    prefix = torch.full_like(source_lengths, BOS_ID).unsqueeze(1)  # (B, T)
    steps: list[tuple[Tensor, Tensor]] = []
    for _ in range(max_target_tokens):
        log_probs = model.logits(model.decode(prefix, memory, source_mask)[:, -1]).log_softmax(dim=-1)
        score, ids = log_probs.max(dim=-1)
        steps.append((ids, score))
        prefix = torch.cat([prefix, ids.unsqueeze(1)], dim=1)
        if (prefix == EOS_ID).any(dim=1).all():
            break
    return _collect(steps)


def _collect(steps: list[tuple[Tensor, Tensor]]) -> list[Hypothesis]:
    all_ids = torch.stack([ids for ids, _ in steps], dim=1).tolist()
    all_scores = torch.stack([scores for _, scores in steps], dim=1)
    hypotheses = []
    for ids, scores in zip(all_ids, all_scores, strict=True):
        finished = EOS_ID in ids
        length = ids.index(EOS_ID) if finished else len(ids)
        produced = length + 1 if finished else length
        hypotheses.append(Hypothesis(ids[:length], scores[:produced].mean().item(), finished))
    return hypotheses
