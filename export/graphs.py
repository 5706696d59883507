"""The graphs of an artifact as modules: the model's own layers around the ONNX attention operators.

They share the model's weights, and are traced but never called.

Legend: B batch, S source, L cache length, H heads, D head_dim, E d_model, V vocabulary, C classes. In a decoder step
R rows, one for each hypothesis, of N sources, each with up to W hypotheses.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from export.hard_attention import attend_to_one, attend_to_one_of_past
from export.onnx_attention import at_most, attend, attend_to_past, flatten_rows, look_up, top_k
from model.networks.attention import MultiHeadAttention, inverse_temperature
from model.networks.layers import DecoderLayer, EncoderLayer
from model.networks.transformer import Encoder, Transformer, TransformerClassifier


class EncoderGraph(nn.Module):
    """Source tokens to the cross-attention keys and values of every decoder layer, and to what these are made of."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.embedding = model.source_embedding
        self.encoder = model.encoder
        self.d_model = model.config.d_model
        # Every decoder layer projects the same memory, so all their projections are one product.
        self.memory_projection = stacked(
            [memory_projection(layer.cross_attention) for layer in model.decoder.decoder_layers()]
        )

    def forward(self, input_ids: Tensor, source_lengths: Tensor) -> tuple[Tensor, ...]:
        """input_ids (B, S) of source_lengths (B): key and value of each decoder layer in turn, each (B, S, E).

        The last is the encoder's own output, last_hidden_state (B, S, E) in float32; its rows of padding mean nothing.
        """
        memory = encode(self.encoder, self.embedding(input_ids), source_lengths)
        return *self.memory_projection(memory).split(self.d_model, dim=-1), memory.float()


@dataclass(frozen=True)
class Rows:
    """What a decoder step is told of its rows."""

    positions: Tensor
    """(R) int32, where each token is written, counted from 0."""
    positions_of_tokens: Tensor
    """The same as (R, 1)."""
    total_length: Tensor
    """(1) int32, the largest position and one more."""
    of_sources: Tensor
    """(N, W), the rows of each source, filled up with any row."""
    places: Tensor
    """(R), where in of_sources, flattened, each row stands."""
    source_lengths: Tensor
    """(N)."""


class DecoderStepGraph(nn.Module):
    """One token for R rows, each at its own position, with the self-attention caches written in place.

    The hypotheses of one source share its keys and values: they are the queries of one cross-attention.
    """

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.embedding = model.embedding
        self.decoder = model.decoder
        # All of them are not looked up, so that the projection is the embedding itself.
        self.target_tokens = None if model.is_target_token.all() else model.is_target_token.nonzero().squeeze(1)
        layers = list(model.decoder.decoder_layers())
        # ONNX Runtime's products of one row are fast only where they are not scaled, so the weights are.
        self.inputs = nn.ModuleList(scaled_input(layer.self_attention) for layer in layers)
        self.queries = nn.ModuleList(scaled_query(layer.cross_attention) for layer in layers)

    def forward(
        self,
        input_ids: Tensor,
        positions: Tensor,
        total_length: Tensor,
        rows_of_sources: Tensor,
        places_of_rows: Tensor,
        source_lengths: Tensor,
        k: Tensor,
        *past_key_values: Tensor,
    ) -> tuple[Tensor, ...]:
        """The k best next tokens of each row.

        Args:
            input_ids: (R, 1), the tokens just chosen.
            positions, total_length, rows_of_sources, places_of_rows, source_lengths: see `Rows`.
            k: (1), how many candidates.
            past_key_values: per layer decoder.key, decoder.value (R, H, L, D), encoder.key, encoder.value (N, S, E).

        Returns:
            token_ids (R, k), log_probs (R, k) falling and in float32, then each layer's written decoder.key and .value.
        """
        positions_of_tokens = positions.unsqueeze(1)
        rows = Rows(positions, positions_of_tokens, total_length, rows_of_sources, places_of_rows, source_lengths)
        x = self.embedding(input_ids, positions_of_tokens)
        present: list[Tensor] = []
        for i, (layer, project, query) in enumerate(
            zip(self.decoder.decoder_layers(), self.inputs, self.queries, strict=True)
        ):
            caches = past_key_values[4 * i : 4 * i + 4]
            x, *written = decode_layer(layer, project, query, x, rows, *caches)
            present += written
        table = self.embedding.tokens.weight
        projection = table if self.target_tokens is None else table.index_select(0, self.target_tokens)
        logits = F.linear(self.decoder.final_norm(x), projection).squeeze(1).float()
        # ONNX Runtime's LogSoftmax over all of them takes less time than the log-sum-exp that k candidates would need.
        log_probs, best = best_tokens(logits.log_softmax(dim=-1), k)
        return best if self.target_tokens is None else look_up(self.target_tokens, best), log_probs, *present


class ClassifierGraph(nn.Module):
    """Tokens to the logits of each class, with every token's own, and to what these are made of."""

    def __init__(self, model: TransformerClassifier) -> None:
        super().__init__()
        self.embedding = model.embedding
        self.encoder = model.encoder
        self.output = model.output
        self.n_grams, self.regions = model.n_grams, model.regions
        self.classify = model.classify

    def forward(self, input_ids: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """input_ids (B, S) of lengths (B): logits (B, C), and token_logits (B, S, C) that are 0 in padding.

        The last is the encoder's own output, last_hidden_state (B, S, E) in float32; its rows of padding mean nothing.
        """
        hidden = encode(self.encoder, self.embedding(input_ids), lengths).float()
        return *self.classify(hidden, input_ids, lengths), hidden


def encode(encoder: Encoder, x: Tensor, lengths: Tensor) -> Tensor:
    """x (B, S, E) of lengths (B) through the encoder: (B, S, E)."""
    for layer in encoder.encoder_layers():
        x = encode_layer(layer, x, lengths)
    hidden: Tensor = encoder.final_norm(x)
    return hidden


def encode_layer(layer: EncoderLayer, x: Tensor, lengths: Tensor) -> Tensor:
    """x (B, S, E) of lengths (B) through one encoder layer: (B, S, E)."""
    attention = layer.self_attention

    def attend_to_itself(y: Tensor) -> Tensor:
        if attention.hard:
            context = attention.merge_heads(attend_to_one(*attention.project_self(y), lengths))
        elif attention.rotation is not None:
            # Heads apart: side by side, ONNX Runtime takes the width of what was joined after rotation for 0.
            q, k, v = attention.project_self(y)
            context = attention.merge_heads(attend(q, k, v, lengths, attention.n_heads, attention.beta))
        else:
            q, k, v = attention.input(y).chunk(3, dim=-1)
            context = attend(q, k, v, lengths, attention.n_heads, attention.beta)
        output: Tensor = attention.output(context)
        return output

    x = layer.add_norm_self(x, attend_to_itself)
    output: Tensor = layer.add_norm_feed_forward(x, layer.feed_forward)
    return output


def decode_layer(
    layer: DecoderLayer,
    project: nn.Module,
    query: nn.Module,
    x: Tensor,
    rows: Rows,
    key: Tensor,
    value: Tensor,
    memory_key: Tensor,
    memory_value: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """x (R, 1, E) through one decoder layer: (R, 1, E), and the layer's self-attention key and value, written.

    Args:
        project, query: the input projection of self-attention and the query's of cross-attention, both scaled.
    """
    E, H = layer.self_attention.d_model, layer.self_attention.n_heads

    def attend_to_target(y: Tensor) -> Tensor:
        nonlocal key, value
        qkv = layer.self_attention.rotate(project(y), rows.positions_of_tokens)
        if layer.self_attention.hard:
            context, key, value = attend_to_one_of_past(qkv, key, value, rows.positions)
        else:
            context, key, value = attend_to_past(qkv, key, value, rows.positions, rows.total_length, H)
        output: Tensor = layer.self_attention.output(context)
        return output

    def attend_to_source(y: Tensor) -> Tensor:
        queries = look_up(query(y).view(-1, E), rows.of_sources)  # (N, W, E)
        if layer.cross_attention.hard:
            q, k, v = (layer.cross_attention.split_heads(x) for x in (queries, memory_key, memory_value))
            context = layer.cross_attention.merge_heads(attend_to_one(q, k, v, rows.source_lengths))
        else:
            context = attend(queries, memory_key, memory_value, rows.source_lengths, H, scale=1.0)
        output: Tensor = layer.cross_attention.output(look_up(context.reshape(-1, 1, E), rows.places))
        return output

    x = layer.add_norm_self(x, attend_to_target)
    x = layer.add_norm_cross(x, attend_to_source)
    return layer.add_norm_feed_forward(x, layer.feed_forward), key, value


def best_tokens(log_probs: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """The k (1) highest log_probs (R, V) of each row, falling, and their tokens: each (R, k).

    They lie in the k groups of neighbouring tokens whose maxima are highest. Maxima are cheap: with a selection from
    them and another one from those groups it takes half the time of one selection from all of V.
    """
    R, V = log_probs.shape
    size = group_size(V)
    maxima = log_probs.view(R, V // size, size).amax(dim=-1)
    _, groups = top_k(maxima, at_most(k, V // size, unknown=R))  # (R, k), or all groups
    tokens = flatten_rows(groups.unsqueeze(-1) * size + torch.arange(size))  # (R, k * size)
    best, places = top_k(log_probs.gather(1, tokens), k)
    return best, tokens.gather(1, places)


def group_size(n_tokens: int) -> int:
    """The divisor nearest to 64, where both selections are short."""
    return min((size for size in range(1, n_tokens + 1) if n_tokens % size == 0), key=lambda size: abs(size - 64))


def scaled_input(attention: MultiHeadAttention) -> nn.Linear:
    """The stacked projection with queries that need no scaling."""
    scale = torch.ones_like(attention.input.bias)
    scale[: attention.d_model] = inverse_temperature(attention.beta, attention.head_dim)
    return linear(scale.unsqueeze(1) * attention.input.weight, scale * attention.input.bias)


def scaled_query(attention: MultiHeadAttention) -> nn.Linear:
    """The query's projection, with queries that need no scaling."""
    if attention.stacked:
        whole, d = scaled_input(attention), attention.d_model
        return linear(whole.weight[:d], whole.bias[:d])
    scale = inverse_temperature(attention.beta, attention.head_dim)
    return linear(scale * attention.query.weight, scale * attention.query.bias)


def memory_projection(attention: MultiHeadAttention) -> nn.Linear:
    """The key's and the value's projections as one product."""
    if attention.stacked:
        return linear(attention.input.weight[attention.d_model :], attention.input.bias[attention.d_model :])
    return stacked([attention.key, attention.value])


def stacked(projections: list[nn.Linear]) -> nn.Linear:
    """Several projections of one input as one product."""
    return linear(torch.cat([p.weight for p in projections]), torch.cat([p.bias for p in projections]))


def linear(weight: Tensor, bias: Tensor) -> nn.Linear:
    """A dense layer of the given weight (out, in) and bias (out)."""
    layer = nn.Linear(weight.shape[1], weight.shape[0], device="meta")
    layer.weight, layer.bias = nn.Parameter(weight.detach()), nn.Parameter(bias.detach())
    return layer
