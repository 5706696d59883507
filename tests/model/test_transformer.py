import pytest
import torch

from model.decoding.search import greedy_search, greedy_search_uncached
from model.networks.attention import MultiHeadAttention
from model.networks.masks import padding_mask
from model.networks.transformer import Transformer, TransformerClassifier


def test_padding_never_changes_what_a_source_is_encoded_to(transformer: Transformer) -> None:
    alone = torch.randint(4, 50, (1, 6))
    padded = torch.cat([alone, torch.randint(4, 50, (1, 5))], dim=1)
    memory = transformer.encode(alone, padding_mask(torch.tensor([6]), 6))
    padded_memory = transformer.encode(padded, padding_mask(torch.tensor([6]), 11))
    torch.testing.assert_close(padded_memory[:, :6], memory)


def test_a_target_token_sees_nothing_of_the_tokens_after_it(transformer: Transformer) -> None:
    source, lengths = torch.randint(4, 50, (2, 6)), torch.tensor([6, 4])
    target = torch.randint(4, 50, (2, 5))
    changed = target.clone()
    changed[:, -1] = (changed[:, -1] + 1) % 50
    before, after = (transformer(source, lengths, y) for y in (target, changed))
    torch.testing.assert_close(before[:, :-1], after[:, :-1])


def test_cached_search_equals_uncached_search(transformer: Transformer) -> None:
    source, lengths = torch.randint(4, 50, (4, 9)), torch.tensor([9, 5, 1, 7])
    cached = greedy_search(transformer, source, lengths, max_target_tokens=12)
    uncached = greedy_search_uncached(transformer, source, lengths, max_target_tokens=12)
    assert [h.ids for h in cached] == [h.ids for h in uncached]
    assert [h.finished for h in cached] == [h.finished for h in uncached]
    assert [h.score for h in cached] == pytest.approx([h.score for h in uncached], abs=1e-5)


def test_batched_search_equals_search_alone(transformer: Transformer) -> None:
    source, lengths = torch.randint(4, 50, (4, 9)), torch.tensor([9, 5, 1, 7])
    together = greedy_search(transformer, source, lengths, max_target_tokens=12)
    for i, length in enumerate(lengths.tolist()):
        [alone] = greedy_search(transformer, source[i : i + 1, :length], lengths[i : i + 1], max_target_tokens=12)
        assert alone.ids == together[i].ids


def test_each_row_may_begin_with_a_prefix_of_its_own(transformer: Transformer) -> None:
    source, lengths = torch.randint(4, 50, (2, 9)), torch.tensor([9, 5])
    prefixes = [(7, 8), (9, 10)]
    together = greedy_search(transformer, source, lengths, 12, prefixes)
    for i, prefix in enumerate(prefixes):
        [alone] = greedy_search(transformer, source[i : i + 1], lengths[i : i + 1], 12, prefix)
        assert alone.ids == together[i].ids
        assert tuple(alone.ids[:2]) == prefix


def test_rows_at_different_positions_share_a_step(transformer: Transformer) -> None:
    source, lengths = torch.randint(4, 50, (2, 6)), torch.tensor([6, 4])
    mask = padding_mask(lengths, 6)
    target = torch.randint(4, 50, (2, 5))
    expected = transformer.logits(transformer.decode(target, transformer.encode(source, mask), mask))
    caches = transformer.init_caches(transformer.encode(source, mask), cache_length=8)
    for position in range(2):  # Row 1 starts two steps late; row 0 repeats nothing of what it wrote.
        transformer.decode_step(target[:, position], torch.tensor([position, 0]), caches, mask)
    for position in range(2, 5):
        positions = torch.tensor([position, position - 2])
        logits = transformer.decode_step(target[torch.arange(2), positions], positions, caches, mask)
        torch.testing.assert_close(logits, expected[torch.arange(2), positions])


def test_fused_and_unfused_attention_give_the_same_model(transformer: Transformer) -> None:
    source, lengths, target = torch.randint(4, 50, (2, 6)), torch.tensor([6, 4]), torch.randint(4, 50, (2, 5))
    fused = transformer(source, lengths, target)
    for module in transformer.modules():
        if isinstance(module, MultiHeadAttention):
            module.fused = False
    torch.testing.assert_close(transformer(source, lengths, target), fused)


def test_padding_is_never_pooled(classifier: TransformerClassifier) -> None:
    ids = torch.randint(4, 50, (1, 6))
    padded = torch.cat([ids, torch.randint(4, 50, (1, 5))], dim=1)
    logits, token_logits = classifier(ids, torch.tensor([6]))
    padded_logits, padded_token_logits = classifier(padded, torch.tensor([6]))
    torch.testing.assert_close(padded_logits, logits)
    torch.testing.assert_close(padded_token_logits[:, :6], token_logits)
    assert torch.all(padded_token_logits[:, 6:] == 0)


def test_padding_never_wins_a_max(classifier: TransformerClassifier) -> None:
    with torch.no_grad():
        classifier.output.bias.fill_(-100.0)  # Every real logit is far below the zeros of padding.
    logits, _ = classifier(torch.randint(4, 50, (2, 6)), torch.tensor([6, 3]))
    assert torch.all(logits < -50)


def test_a_translation_has_target_tokens_alone(transformer: Transformer) -> None:
    hidden = torch.randn(2, 3, transformer.config.d_model)
    every = transformer.logits(hidden)
    transformer.is_target_token[10:] = False
    some = transformer.logits(hidden)
    torch.testing.assert_close(some[..., :10], every[..., :10])
    assert (some[..., 10:] == float("-inf")).all()
