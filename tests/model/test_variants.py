"""The lecture's variants of the Transformer, each by configuration."""

from itertools import product
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from pydantic import ValidationError

from model.config import TransformerConfig
from model.decoding.search import greedy_search, greedy_search_uncached
from model.networks.attention import masked_attention
from model.networks.layers import ACTIVATIONS, FeedForward
from model.networks.masks import causal_mask, padding_mask
from model.networks.matrices import translation_matrices
from model.networks.transformer import Encoder, Transformer
from tests.model.tiny_configs import TRANSLATOR

V, E, H = (TRANSLATOR[name] for name in ("vocab_size", "d_model", "n_heads"))
S, T = 9, 7
POSITIONS = ["none", "sinusoidal", "learned", "rotary"]
ATTENTIONS: list[dict[str, Any]] = [{}, {"beta": 0.8}, {"attention": "hard"}]
RELATIVE: list[dict[str, Any]] = [
    {"relative_positions": {"buckets": 8, "max_distance": 6, "per_layer": per_layer}, "head_dim": 5, "bias": False}
    for per_layer in (False, True)
]


def config(**values: Any) -> TransformerConfig:
    return TransformerConfig.model_validate(TRANSLATOR | values)


def build(**values: Any) -> Transformer:
    return Transformer(config(**values)).eval()


def encoded(model: Transformer, ids: torch.Tensor) -> torch.Tensor:
    return model.encode(ids, torch.ones_like(ids, dtype=torch.bool))


@pytest.mark.parametrize("positions", POSITIONS)
@torch.inference_mode()
def test_only_without_positions_an_encoder_sees_a_set(positions: str) -> None:
    """Permuted tokens have permuted states: attention alone does not see their order."""
    model = build(positions=positions)
    ids, order = torch.randperm(V)[:S].unsqueeze(0), torch.randperm(S)
    same = torch.allclose(encoded(model, ids)[:, order], encoded(model, ids[:, order]), atol=1e-5)
    assert same == (positions == "none")


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("attention", ATTENTIONS, ids=str)
@pytest.mark.parametrize("d_encoder", [None, 36])
def test_cached_search_equals_uncached_search(positions: str, attention: dict[str, Any], d_encoder: int | None) -> None:
    model = build(positions=positions, d_encoder=d_encoder, activation="swiglu", norm="pre", **attention)
    torch.nn.init.normal_(model.embedding.tokens.weight, std=0.5)
    source, lengths = torch.randint(4, V, (4, S)), torch.tensor([S, 5, 1, 7])
    cached = greedy_search(model, source, lengths, max_target_tokens=12)
    uncached = greedy_search_uncached(model, source, lengths, max_target_tokens=12)
    assert [h.ids for h in cached] == [h.ids for h in uncached]
    assert [h.score for h in cached] == pytest.approx([h.score for h in uncached], abs=1e-5)


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("attention", ATTENTIONS, ids=str)
@torch.inference_mode()
def test_padding_and_the_future_are_never_attended_to(positions: str, attention: dict[str, Any]) -> None:
    model, lengths = build(positions=positions, **attention), torch.tensor([S, 1, 4])
    matrices = translation_matrices(model, torch.randint(4, V, (3, S)), lengths, torch.randint(4, V, (3, T)))
    padding = ~padding_mask(lengths, S)[:, None, None, None, :]
    for kind in (matrices.encoder, matrices.cross):
        assert torch.all(kind.masked_select(padding) == 0)
    assert torch.all(matrices.decoder.triu(1) == 0)
    for kind in (matrices.encoder, matrices.decoder, matrices.cross):
        torch.testing.assert_close(kind.sum(dim=-1), torch.ones(kind.shape[:-1]))
        one_hot = bool(torch.all((kind == 0) | (kind == 1)))
        assert one_hot == (attention.get("attention") == "hard")


@pytest.mark.parametrize("positions", POSITIONS)
def test_an_encoder_under_a_causal_mask_is_a_decoder_of_its_own(positions: str) -> None:
    layer = config(positions=positions)
    encoder = Encoder(2, layer).eval()
    x, changed = torch.randn(2, T, E), torch.randn(2, T, E)
    changed[:, :-1] = x[:, :-1]
    before, after = (encoder(y, masked_attention(causal_mask(T))) for y in (x, changed))
    torch.testing.assert_close(before[:, :-1], after[:, :-1])


@pytest.mark.parametrize("positions", POSITIONS)
def test_too_long_a_sequence_is_refused_with_the_numbers(positions: str) -> None:
    with pytest.raises(ValueError, match="sequence has 65 tokens; the limit is 64"):
        encoded(build(positions=positions), torch.ones(1, 65, dtype=torch.long))


def test_learned_positions_are_trained_and_kept() -> None:
    model = build(positions="learned")
    model(torch.randint(4, V, (1, S)), torch.tensor([S]), torch.randint(4, V, (1, T))).sum().backward()
    table = dict(model.named_parameters())["embedding.encoding"]
    assert table.grad is not None
    assert torch.all(table.grad[:S].abs().sum(dim=-1) > 0)
    assert torch.all(table.grad[S:] == 0)
    assert not {"embedding.encoding"} & build(positions="sinusoidal").state_dict().keys()


def test_an_encoder_of_another_width_has_an_embedding_of_its_own() -> None:
    model = build(d_encoder=36)
    source, mask = torch.randint(4, V, (2, S)), torch.ones(2, S, dtype=torch.bool)
    assert model.encode(source, mask).shape == (2, S, 36)
    assert model(source, torch.tensor([S, 4]), torch.randint(4, V, (2, T))).shape == (2, T, E)
    caches = model.init_caches(model.encode(source, mask), 8).attention
    of_source = [caches[layer.cross_attention].key.shape for layer in model.decoder.decoder_layers()]
    assert of_source == [(2, H, S, E // H)] * 2
    assert model.source_embedding is not model.embedding
    shared = build()
    assert shared.source_embedding is shared.embedding


@torch.inference_mode()
def test_feed_forward_networks_are_their_formulas() -> None:
    x = torch.randn(2, T, E)
    relu, gelu, swiglu = (FeedForward(E, 40, activation) for activation in ("relu", "gelu", "swiglu"))
    torch.testing.assert_close(relu(x), relu.output(relu.hidden(x).clamp(min=0)))
    hidden = gelu.hidden(x)
    torch.testing.assert_close(gelu(x), gelu.output(hidden * (1 + torch.erf(hidden / 2**0.5)) / 2))
    W, U = swiglu.hidden.weight.split(40)
    b, c = swiglu.hidden.bias.split(40)
    gate, value = F.linear(x, W, b), F.linear(x, U, c)
    torch.testing.assert_close(swiglu(x), swiglu.output(gate * torch.sigmoid(gate) * value))
    for name, activate in {"reglu": torch.relu, "geglu": F.gelu}.items():
        swiglu.activate = ACTIVATIONS[name]
        torch.testing.assert_close(swiglu(x), swiglu.output(activate(gate) * value))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"positions": "rotary", "d_model": 21}, "`d_model` / `n_heads` is 7; .* an even number"),
        ({"positions": "rotary", "d_encoder": 15}, "`d_encoder` / `n_heads` is 5; .* an even number"),
        ({"n_heads": 5}, "`d_model` is 24; it must be a multiple of `n_heads`, 5"),
        ({"d_encoder": 25}, "`d_encoder` is 25; it must be a multiple of `n_heads`, 3"),
    ],
)
def test_widths_that_heads_cannot_share_are_refused_with_the_numbers(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        config(**values)


@pytest.mark.parametrize(("positions", "attention"), list(product(POSITIONS, ATTENTIONS)), ids=str)
def test_every_variant_trains(positions: str, attention: dict[str, Any]) -> None:
    model = build(positions=positions, activation="swiglu", d_encoder=36, **attention).train()
    model(torch.randint(4, V, (2, S)), torch.tensor([S, 4]), torch.randint(4, V, (2, T))).square().sum().backward()
    still = {name for name, p in model.named_parameters() if p.grad is None or not torch.any(p.grad)}
    assert not {name for name in still if not name.endswith("key.bias")}  # it raises all scores alike: no gradient


@pytest.mark.parametrize("values", RELATIVE, ids=str)
def test_cached_search_equals_uncached_search_with_biases_by_distance(values: dict[str, Any]) -> None:
    model = build(positions="none", norm="pre", norm_type="rms", activation="reglu", **values)
    torch.nn.init.normal_(model.embedding.tokens.weight, std=0.5)
    source, lengths = torch.randint(4, V, (4, S)), torch.tensor([S, 5, 1, 7])
    cached = greedy_search(model, source, lengths, max_target_tokens=12)
    uncached = greedy_search_uncached(model, source, lengths, max_target_tokens=12)
    assert [h.ids for h in cached] == [h.ids for h in uncached]
    assert [h.score for h in cached] == pytest.approx([h.score for h in uncached], abs=1e-5)


@pytest.mark.parametrize("values", RELATIVE, ids=str)
def test_biases_by_distance_tell_an_order_are_trained_and_kept(values: dict[str, Any]) -> None:
    model = build(positions="none", **values)
    ids, order = torch.randperm(V)[:S].unsqueeze(0), torch.randperm(S)
    assert not torch.allclose(encoded(model, ids)[:, order], encoded(model, ids[:, order]), atol=1e-3)
    model(ids, torch.tensor([S]), torch.randint(4, V, (1, T))).square().sum().backward()
    tables = {name: p for name, p in model.named_parameters() if "distance_biases" in name}
    n = [3, 2] if values["relative_positions"]["per_layer"] else [1, 1]
    assert len(tables) == sum(n)
    assert all(p.shape == (8, H) and torch.any(p.grad) for p in tables.values() if p.grad is not None)
    assert not [name for name in model.state_dict() if name.endswith("bias") and "output_bias" not in name]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"relative_positions": {"buckets": 6}}, "`buckets` is 6; it must be a multiple of 4"),
        ({"relative_positions": {"max_distance": 16}}, "`buckets` is 32; .* less than twice `max_distance`, 16"),
        ({"relative_positions": {}, "attention": "hard"}, "`relative_positions` need soft `attention`"),
        ({"head_dim": 7, "positions": "rotary"}, "`head_dim` is 7; rotary `positions` need an even number"),
    ],
)
def test_impossible_relative_positions_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        config(**values)
