"""The graphs of an artifact as modules: the model's own layers, with attention that ONNX Runtime computes fast.

They share the model's weights, and are traced but never called. The graphs that return attention matrices leave out
everything that no matrix depends on: the vocabulary projection, and the output of the last layer's last attention.

Legend: B batch, S source, T target, L cache length, H heads, D head_dim, E d_model, V vocabulary, C classes, Le encoder
layers, Ld decoder layers. In a decoder step R rows, one for each hypothesis, of N sources, each with up to W
hypotheses.
"""

from collections.abc import Sequence
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

from export.attending import Past, RowLayout, cross_attention, decoder_attention, encoder_attention, visible_attention
from export.dense import Dense, dense, memory_projection
from export.onnx_attention import OPSET, at_most, flatten_rows, look_up, places_of_keys, top_k
from export.recurrence import all_states, next_states
from model.networks.attention import Biases, MultiHeadAttention
from model.networks.masks import causal_mask, distances, padding_mask
from model.networks.ssru import SSRU
from model.networks.transformer import Encoder, Transformer, TransformerClassifier, TransformerEncoder, reading_target

MAX_LOOKED_UP_SHARE = 0.9
"""Largest share of the vocabulary for which the rows of possible target tokens are looked up."""
GROUP_SIZE = 64
"""Tokens per group, of which one maximum is taken; group sizes are as near to it as the vocabulary allows."""
MEMORY_STEP = "memory_step"
"""Buffer of the decoder with the scale at which the encoder output becomes bytes."""
ModelT = TypeVar("ModelT", bound=Transformer | TransformerClassifier | TransformerEncoder)


class Graph(nn.Module, Generic[ModelT]):
    """Base class of the graphs of a model."""

    model: ModelT

    def __init__(self, model: ModelT) -> None:
        super().__init__()
        self.model = model

    @property
    def dtype(self) -> torch.dtype:
        """Type of the floating-point inputs."""
        return next(self.parameters()).dtype


class EncoderGraph(Graph[Transformer]):
    """From source tokens to the keys and values of every cross-attention, and the encoder output."""

    def forward(self, input_ids: Tensor, source_lengths: Tensor) -> tuple[Tensor, ...]:
        """input_ids (B, S) of source_lengths (B) to the key and value of each decoder layer in turn, each (B, S, E).

        The last output is last_hidden_state (B, S, E) of the encoder in float32; its rows of padding mean nothing.
        """
        x = self.model.embed_source(input_ids)
        memory = encode(self.model.encoder, x, source_lengths)
        keys_and_values = projected_memory(self.model, memory)
        return *(x for pair in keys_and_values.values() for x in pair), memory.float()


def encode(encoder: Encoder, x: Tensor, lengths: Tensor) -> Tensor:
    """Encode x (B, S, E) of lengths (B): hidden representations (B, S, E)."""
    hidden: Tensor = encoder(x, encoder_attention(lengths, encoder.biases(x.shape[1])))
    return hidden


def projected_memory(model: Transformer, memory: Tensor, n_parts: int | None = None) -> Past:
    """Project memory (B, S, d_encoder) to the key and value (B, S, H * D) of each cross-attention.

    Args:
        n_parts: how many of all keys and values are needed, counted from the first; None for all.
    """
    layers = list(model.decoder.decoder_layers())
    E = layers[0].cross_attention.width
    projection = memory_projection(layers, getattr(model.decoder, MEMORY_STEP, None))
    parts = torch.split(projection.rows(slice(0, (n_parts or 2 * len(layers)) * E))(memory), E, dim=-1)
    return {layer.cross_attention: parts[2 * i : 2 * i + 2] for i, layer in enumerate(layers)}


class DecoderStepGraph(Graph[Transformer]):
    """One decoder step for R rows, each at its own position, which writes the self-attention caches or the states of
    SSRUs in place.

    The hypotheses of one source share its keys and values: they are the queries of one cross-attention.
    """

    def __init__(self, model: Transformer) -> None:
        super().__init__(model)
        self.n_target_tokens = int(model.is_target_token.sum())
        pads_shortlists = model.shortlist is not None
        assert not (pads_shortlists and model.is_target_token[model.config.special_tokens.pad]), "it would be counted"

    def forward(
        self,
        input_ids: Tensor,
        positions: Tensor,
        total_length: Tensor,
        rows_of_sources: Tensor,
        places_of_rows: Tensor,
        source_lengths: Tensor,
        k: Tensor,
        *others: Tensor,
    ) -> tuple[Tensor, ...]:
        """Return the k best next tokens of each row.

        Args:
            input_ids: (R, 1), the tokens just chosen.
            positions, total_length, rows_of_sources, places_of_rows, source_lengths: see `RowLayout`.
            k: (1), the number of candidates.
            others: if the model has shortlists, allowed_tokens (N, K), the tokens that targets of each source may have,
                padded with one that none has. Then per layer decoder.key, decoder.value (R, H, L, D), encoder.key,
                encoder.value (N, S, E). An SSRU has one decoder.state (R, 1, E) instead of key and value.

        Returns:
            token_ids (R, k), log_probs (R, k) falling and in float32, then the written decoder.key and .value, or
                .state, of each layer.
        """
        positions_of_tokens = positions.unsqueeze(1)
        rows = RowLayout(positions, positions_of_tokens, total_length, rows_of_sources, places_of_rows, source_lengths)
        past: dict[MultiHeadAttention, Sequence[Tensor]] = {}
        states: dict[SSRU, Sequence[Tensor]] = {}
        tensors = iter(others)
        allowed = next(tensors) if self.model.shortlist is not None else None
        for layer in self.model.decoder.decoder_layers():
            if isinstance(layer.self_attention, SSRU):
                states[layer.self_attention] = [next(tensors)]
            else:
                past[layer.self_attention] = [next(tensors), next(tensors)]
            past[layer.cross_attention] = [next(tensors), next(tensors)]
        present: list[Tensor] = []
        to_target = reading_target(
            decoder_attention(rows, past, present, self.biases(next(iter(past.values()))[0], rows)),
            next_states(positions_of_tokens, states, present),
        )
        x = self.model.embedding(input_ids, positions_of_tokens)
        x = self.model.decoder(x, to_target, cross_attention(rows, past))
        projection, tokens = self.projection()
        logits = projection.scaled_afterwards(x).squeeze(1).float()
        if allowed is not None:
            listed = look_up(allowed, places_of_rows // rows_of_sources.shape[1])  # (R, K)
            log_probs, best = top_k(logits.gather(1, listed).log_softmax(dim=-1), k)
            return listed.gather(1, best), log_probs, *present
        # ONNX Runtime's LogSoftmax over the vocabulary is faster than the log-sum-exp that k candidates would need.
        log_probs, best = best_tokens(logits.log_softmax(dim=-1), k)
        return best if tokens is None else look_up(tokens, best), log_probs, *present

    def biases(self, cache: Tensor, rows: RowLayout) -> Biases:
        """Return the biases of self-attention by distance, for caches shaped like `cache`."""
        decoder = self.model.decoder
        if not decoder.distance_biases:
            return {}
        positions = rows.positions.long()[:, None, None]  # in 64 bits: CUDA has no `Clip` of 32
        return decoder.biases(places_of_keys(cache, rows.total_length) - positions)

    def projection(self) -> tuple[Dense, Tensor | None]:
        """Return the projection to the logits of possible target tokens, with their ids; None if all have logits.

        Other tokens get a bias of -inf: the few that fill up the last group, or, where nearly all tokens are possible,
        all others. Then no rows are looked up, and the projection is the embedding itself. Shortlists need that too.
        """
        model, V = self.model, self.model.config.vocab_size
        table = dense(model.projection)
        bias: Tensor | None = model.output_bias
        n = -(-self.n_target_tokens // GROUP_SIZE) * GROUP_SIZE
        looked_up = n < MAX_LOOKED_UP_SHARE * V and model.shortlist is None
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
    """From tokens to the logits of the classes, the logits of every token, and the encoder output."""

    def forward(self, input_ids: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """input_ids (B, S) of lengths (B) to logits (B, C), and token_logits (B, S, C) that are 0 in padding.

        The last output is last_hidden_state (B, S, E) of the encoder in float32; its rows of padding mean nothing.
        """
        hidden = encode(self.model.encoder, self.model.embedding(input_ids), lengths).float()
        return *self.model.classify(hidden, lengths), hidden


class OneStateGraph(Graph[TransformerClassifier]):
    """From tokens to the logits of the classes where one state decides, and the encoder output."""

    def forward(self, input_ids: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """input_ids (B, S) of lengths (B) to logits (B, C), and last_hidden_state (B, S, E) in float32."""
        hidden = encode(self.model.encoder, self.model.embedding(input_ids), lengths).float()
        return self.model.classify_state(hidden, lengths), hidden


class TextEncoderGraph(Graph[TransformerEncoder]):
    """From tokens to their states; the caller pools them."""

    def forward(self, input_ids: Tensor, lengths: Tensor) -> Tensor:
        """input_ids (B, S) of lengths (B) to last_hidden_state (B, S, E) in float32; rows of padding mean nothing."""
        return encode(self.model.encoder, self.model.embedding(input_ids), lengths).float()


class DenseGraph(Graph[TransformerEncoder]):
    """From pooled states through the dense layers, which stay in float32: there is one row for each text."""

    @property
    def dtype(self) -> torch.dtype:
        return torch.float32

    def forward(self, *pooled: Tensor) -> Tensor:
        """pooled (B, D) to embeddings (B, D')."""
        (states,) = pooled
        return self.model.project(states)


class TranslationAttentionGraph(Graph[Transformer]):
    """From source and target, teacher-forced once, to every attention matrix of encoder and decoder."""

    def forward(self, input_ids: Tensor, source_lengths: Tensor, target_ids: Tensor) -> tuple[Tensor, ...]:
        """Return the matrices of input_ids (B, S) of source_lengths (B) and of target_ids (B, T), which begin with <s>.

        Returns:
            encoder (B, Le, H, S, S), decoder (B, Ld, H, T, T), unless it has SSRUs, and cross (B, Ld, H, T, S), in
                float32.
        """
        model, n_layers = self.model, self.model.config.n_decoder_layers
        encoder: list[Tensor] = []
        decoder: list[Tensor] = []
        cross: list[Tensor] = []
        source_mask = padding_mask(source_lengths, input_ids.shape[1])[:, None, None, :]
        of_source = model.encoder.biases(input_ids.shape[1])
        to_itself = visible_attention(source_mask, encoder, biases=of_source)
        memory = model.encoder(model.embed_source(input_ids), to_itself)
        past = projected_memory(model, memory, 2 * n_layers - 1)  # no matrix depends on the last values
        T = target_ids.shape[1]
        to_target = reading_target(
            visible_attention(causal_mask(T), decoder, biases=model.decoder.biases(distances(T))),
            all_states(model.config.max_positions),
        )
        model.decoder(
            model.embedding(target_ids), to_target, visible_attention(source_mask, cross, past, last=n_layers)
        )
        return tuple(torch.stack(matrices, dim=1) for matrices in (encoder, decoder, cross) if matrices)


class TextAttentionGraph(Graph[TransformerClassifier | TransformerEncoder]):
    """From tokens to every attention matrix of an encoder without a decoder."""

    def forward(self, input_ids: Tensor, lengths: Tensor) -> Tensor:
        """Return the matrices (B, Le, H, S, S) of input_ids (B, S) of lengths (B), in float32."""
        mask = padding_mask(lengths, input_ids.shape[1])[:, None, None, :]
        matrices: list[Tensor] = []
        encoder, n_layers = self.model.encoder, self.model.config.n_encoder_layers
        biases = encoder.biases(input_ids.shape[1])
        encoder(self.model.embedding(input_ids), visible_attention(mask, matrices, last=n_layers, biases=biases))
        return torch.stack(matrices, dim=1)


def places_of_true(booleans: Tensor, n: int) -> Tensor:
    """Return n indices of booleans (V): those of true ones in order, and then of others.

    `TopK` keeps equal numbers in order. ONNX Runtime computes it, and the rows of tables that depend on it, once at
    load; it would compute a `NonZero` at every run.
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
    """Return the k (1) highest log_probs (R, V) of each row in falling order, and their tokens: each (R, k).

    They lie in the k groups of neighbouring tokens with the highest maxima. Maxima are cheap: selecting groups and then
    tokens takes half the time of one selection from all of V.
    """
    R, V = log_probs.shape
    size = group_size(V)
    maxima = log_probs.view(R, V // size, size).amax(dim=-1)
    _, groups = top_k(maxima, at_most(k, V // size, unknown=R))  # (R, k), or all groups
    tokens = flatten_rows(groups.unsqueeze(-1) * size + torch.arange(size))  # (R, k * size)
    best, places = top_k(log_probs.gather(1, tokens), k)
    return best, tokens.gather(1, places)


def group_size(n_tokens: int) -> int:
    """Return the divisor of n_tokens that is nearest to GROUP_SIZE, where both selections are short."""
    return min(
        (size for size in range(1, n_tokens + 1) if n_tokens % size == 0), key=lambda size: abs(size - GROUP_SIZE)
    )
