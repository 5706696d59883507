"""The graphs of an artifact as modules: the model's own layers, told to attend as ONNX Runtime does it best.

They share the model's weights, and are traced but never called. The graphs of the attention matrices hold nothing that
no matrix depends on: neither a vocabulary projection, nor what the last layer makes of its last matrix.

Legend: B batch, S source, T target, L cache length, H heads, D head_dim, E d_model, V vocabulary, C classes, Le encoder
layers, Ld decoder layers. In a decoder step R rows, one for each hypothesis, of N sources, each with up to W
hypotheses.
"""

from collections.abc import Sequence
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

from export.attending import Past, Rows, fused, fused_memory, fused_past, shown
from export.dense import Dense, dense, memory_projection
from export.onnx_attention import OPSET, at_most, flatten_rows, look_up, top_k
from model.networks.attention import MultiHeadAttention
from model.networks.masks import causal_mask, padding_mask
from model.networks.transformer import Transformer, TransformerClassifier, TransformerEncoder

MOST_LOOKED_UP = 0.9
"""Share of the tokens up to which those that a target may have are looked up."""

GROUP = 64
"""Tokens of which one maximum is taken, where their number allows it."""

MEMORY_STEP = "memory_step"
"""The scale of the encoder's output where bytes are made of it, a tensor of the decoder."""


Served = TypeVar("Served", bound=Transformer | TransformerClassifier | TransformerEncoder)


class Graph(nn.Module, Generic[Served]):
    """One of the graphs of a model."""

    model: Served

    def __init__(self, model: Served) -> None:
        super().__init__()
        self.model = model

    @property
    def dtype(self) -> torch.dtype:
        """Of what goes in and is no whole number."""
        return next(self.parameters()).dtype


class EncoderGraph(Graph[Transformer]):
    """Source tokens to the cross-attention keys and values of every decoder layer, and to what these are made of."""

    def forward(self, input_ids: Tensor, source_lengths: Tensor) -> tuple[Tensor, ...]:
        """input_ids (B, S) of source_lengths (B): key and value of each decoder layer in turn, each (B, S, E).

        The last is the encoder's own output, last_hidden_state (B, S, E) in float32; its rows of padding mean nothing.
        """
        memory = self.model.encoder(self.model.source_embedding(input_ids), fused(source_lengths))
        keys_and_values = projected_memory(self.model, memory)
        return *(x for pair in keys_and_values.values() for x in pair), memory.float()


def projected_memory(model: Transformer, memory: Tensor, n_parts: int | None = None) -> Past:
    """Key and value (B, S, E) of each cross-attention, made of memory (B, S, d_encoder).

    Args:
        n_parts: of all keys and values, how many from the first on; None for all.
    """
    layers, E = list(model.decoder.decoder_layers()), model.config.d_model
    projection = memory_projection(layers, getattr(model.decoder, MEMORY_STEP, None))
    parts = torch.split(projection.rows(slice(0, (n_parts or 2 * len(layers)) * E))(memory), E, dim=-1)
    return {layer.cross_attention: parts[2 * i : 2 * i + 2] for i, layer in enumerate(layers)}


class DecoderStepGraph(Graph[Transformer]):
    """One token for R rows, each at its own position, with the self-attention caches written in place.

    The hypotheses of one source share its keys and values: they are the queries of one cross-attention.
    """

    def __init__(self, model: Transformer) -> None:
        super().__init__(model)
        self.n_target_tokens = int(model.is_target_token.sum())

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
        past: dict[MultiHeadAttention, Sequence[Tensor]] = {}
        for i, layer in enumerate(self.model.decoder.decoder_layers()):
            past[layer.self_attention] = past_key_values[4 * i : 4 * i + 2]
            past[layer.cross_attention] = past_key_values[4 * i + 2 : 4 * i + 4]
        present: list[Tensor] = []
        x = self.model.embedding(input_ids, positions_of_tokens)
        x = self.model.decoder(x, fused_past(rows, past, present), fused_memory(rows, past))
        projection, tokens = self.projection()
        logits = projection(x).squeeze(1).float()
        # ONNX Runtime's LogSoftmax over all of them takes less time than the log-sum-exp that k candidates would need.
        log_probs, best = best_tokens(logits.log_softmax(dim=-1), k)
        return best if tokens is None else look_up(tokens, best), log_probs, *present

    def projection(self) -> tuple[Dense, Tensor | None]:
        """To the logits of the tokens that a target may have, with these tokens; None for all.

        Others have a bias of -inf: the few that make the number a round one, or where nearly all tokens are some, all
        others: then none is looked up, and the projection is the embedding itself.
        """
        model, V = self.model, self.model.config.vocab_size
        table = dense(model.projection)
        bias: Tensor | None = model.output_bias
        n = -(-self.n_target_tokens // GROUP) * GROUP
        looked_up = n < MOST_LOOKED_UP * V
        if self.n_target_tokens < (n if looked_up else V):
            if bias is None:
                bias = torch.zeros((), dtype=(table.weight if table.scales is None else table.scales).dtype)
            bias = torch.where(model.is_target_token, bias, float("-inf"))
        if not looked_up:
            return (table if bias is None else table.biased(bias)), None
        tokens = places_of_true(model.is_target_token, n)
        chosen = table.chosen(tokens)
        return (chosen if bias is None else chosen.biased(look_up(bias, tokens))), tokens


class ClassifierGraph(Graph[TransformerClassifier]):
    """Tokens to the logits of each class, with every token's own, and to what these are made of."""

    def forward(self, input_ids: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """input_ids (B, S) of lengths (B): logits (B, C), and token_logits (B, S, C) that are 0 in padding.

        The last is the encoder's own output, last_hidden_state (B, S, E) in float32; its rows of padding mean nothing.
        """
        hidden = self.model.encoder(self.model.embedding(input_ids), fused(lengths)).float()
        return *self.model.classify(hidden, lengths), hidden


class FirstTokenGraph(Graph[TransformerClassifier]):
    """Tokens to the logits of each class where the first token decides, and to what these are made of."""

    def forward(self, input_ids: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """input_ids (B, S) of lengths (B): logits (B, C), and last_hidden_state (B, S, E) in float32."""
        hidden = self.model.encoder(self.model.embedding(input_ids), fused(lengths)).float()
        return self.model.classify_first(hidden), hidden


class TextEncoderGraph(Graph[TransformerEncoder]):
    """Tokens to their states, which are pooled by whoever asks."""

    def forward(self, input_ids: Tensor, lengths: Tensor) -> Tensor:
        """input_ids (B, S) of lengths (B): last_hidden_state (B, S, E) in float32; rows of padding mean nothing."""
        hidden: Tensor = self.model.encoder(self.model.embedding(input_ids), fused(lengths)).float()
        return hidden


class DenseGraph(Graph[TransformerEncoder]):
    """Pooled states through the dense layers, which stay in float32: there is one row for each text."""

    @property
    def dtype(self) -> torch.dtype:
        return torch.float32

    def forward(self, *pooled: Tensor) -> Tensor:
        """pooled (B, D): (B, D')."""
        (states,) = pooled
        return self.model.project(states)


class TranslationAttentionGraph(Graph[Transformer]):
    """Source and target, teacher-forced once, to every attention matrix of encoder and decoder."""

    def forward(self, input_ids: Tensor, source_lengths: Tensor, target_ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Matrices of input_ids (B, S), of source_lengths (B), and target_ids (B, T), which begin with <s>.

        Returns:
            encoder (B, Le, H, S, S), decoder (B, Ld, H, T, T) and cross (B, Ld, H, T, S), in float32.
        """
        model, n_layers = self.model, self.model.config.n_decoder_layers
        encoder: list[Tensor] = []
        decoder: list[Tensor] = []
        cross: list[Tensor] = []
        source_mask = padding_mask(source_lengths, input_ids.shape[1])[:, None, None, :]
        memory = model.encoder(model.source_embedding(input_ids), shown(source_mask, encoder))
        past = projected_memory(model, memory, 2 * n_layers - 1)  # no matrix depends on the last values
        to_target = shown(causal_mask(target_ids.shape[1]), decoder)
        model.decoder(model.embedding(target_ids), to_target, shown(source_mask, cross, past, last=n_layers))
        return torch.stack(encoder, dim=1), torch.stack(decoder, dim=1), torch.stack(cross, dim=1)


class TextAttentionGraph(Graph[TransformerClassifier | TransformerEncoder]):
    """Tokens to every attention matrix of an encoder without a decoder."""

    def forward(self, input_ids: Tensor, lengths: Tensor) -> Tensor:
        """Matrices (B, Le, H, S, S) of input_ids (B, S), of lengths (B), in float32."""
        mask = padding_mask(lengths, input_ids.shape[1])[:, None, None, :]
        matrices: list[Tensor] = []
        self.model.encoder(
            self.model.embedding(input_ids), shown(mask, matrices, last=self.model.config.n_encoder_layers)
        )
        return torch.stack(matrices, dim=1)


def places_of_true(booleans: Tensor, n: int) -> Tensor:
    """Where the first n of booleans (V) are, in order (n): the true ones, and then others.

    The n largest, of which equal ones come in order: ONNX Runtime computes that when it loads a graph, a `NonZero` at
    every run, and with it all that is made of rows of a table.
    """
    _, places = torch.onnx.ops.symbolic_multi_out(
        "TopK",
        (booleans.float(), torch.tensor([n])),
        attrs={"axis": -1, "largest": 1, "sorted": 1},
        dtypes=(torch.float32, torch.int64),
        shapes=((n,), (n,)),
        version=OPSET,
    )
    return places


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
    """The divisor nearest to GROUP, where both selections are short."""
    return min((size for size in range(1, n_tokens + 1) if n_tokens % size == 0), key=lambda size: abs(size - GROUP))
