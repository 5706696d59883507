import torch

from model.config import RegionConfig
from model.networks.regions import RegionLogits

V, C, D, F = 50, 3, 8, 13
LENGTHS = torch.tensor([11, 5, 1, 8])


def regions() -> RegionLogits:
    torch.manual_seed(1)
    return RegionLogits(V, C, RegionConfig(width=D, detectors=F)).eval()


def padded(padding: int) -> torch.Tensor:
    ids = torch.randint(1, V, (len(LENGTHS), 11), generator=torch.Generator().manual_seed(2))
    return torch.where(torch.arange(11) < LENGTHS.unsqueeze(1), ids, padding)


def test_a_region_is_what_its_tokens_add_up_to() -> None:
    embedding, ids = regions().embedding, padded(0)
    torch.nn.init.normal_(embedding.bias)
    vectors = embedding(ids, LENGTHS)
    for row, length in enumerate(LENGTHS.tolist()):
        for i in range(11):
            near = ids[row, max(0, i - 2) : min(i + 3, length)]
            expected = torch.relu(embedding.tokens(near).sum(dim=0) + embedding.bias) if i < length else torch.zeros(D)
            torch.testing.assert_close(vectors[row, i], expected)


def test_a_texts_logits_are_the_mean_of_its_tokens() -> None:
    model = regions()
    token_logits = model(padded(0), LENGTHS)
    torch.testing.assert_close(token_logits.sum(dim=1) / LENGTHS.unsqueeze(1), model.pooled(padded(0), LENGTHS))


def test_what_is_in_padding_changes_nothing() -> None:
    model = regions()
    together = model(padded(V - 1), LENGTHS)
    torch.testing.assert_close(together, model(padded(0), LENGTHS))
    for row, length in enumerate(LENGTHS.tolist()):
        alone = model(padded(0)[row : row + 1, :length], LENGTHS[row : row + 1])
        torch.testing.assert_close(together[row, :length], alone[0])
        assert not together[row, length:].any()


def test_a_detectors_part_goes_to_the_region_that_it_found_in_equal_shares() -> None:
    model = regions()
    model.output.weight.data = torch.zeros(C, F)
    model.output.weight.data[1, 4] = 1.0
    ids = torch.tensor([[7, 8, 9, 7, 8, 9, 7, 8, 9, 7, 8, 9]])  # the same three regions, but at the ends
    length = torch.tensor([ids.shape[1]])
    found = model.detect(model.directions(ids, length), ids, length)[0]
    logits = model(ids, length)[0, :, 1]
    winners = found[:, 4] == found[:, 4].max()
    strongest = found.amax(dim=0)
    part = strongest[4] / (1 + strongest.square().sum()).sqrt()
    torch.testing.assert_close(logits, torch.where(winners, part * length / winners.sum(), 0.0))


def test_the_strongest_regions_alone_have_gradients() -> None:
    """As if all that detectors see had been kept, and its maximum taken."""
    model, ids = regions(), padded(0)
    model.embedding.requires_grad_(False)
    targets = torch.tensor([0, 2, 1, 1])

    def gradients(logits: torch.Tensor) -> dict[str, torch.Tensor]:
        model.zero_grad()
        torch.nn.functional.cross_entropy(logits, targets).backward()
        return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}

    found = model.detect(model.directions(ids, LENGTHS), ids, LENGTHS).amax(dim=1)
    all_of_them = gradients(model.output(found * torch.rsqrt(1 + found.square().sum(dim=1, keepdim=True))))
    assert {"detectors.weight", "labelled_embedding.tokens.weight"} <= all_of_them.keys()
    torch.testing.assert_close(gradients(model.pooled(ids, LENGTHS)), all_of_them)


def test_logits_are_bounded_however_much_detectors_find() -> None:
    model = regions()
    model.detectors.weight.data *= 1000
    bound = model.output.weight.norm(dim=1)
    assert (model.pooled(padded(0), LENGTHS).abs() <= bound).all()
