"""The graphs of an artifact as modules: the model's own layers around the ONNX attention operators.

They share the model's weights, and are traced but never called.

Legend: B batch, S source, R decoder rows, L cache length, H heads, D head_dim, E d_model, V vocabulary, C classes.
"""

from typing import cast

import torch
from torch import Tensor, nn

from export.onnx_attention import attend, top_k, write_rows
from model.attention import MultiHeadAttention
from model.layers import DecoderLayer, EncoderLayer
from model.transformer import Decoder, Encoder, Transformer, TransformerClassifier


class EncoderGraph(nn.Module):
    """Source tokens to the cross-attention keys and values of every decoder layer."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.embedding = model.embedding
        self.encoder = model.encoder
        self.n_heads = model.config.n_heads
        # Every decoder layer projects the same memory, so all their projections are one product.
        self.memory_projection = stacked(
            [memory_projection(layer.cross_attention) for layer in decoder_layers(model.decoder)]
        )

    def forward(self, input_ids: Tensor, source_lengths: Tensor) -> tuple[Tensor, ...]:
        """input_ids (B, S) of source_lengths (B): key and value of each decoder layer in turn, each (B, H, S, D)."""
        memory = encode(self.encoder, self.embedding(input_ids), source_lengths)
        B, S, E = memory.shape
        projections = self.memory_projection(memory).split(E, dim=-1)
        return tuple(p.view(B, S, self.n_heads, -1).transpose(1, 2) for p in projections)  # (B, H, S, D)


class DecoderStepGraph(nn.Module):
    """One token for R rows, each at its own position, with the self-attention caches written in place."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.embedding = model.embedding
        self.decoder = model.decoder
        self.vocabulary_logits = model.logits
        self.queries = nn.ModuleList(query_projection(layer.cross_attention) for layer in decoder_layers(model.decoder))

    def forward(
        self, input_ids: Tensor, positions: Tensor, source_lengths: Tensor, k: Tensor, *past_key_values: Tensor
    ) -> tuple[Tensor, ...]:
        """The k best next tokens of each row.

        Args:
            input_ids: (R, 1), the tokens just chosen.
            positions: (R), where each is written, counted from 0.
            source_lengths: (R).
            k: (1), how many candidates.
            past_key_values: per layer decoder.key, decoder.value (R, H, L, D), encoder.key, encoder.value (R, H, S, D).

        Returns:
            token_ids (R, k), log_probs (R, k) falling and in float32, then each layer's written decoder.key and .value.
        """
        x = self.embedding(input_ids, positions.unsqueeze(1))
        present: list[Tensor] = []
        for i, (layer, query) in enumerate(zip(decoder_layers(self.decoder), self.queries, strict=True)):
            cache = past_key_values[4 * i : 4 * i + 4]
            x, *written = decode_layer(layer, query, x, positions, source_lengths, *cache)
            present += written
        logits = self.vocabulary_logits(self.decoder.final_norm(x)).squeeze(1).float()
        # ONNX Runtime's LogSoftmax over all of V takes less time than the log-sum-exp that k candidates would need.
        log_probs, token_ids = top_k(logits.log_softmax(dim=-1), k)
        return token_ids, log_probs, *present


class ClassifierGraph(nn.Module):
    """Tokens to the logits of each class, with every token's own."""

    def __init__(self, model: TransformerClassifier) -> None:
        super().__init__()
        self.embedding = model.embedding
        self.encoder = model.encoder
        self.output = model.output
        self.n_grams = model.n_grams
        self.classify = model.classify

    def forward(self, input_ids: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """input_ids (B, S) of lengths (B): logits (B, C), and token_logits (B, S, C) that are 0 in padding."""
        hidden = encode(self.encoder, self.embedding(input_ids), lengths)
        return self.classify(hidden.float(), input_ids, lengths)


def encode(encoder: Encoder, x: Tensor, lengths: Tensor) -> Tensor:
    """x (B, S, E) of lengths (B) through the encoder: (B, S, E)."""
    for layer in encoder.layers:
        x = encode_layer(cast(EncoderLayer, layer), x, lengths)
    hidden: Tensor = encoder.final_norm(x)
    return hidden


def encode_layer(layer: EncoderLayer, x: Tensor, lengths: Tensor) -> Tensor:
    """x (B, S, E) of lengths (B) through one encoder layer: (B, S, E)."""
    attention = layer.self_attention

    def attend_to_itself(y: Tensor) -> Tensor:
        q, k, v = attention.input(y).chunk(3, dim=-1)
        output: Tensor = attention.output(attend(q, k, v, lengths, attention.n_heads))
        return output

    x = layer.add_norm_self(x, attend_to_itself)
    output: Tensor = layer.add_norm_feed_forward(x, layer.feed_forward)
    return output


def decode_layer(
    layer: DecoderLayer,
    query: nn.Module,
    x: Tensor,
    positions: Tensor,
    source_lengths: Tensor,
    key: Tensor,
    value: Tensor,
    memory_key: Tensor,
    memory_value: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """x (R, 1, E) through one decoder layer: (R, 1, E), and the layer's self-attention key and value, written.

    A single token's heads need no transposition: (R, 1, H * D) and (R, H, 1, D) are the same numbers in the same order.
    """
    E, H, D = layer.self_attention.d_model, layer.self_attention.n_heads, layer.self_attention.head_dim

    def attend_to_past(y: Tensor) -> Tensor:
        nonlocal key, value
        q, k, v = layer.self_attention.input(y).view(-1, 3 * H, 1, D).chunk(3, dim=1)
        key, value = write_rows(key, k, positions), write_rows(value, v, positions)
        context = attend(q, key, value, positions + 1, H)
        output: Tensor = layer.self_attention.output(context.view(-1, 1, E))
        return output

    def attend_to_source(y: Tensor) -> Tensor:
        context = attend(query(y).view(-1, H, 1, D), memory_key, memory_value, source_lengths, H)
        output: Tensor = layer.cross_attention.output(context.view(-1, 1, E))
        return output

    x = layer.add_norm_self(x, attend_to_past)
    x = layer.add_norm_cross(x, attend_to_source)
    return layer.add_norm_feed_forward(x, layer.feed_forward), key, value


def decoder_layers(decoder: Decoder) -> list[DecoderLayer]:
    """The layers as what they are: a ModuleList forgets it."""
    return [cast(DecoderLayer, layer) for layer in decoder.layers]


def query_projection(attention: MultiHeadAttention) -> nn.Linear:
    """The query's part of the stacked projection."""
    return linear(attention.input.weight[: attention.d_model], attention.input.bias[: attention.d_model])


def memory_projection(attention: MultiHeadAttention) -> nn.Linear:
    """The key's and the value's part of the stacked projection."""
    return linear(attention.input.weight[attention.d_model :], attention.input.bias[attention.d_model :])


def stacked(projections: list[nn.Linear]) -> nn.Linear:
    """Several projections of one input as one product."""
    return linear(torch.cat([p.weight for p in projections]), torch.cat([p.bias for p in projections]))


def linear(weight: Tensor, bias: Tensor) -> nn.Linear:
    """A dense layer of the given weight (out, in) and bias (out)."""
    layer = nn.Linear(weight.shape[1], weight.shape[0], device="meta")
    layer.weight, layer.bias = nn.Parameter(weight.detach()), nn.Parameter(bias.detach())
    return layer
