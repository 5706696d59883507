"""Converts a checkpoint to a CTranslate2 model, so that both engines compute the same function.

CTranslate2 has its own file format; its `TransformerSpec` is filled here, layer by layer. Nothing is approximated: with
float32 weights the translations are equal (`python -m benchmarks quality` checks it).
"""

from pathlib import Path

import numpy as np
from ctranslate2.specs import TransformerSpec
from ctranslate2.specs.attention_spec import MultiHeadAttentionSpec
from ctranslate2.specs.common_spec import LayerNormSpec, LinearSpec
from ctranslate2.specs.transformer_spec import FeedForwardSpec, TransformerDecoderSpec, TransformerEncoderSpec
from numpy.typing import NDArray
from torch import Tensor, nn

from model.networks.attention import MultiHeadAttention
from model.networks.layers import DecoderLayer, EncoderLayer, FeedForward
from model.networks.transformer import Decoder, Encoder, Transformer
from model.tokenizer import BOS, EOS, UNK

Array = NDArray[np.float32]
QUANTIZATION = {"fp32": None, "int8": "int8"}


def convert(
    model: Transformer, tokens: list[str], directory: Path, precision: str, add_source_eos: bool = False
) -> None:
    """Write a CTranslate2 model directory.

    Args:
        tokens: every token of the vocabulary, in the order of ids.
        precision: "fp32" or "int8" (CTranslate2's own quantization: one scale per output channel).
        add_source_eos: whether CTranslate2 appends </s> to sources, because the tokenizer does not.
    """
    spec = transformer_spec(model)
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    spec.config.bos_token, spec.config.eos_token, spec.config.unk_token = BOS, EOS, UNK
    spec.config.decoder_start_token = BOS
    spec.config.add_source_bos, spec.config.add_source_eos = False, add_source_eos
    spec.validate()
    spec.optimize(quantization=QUANTIZATION[precision])
    directory.mkdir(parents=True, exist_ok=True)
    spec.save(str(directory))


def transformer_spec(model: Transformer) -> TransformerSpec:
    """Fill a CTranslate2 specification with the weights of a model."""
    config = model.config
    spec = TransformerSpec.from_config(
        (config.n_encoder_layers, config.n_decoder_layers), config.n_heads, pre_norm=config.norm == "pre"
    )
    _fill_encoder(spec.encoder, model.encoder)
    _fill_decoder(spec.decoder, model.decoder)
    assert model.embedding.encoding is not None, "CTranslate2 gets the positions that are added to embeddings"
    tokens, positions = _array(model.embedding.tokens.weight), _array(model.embedding.encoding)
    for embeddings in (spec.encoder.embeddings[0], spec.decoder.embeddings, spec.decoder.projection):
        embeddings.weight = tokens  # tied, and scaled by sqrt(d_model) on the way in
    for stack in (spec.encoder, spec.decoder):
        stack.position_encodings.encodings = positions
    return spec


def _fill_encoder(spec: TransformerEncoderSpec, encoder: Encoder) -> None:
    for layer_spec, layer in zip(spec.layer, encoder.layers, strict=True):
        assert isinstance(layer, EncoderLayer)
        _fill_self_attention(layer_spec.self_attention, layer.self_attention, layer.add_norm_self.norm)
        _fill_feed_forward(layer_spec.ffn, layer.feed_forward, layer.add_norm_feed_forward.norm)
    if isinstance(encoder.final_norm, nn.LayerNorm):
        _fill_norm(spec.layer_norm, encoder.final_norm)


def _fill_decoder(spec: TransformerDecoderSpec, decoder: Decoder) -> None:
    for layer_spec, layer in zip(spec.layer, decoder.layers, strict=True):
        assert isinstance(layer, DecoderLayer)
        assert isinstance(layer.self_attention, MultiHeadAttention)
        _fill_self_attention(layer_spec.self_attention, layer.self_attention, layer.add_norm_self.norm)
        _fill_cross_attention(layer_spec.attention, layer.cross_attention, layer.add_norm_cross.norm)
        _fill_feed_forward(layer_spec.ffn, layer.feed_forward, layer.add_norm_feed_forward.norm)
    if isinstance(decoder.final_norm, nn.LayerNorm):
        _fill_norm(spec.layer_norm, decoder.final_norm)


def _fill_self_attention(spec: MultiHeadAttentionSpec, attention: MultiHeadAttention, norm: nn.Module) -> None:
    """Both sides stack q, k and v in this order in one weight (3 d_model, d_model)."""
    _fill_norm(spec.layer_norm, norm)
    _fill_linear(spec.linear[0], attention.input.weight, attention.input.bias)
    _fill_linear(spec.linear[1], attention.output.weight, attention.output.bias)


def _fill_cross_attention(spec: MultiHeadAttentionSpec, attention: MultiHeadAttention, norm: nn.Module) -> None:
    """CTranslate2 separates the query from the stacked key and value."""
    d = attention.d_model
    _fill_norm(spec.layer_norm, norm)
    _fill_linear(spec.linear[0], attention.input.weight[:d], attention.input.bias[:d])
    _fill_linear(spec.linear[1], attention.input.weight[d:], attention.input.bias[d:])
    _fill_linear(spec.linear[2], attention.output.weight, attention.output.bias)


def _fill_feed_forward(spec: FeedForwardSpec, feed_forward: FeedForward, norm: nn.Module) -> None:
    _fill_norm(spec.layer_norm, norm)
    _fill_linear(spec.linear_0, feed_forward.hidden.weight, feed_forward.hidden.bias)
    _fill_linear(spec.linear_1, feed_forward.output.weight, feed_forward.output.bias)


def _fill_linear(spec: LinearSpec, weight: Tensor, bias: Tensor) -> None:
    spec.weight, spec.bias = _array(weight), _array(bias)


def _fill_norm(spec: LayerNormSpec, norm: nn.Module) -> None:
    assert isinstance(norm, nn.LayerNorm)
    spec.gamma, spec.beta = _array(norm.weight), _array(norm.bias)


def _array(tensor: Tensor) -> Array:
    return tensor.detach().float().numpy().copy()  # CTranslate2 quantizes in place
