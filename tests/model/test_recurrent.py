"""Recurrent translators: RNN, GRU and LSTM, without attention, with it before the cell and after it."""

import itertools

import pytest
import torch

from model.config import RecurrentConfig
from model.decoding.search import beam_search, greedy_search, greedy_search_uncached
from model.networks.additive_attention import AdditiveAttention, additive_scores
from model.networks.masks import padding_mask
from model.networks.recurrent import RecurrentTranslator
from model.tokenizer import EOS_ID
from model.training.precision import usable_precision
from tests.model.tiny_configs import RECURRENT

LENGTHS = torch.tensor([9, 5, 1, 7])
KINDS = list(itertools.product(["rnn", "gru", "lstm"], ["none", "before_cell", "after_cell"]))


@pytest.fixture(params=KINDS, ids="-".join)
def translator(request: pytest.FixtureRequest) -> RecurrentTranslator:
    cell, attention = request.param
    return build(cell=cell, attention=attention)


def build(**changed: object) -> RecurrentTranslator:
    return RecurrentTranslator(RecurrentConfig.model_validate(RECURRENT | changed)).eval()


def sources() -> torch.Tensor:
    return torch.randint(4, 50, (4, 9))


def test_padding_and_neighbours_change_nothing(translator: RecurrentTranslator) -> None:
    source, target = sources(), torch.randint(4, 50, (4, 6))
    together = translator(source, LENGTHS, target)
    for i, length in enumerate(LENGTHS.tolist()):
        alone = translator(source[i : i + 1, :length], LENGTHS[i : i + 1], target[i : i + 1])
        torch.testing.assert_close(together[i : i + 1], alone)


def test_what_the_padding_holds_changes_nothing(translator: RecurrentTranslator) -> None:
    source, target = sources(), torch.randint(4, 50, (4, 6))
    other = torch.where(padding_mask(LENGTHS, 9), source, sources())
    assert torch.equal(translator(source, LENGTHS, target), translator(other, LENGTHS, target))


def test_every_token_of_the_source_matters_from_the_first_target_token_on(translator: RecurrentTranslator) -> None:
    source, target = torch.randint(4, 50, (1, 6)), torch.randint(4, 50, (1, 1))
    before = translator(source, torch.tensor([6]), target)
    for place in range(6):
        changed = source.clone()
        changed[0, place] = 4 + (changed[0, place] - 3) % 46
        assert not torch.allclose(translator(changed, torch.tensor([6]), target), before, atol=1e-6)


def test_a_target_token_sees_nothing_of_the_tokens_after_it(translator: RecurrentTranslator) -> None:
    source, target = sources(), torch.randint(4, 50, (4, 6))
    changed = target.clone()
    changed[:, -1] = (changed[:, -1] + 1) % 50
    before, after = (translator(source, LENGTHS, y) for y in (target, changed))
    torch.testing.assert_close(before[:, :-1], after[:, :-1])
    assert not torch.allclose(before[:, -1], after[:, -1])


def test_one_token_after_another_gives_what_all_at_once_give(translator: RecurrentTranslator) -> None:
    source, target = sources(), torch.randint(4, 50, (4, 6))
    mask = padding_mask(LENGTHS, 9)
    expected = translator.logits(translator(source, LENGTHS, target))
    caches = translator.init_caches(translator.encode(source, mask), cache_length=6)
    for position in range(6):
        logits = translator.decode_step(target[:, position], torch.full((4,), position), caches, mask)
        torch.testing.assert_close(logits, expected[:, position])


def test_cached_search_equals_uncached_search(translator: RecurrentTranslator) -> None:
    source = sources()
    cached = greedy_search(translator, source, LENGTHS, max_target_tokens=12)
    uncached = greedy_search_uncached(translator, source, LENGTHS, max_target_tokens=12)
    assert [h.ids for h in cached] == [h.ids for h in uncached]
    assert [h.score for h in cached] == pytest.approx([h.score for h in uncached], abs=1e-5)


def test_a_beam_of_one_is_greedy_search(translator: RecurrentTranslator) -> None:
    for row, length in zip(sources(), LENGTHS.tolist(), strict=True):
        source = row[:length]
        [greedy] = greedy_search(translator, source.unsqueeze(0), torch.tensor([length]), max_target_tokens=12)
        [found] = beam_search(translator, source, max_target_tokens=12, beam_size=1)
        assert found.ids == [*greedy.ids, *([EOS_ID] if greedy.finished else [])]
        assert found.log_prob / len(found.ids) == pytest.approx(greedy.score, abs=1e-5)


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize("attention", ["before_cell", "after_cell"])
def test_rows_of_the_attention_matrix_sum_to_one_and_padding_has_none(cell: str, attention: str) -> None:
    weights = build(cell=cell, attention=attention).attention_matrix(sources(), LENGTHS, torch.ones(4, 6).long())
    assert weights is not None
    assert weights.shape == (4, 6, 9)
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(4, 6))
    assert torch.all(weights.masked_select(~padding_mask(LENGTHS, 9).unsqueeze(1)) == 0)
    assert build(cell=cell, attention="none").attention_matrix(sources(), LENGTHS, torch.ones(4, 1).long()) is None


def test_the_decoder_with_attention_before_the_cell_is_the_lectures_algorithm() -> None:
    """s_t = tanh(W1 z_t + W2 s_(t-1) + W3 c_t), where s_(t-1) attends to the encoder's states for c_t."""
    translator = build(cell="rnn", attention="before_cell", n_decoder_layers=1)
    source, target = torch.randint(4, 50, (1, 5)), torch.randint(4, 50, (1, 4))
    length = torch.tensor([5])
    memory = translator.encode(source, padding_mask(length, 5))
    [h], embedded = memory.states, translator.embedding(target)[0]
    attention, [layer] = translator.attention, translator.decoder_layers()
    assert attention is not None
    cells = dict(layer.cells.named_parameters())
    bias = cells["bias_ih_l0"] + cells["bias_hh_l0"]
    w_1, w_3 = torch.split(cells["weight_ih_l0"], 24, dim=1)
    w_2 = cells["weight_hh_l0"]
    s, outputs, alphas = torch.tanh(translator.bridge(memory.last))[0], [], []
    for z in embedded:
        alpha = torch.stack([attention.score @ torch.tanh(attention.query(s) + attention.key(h_i)) for h_i in h])
        alphas.append(alpha.softmax(dim=0))
        c = alphas[-1] @ h
        s = torch.tanh(w_1 @ z + w_2 @ s + w_3 @ c + bias)
        outputs.append(torch.tanh(translator.output(s)))
    torch.testing.assert_close(translator(source, length, target)[0], torch.stack(outputs))
    weights = translator.attention_matrix(source, length, target)
    assert weights is not None
    torch.testing.assert_close(weights[0], torch.stack(alphas))


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
def test_what_the_state_before_attends_to_does_not_depend_on_the_token_that_is_read(cell: str) -> None:
    source, target, other = sources(), torch.full((4, 1), 4), torch.full((4, 1), 5)
    for attention, independent in (("before_cell", True), ("after_cell", False)):
        translator = build(cell=cell, attention=attention, n_decoder_layers=1)
        before, after = (translator.attention_matrix(source, LENGTHS, ids) for ids in (target, other))
        assert before is not None
        assert after is not None
        assert torch.equal(before, after) == independent


def test_additive_attention_is_its_formula() -> None:
    attention = AdditiveAttention(6)
    query, states, mask = torch.randn(2, 4, 6), torch.randn(2, 5, 6), padding_mask(torch.tensor([5, 3]), 5)
    found, _ = attention(query, attention.key(states), states, mask)
    for b, t in itertools.product(range(2), range(4)):
        scores = [
            attention.score @ torch.tanh(attention.query(query[b, t]) + attention.key(states[b, s]))
            for s in range(int(mask[b].sum()))
        ]
        weights = torch.stack(scores).softmax(dim=0)
        torch.testing.assert_close(found[b, t], sum(w * state for w, state in zip(weights, states[b])))  # noqa: B905


@pytest.mark.parametrize("rows_in_a_chunk", [0.5, 1, 2, 100])
def test_scores_in_chunks_have_the_gradients_of_the_formula(
    rows_in_a_chunk: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    B, T, S, E = 3, 4, 5, 6
    monkeypatch.setattr("model.networks.additive_attention.CHUNK", int(rows_in_a_chunk * T * S * E))
    inputs = [torch.randn(shape, requires_grad=True) for shape in ((B, T, E), (B, S, E), (E,))]
    query, key, weight = inputs
    scores, expected = additive_scores(*inputs), torch.tanh(query.unsqueeze(2) + key.unsqueeze(1)) @ weight
    torch.testing.assert_close(scores, expected)
    gradient = torch.randn(B, T, S)
    for of_scores, of_formula in zip(
        torch.autograd.grad(scores, inputs, gradient), torch.autograd.grad(expected, inputs, gradient), strict=True
    ):
        torch.testing.assert_close(of_scores, of_formula)


@pytest.mark.skipif(usable_precision("bf16-mixed") != "bf16-mixed", reason="this CPU trains in float32")
def test_mixed_precision_is_near_float32(translator: RecurrentTranslator) -> None:
    source, target = sources(), torch.randint(4, 50, (4, 6))
    with torch.autocast("cpu", torch.bfloat16):
        mixed = translator(source, LENGTHS, target)
        mixed.float().sum().backward()
    torch.testing.assert_close(mixed.float(), translator(source, LENGTHS, target), atol=0.05, rtol=0.05)
    assert all(parameter.grad is not None for parameter in translator.parameters())
