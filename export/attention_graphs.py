"""The graphs of the attention matrices: the model's own layers around attention that is not fused.

They share the model's weights, and hold nothing that no matrix depends on: neither a vocabulary projection, nor what
the last layer makes of its last matrix.

Legend: B batch, S source, T target, H heads, D head_dim, E d_model, Le encoder layers, Ld decoder layers.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from export.graphs import linear, memory_projection, scaled_input, scaled_query, stacked
from export.onnx_attention import merge_heads, product, split_heads
from model.networks.attention import MultiHeadAttention, one_hot_of_highest
from model.networks.layers import DecoderLayer, EncoderLayer
from model.networks.masks import causal_mask, padding_mask
from model.networks.transformer import Transformer, TransformerClassifier


class TranslationAttentionGraph(nn.Module):
    """Source and target, teacher-forced once, to every attention matrix of encoder and decoder."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.embedding = model.embedding
        self.encoder_embedding = model.encoder_embedding
        self.encoder = model.encoder
        self.decoder = model.decoder
        encoder, decoder = model.encoder.encoder_layers(), list(model.decoder.decoder_layers())
        self.encoder_inputs = nn.ModuleList(scaled_input(layer.self_attention) for layer in encoder)
        self.decoder_inputs = nn.ModuleList(scaled_input(layer.self_attention) for layer in decoder)
        self.queries = nn.ModuleList(scaled_query(layer.cross_attention) for layer in decoder)
        projections = stacked([memory_projection(layer.cross_attention) for layer in decoder])
        self.d_model = model.config.d_model
        self.memory_projection = without_last_values(projections, self.d_model)

    def forward(self, input_ids: Tensor, source_lengths: Tensor, target_ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Matrices of input_ids (B, S), of source_lengths (B), and target_ids (B, T), which begin with <s>.

        Returns:
            encoder (B, Le, H, S, S), decoder (B, Ld, H, T, T) and cross (B, Ld, H, T, S), in float32.
        """
        source_mask = padding_mask(source_lengths, input_ids.shape[1])[:, None, None, :]
        source_embedding = self.embedding if self.encoder_embedding is None else self.encoder_embedding
        x = source_embedding(input_ids)
        encoder: list[Tensor] = []
        for encoder_layer, project in zip(self.encoder.encoder_layers(), self.encoder_inputs, strict=True):
            x = encode_layer(encoder_layer, project, x, source_mask, encoder)
        memory = self.memory_projection(self.encoder.final_norm(x)).split(self.d_model, dim=-1)

        target_mask = causal_mask(target_ids.shape[1])
        x = self.embedding(target_ids)
        decoder: list[Tensor] = []
        cross: list[Tensor] = []
        for i, (layer, project, query) in enumerate(
            zip(self.decoder.decoder_layers(), self.decoder_inputs, self.queries, strict=True)
        ):
            key_and_value = memory[2 * i : 2 * i + 2]
            x = decode_layer(layer, project, query, x, key_and_value, (target_mask, source_mask), (decoder, cross))
        return torch.stack(encoder, dim=1), torch.stack(decoder, dim=1), torch.stack(cross, dim=1)


class ClassifierAttentionGraph(nn.Module):
    """Tokens to every attention matrix of a classifier's encoder."""

    def __init__(self, model: TransformerClassifier) -> None:
        super().__init__()
        self.embedding = model.embedding
        self.encoder = model.encoder
        inputs = [scaled_input(layer.self_attention) for layer in self.encoder.encoder_layers()]
        self.inputs = nn.ModuleList([*inputs[:-1], without_last_values(inputs[-1], model.config.d_model)])

    def forward(self, input_ids: Tensor, lengths: Tensor) -> Tensor:
        """Matrices (B, Le, H, S, S) of input_ids (B, S), of lengths (B), in float32."""
        mask = padding_mask(lengths, input_ids.shape[1])[:, None, None, :]
        x = self.embedding(input_ids)
        matrices: list[Tensor] = []
        for layer, project in zip(self.encoder.encoder_layers(), self.inputs, strict=True):
            x = encode_layer(layer, project, x, mask, matrices)
        return torch.stack(matrices, dim=1)


def encode_layer(layer: EncoderLayer, project: nn.Module, x: Tensor, mask: Tensor, matrices: list[Tensor]) -> Tensor:
    """x (B, S, E) through one encoder layer: (B, S, E). Its matrix goes to the end of `matrices`.

    Args:
        project: the scaled input projection of self-attention.
    """
    x = layer.add_norm_self(x, lambda y: attend_to_itself(layer.self_attention, project(y), mask, matrices))
    output: Tensor = layer.add_norm_feed_forward(x, layer.feed_forward)
    return output


def decode_layer(
    layer: DecoderLayer,
    project: nn.Module,
    query: nn.Module,
    x: Tensor,
    memory: Sequence[Tensor],
    masks: tuple[Tensor, Tensor],
    matrices: tuple[list[Tensor], list[Tensor]],
) -> Tensor:
    """x (B, T, E) through one decoder layer: (B, T, E). Its matrices go to the ends of `matrices`.

    Args:
        project, query: the input projection of self-attention and the query's of cross-attention, both scaled.
        memory: projected key (B, S, E) and, where a matrix depends on it, value.
        masks, matrices: of self-attention and of cross-attention.
    """
    x = layer.add_norm_self(x, lambda y: attend_to_itself(layer.self_attention, project(y), masks[0], matrices[0]))
    x = layer.add_norm_cross(x, lambda y: attend(layer.cross_attention, query(y), memory, masks[1], matrices[1]))
    output: Tensor = layer.add_norm_feed_forward(x, layer.feed_forward)
    return output


def attend_to_itself(attention: MultiHeadAttention, qkv: Tensor, mask: Tensor, matrices: list[Tensor]) -> Tensor:
    """`attend` of query, key and, if a matrix depends on it, value, side by side in qkv (B, T, 3 * E or 2 * E)."""
    query, *key_and_value = torch.split(attention.rotate(qkv), attention.d_model, dim=-1)
    return attend(attention, query, key_and_value, mask, matrices)


def attend(
    attention: MultiHeadAttention,
    query: Tensor,
    key_and_value: Sequence[Tensor],
    mask: Tensor,
    matrices: list[Tensor],
) -> Tensor:
    """What an attention sublayer says (B, T, E), and its matrix (B, H, T, S) at the end of `matrices`.

    Softmax is in float32. It makes an exact 0 of a masked score, so that no column of a matrix needs to be left out.

    Args:
        query: (B, T, E), scaled.
        key_and_value: each (B, S, E); without a value no matrix depends on the sublayer, and it says nothing of use.
        mask: broadcastable to (B, H, T, S).
    """
    H = attention.n_heads
    key, *value = key_and_value
    scores = product(split_heads(query, H), split_heads(key, H, transposed=True)).float()  # (B, H, T, S)
    scores = scores.masked_fill(~mask, float("-inf"))
    weights = one_hot_of_highest(scores).float() if attention.hard else scores.softmax(dim=-1)
    matrices.append(weights)
    if not value:
        return query
    output: Tensor = attention.output(merge_heads(product(weights.to(query.dtype), split_heads(value[0], H))))
    return output


def without_last_values(projection: nn.Linear, d_model: int) -> nn.Linear:
    """A stacked projection less its last part: the values in a layer whose matrix is the last."""
    return linear(projection.weight[:-d_model], projection.bias[:-d_model])
