"""Beam search in PyTorch, which every faster one must agree with."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from model.config import RecurrentConfig
from model.decoding.search import Candidate, beam_search, greedy_search_uncached
from model.networks.transformer import Transformer
from model.tokenizer import BOS_ID, EOS_ID
from tests.model.tiny_configs import RECURRENT

LIMIT = 12
SOURCES = [torch.arange(4, 4 + length) for length in range(1, 11)]


def sources(n: int) -> list[Tensor]:
    return [torch.randint(4, 50, (length,)) for length in torch.randint(1, 10, (n,)).tolist()]


def log_probs_of(model: Transformer, source: Tensor, targets: list[list[int]]) -> list[float]:
    """Score whole targets of one length at once."""
    B, target = len(targets), torch.tensor(targets)  # (B, T)
    inputs = torch.cat([torch.full((B, 1), BOS_ID), target[:, :-1]], dim=1)
    hidden = model(source.expand(B, -1), torch.full((B,), len(source)), inputs)
    log_probs = model.logits(hidden).log_softmax(dim=-1)
    found: list[float] = log_probs.gather(2, target.unsqueeze(2)).sum(dim=(1, 2)).tolist()
    return found


@torch.inference_mode()
def test_a_beam_of_one_is_greedy_search(transformer: Transformer) -> None:
    for source in sources(8):
        [greedy] = greedy_search_uncached(transformer, source.unsqueeze(0), torch.tensor([len(source)]), LIMIT)
        [found] = beam_search(transformer, source, LIMIT, beam_size=1)
        assert found.ids == [*greedy.ids, *([EOS_ID] if greedy.finished else [])]
        assert found.log_prob / len(found.ids) == pytest.approx(greedy.score, abs=1e-5)
        assert found.finish_reason == ("eos" if greedy.finished else "length")


@torch.inference_mode()
def test_a_wider_beam_finds_more_probable_targets(transformer: Transformer) -> None:
    """The sum over sources is compared, not each one."""
    found = {
        beam_size: [
            max(c.log_prob for c in beam_search(transformer, source, LIMIT, beam_size, 0.0, n_best=beam_size))
            for source in SOURCES
        ]
        for beam_size in (1, 2, 6)
    }
    assert sum(found[1]) < sum(found[2]) < sum(found[6])


@torch.inference_mode()
def test_a_beam_as_wide_as_the_vocabulary_finds_the_best_of_all_targets_of_two_tokens(transformer: Transformer) -> None:
    V = transformer.config.vocab_size
    [source] = sources(1)
    found = beam_search(transformer, source, 2, beam_size=V, length_penalty=0.0, n_best=V)
    pairs = [[first, second] for first in range(V) if first != EOS_ID for second in range(V)]
    log_probs = dict(zip(map(tuple, pairs), log_probs_of(transformer, source, pairs), strict=True))
    best = sorted(pairs, key=lambda pair: -log_probs[tuple(pair)])[:V]
    assert sorted(candidate.ids for candidate in found) == sorted(best)
    assert [c.log_prob for c in found] == pytest.approx([log_probs[tuple(c.ids)] for c in found], abs=1e-4)
    ranks = [(candidate.ids[-1] == EOS_ID, candidate.log_prob) for candidate in found]
    assert ranks == sorted(ranks, reverse=True)


@torch.inference_mode()
def test_fewer_are_asked_for_fewer_come_and_they_are_the_best(transformer: Transformer) -> None:
    [source] = sources(1)
    found = beam_search(transformer, source, LIMIT, beam_size=5, n_best=5)
    assert len({tuple(candidate.ids) for candidate in found}) == 5
    assert [len(beam_search(transformer, source, LIMIT, 5, n_best=n)) for n in (1, 3)] == [1, 3]


class Scripted:
    """Model that continues every target by the same script, for any source."""

    config = RecurrentConfig.model_validate(RECURRENT)

    def __init__(self, script: list[int]) -> None:
        self._script = script

    def encode(self, source: Tensor, source_mask: Tensor) -> Tensor:
        return source

    def shortlists(self, source: Tensor, source_lengths: Tensor) -> None:
        return None

    def decode(self, target: Tensor, memory: Tensor, source_mask: Tensor) -> Tensor:
        places = torch.arange(target.shape[1])
        return torch.tensor(self._script)[places].expand(target.shape)  # (B, T)

    def logits(self, next_tokens: Tensor) -> Tensor:
        return 100 * nn.functional.one_hot(next_tokens, 50).float()


def search_scripted(script: list[int], n_source: int) -> Candidate:
    model: Any = Scripted(script)
    [found] = beam_search(model, torch.full((n_source,), 4), 200, beam_size=1)
    return found


@pytest.mark.parametrize("period", [1, 3, 6])
@pytest.mark.parametrize(("n_source", "n_target"), [(2, 24), (24, 24), (25, 32), (40, 40)])
def test_a_target_that_goes_round_in_circles_is_ended_as_soon_as_it_is_seen(
    period: int, n_source: int, n_target: int
) -> None:
    circle = [5 + i % period for i in range(200)]
    found = search_scripted(circle, n_source)
    assert (found.ids, found.finish_reason) == (circle[:n_target], "repetition")


def test_a_target_that_only_begins_in_circles_goes_on() -> None:
    script = [*[7, 8] * 11, 9, 10, *[7, 8] * 10, EOS_ID]
    found = search_scripted(script, n_source=2)
    assert (found.ids, found.finish_reason) == (script, "eos")
