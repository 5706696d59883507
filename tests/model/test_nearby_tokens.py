import pytest
import torch
import torch.nn.functional as F

from model.config import RegionConfig
from model.networks.regions import RegionEmbedding
from model.training import nearby_tokens
from model.training.nearby_tokens import NearbyTokens, nearby_pairs

V, D, COMMON = 50, 8, 5
LENGTHS = torch.tensor([21, 5, 1, 18])
IDS = torch.randint(0, V, (4, 21), generator=torch.Generator().manual_seed(2))


def pairs() -> list[tuple[int, int]]:
    """Of each region, by its place among all, and a token near it that is not a common one; one by one."""
    return [
        (row * IDS.shape[1] + region, int(IDS[row, near]))
        for row, length in enumerate(LENGTHS.tolist())
        for region in range(length)
        for near in range(length)
        if 2 < abs(region - near) <= 7 and IDS[row, near] >= COMMON
    ]


def nearby() -> NearbyTokens:
    torch.manual_seed(1)
    return NearbyTokens(RegionEmbedding(V, RegionConfig(width=D, detectors=1)), torch.arange(V) >= COMMON)


def test_tokens_are_near_that_are_within_reach_and_outside_the_region() -> None:
    rows, columns = nearby_pairs(torch.where(IDS >= COMMON, IDS, -1), LENGTHS, radius=2)
    assert sorted(zip(rows.tolist(), columns.tolist(), strict=True)) == sorted(pairs())
    assert (rows.diff() >= 0).all()


def test_loss_and_gradients_are_those_of_cross_entropy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearby_tokens, "CHUNK", 16)
    model = nearby()
    torch.nn.init.normal_(model.bias)
    loss = model(IDS, LENGTHS)
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    rows, targets = (torch.tensor(column) for column in zip(*pairs(), strict=True))
    logits = model.region_embedding(IDS, LENGTHS).flatten(0, 1) @ model.embedding.weight.T + model.bias
    expected = F.cross_entropy(logits[rows, COMMON:], targets - COMMON)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(gradients, torch.autograd.grad(expected, list(model.parameters())))


def test_candidates_are_always_as_many_and_those_of_the_batch_are_among_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearby_tokens, "MOST_CANDIDATES", 20)
    model = nearby()
    few = torch.tensor([[7, 8, 9, 1, 2]])
    assert {7, 8, 9} <= set(model._candidates(few).tolist())
    for ids in (few, IDS):
        candidates = model._candidates(ids)
        assert len(candidates) == len(candidates.unique()) == 20
        assert candidates.min() >= COMMON


def test_texts_too_short_to_have_anything_near_cost_nothing() -> None:
    assert nearby()(IDS[:, :2], torch.tensor([2, 1, 1, 2])).item() == 0
