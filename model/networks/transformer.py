"""Encoder, decoder, and the models made of them: `Transformer`, `TransformerClassifier`, `TransformerEncoder`.

Legend: B batch, S source, T target, L cache length, E d_model, V vocabulary, C classes. Masks: True = may be attended.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.config import ClassifierConfig, EmbedderConfig, LayerConfig, Pooler, TransformerConfig
from model.networks.attention import (
    Attend,
    Biases,
    Cache,
    Caches,
    MultiHeadAttention,
    cached_attention,
    cached_cross_attention,
    masked_attention,
)
from model.networks.distances import local_bias
from model.networks.layers import (
    DecoderLayer,
    EncoderLayer,
    SidePositions,
    TokenEmbedding,
    ToTarget,
    biases_of,
    distance_biases,
    normalization,
    token_embedding,
)
from model.networks.masks import causal_mask, distances, padding_mask
from model.networks.positions import Rotation
from model.networks.shortlist import Shortlist
from model.networks.ssru import SSRU, Scan, scan_from_zero, scan_further


def final_norm(layer: LayerConfig) -> nn.Module:
    """Return the norm at the end of a stack: pre-norm stacks leave their sum unnormalized."""
    return normalization(layer) if layer.norm == "pre" else nn.Identity()


POOLERS: dict[Pooler, Callable[[Tensor], Tensor]] = {"tanh": torch.tanh, "relu": torch.relu, "gelu": F.gelu}
DENSE_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"identity": lambda x: x, "tanh": torch.tanh}


def share_rotations(attentions: Iterable[MultiHeadAttention]) -> None:
    """Let sublayers that rotate alike have one table: a long one takes megabytes."""
    by_base: dict[float, Rotation] = {}
    for attention in attentions:
        rotation = attention.rotation
        if rotation is not None and (shared := by_base.setdefault(rotation.base, rotation)) is not rotation:
            # It stays a module of the first one only: a tracer mixes up tensors that have two names.
            del attention.rotation
            object.__setattr__(attention, "rotation", shared)


class Encoder(nn.Module):
    """A stack of encoder layers; under a causal mask, a decoder without an encoder."""

    def __init__(self, n_layers: int, layer: LayerConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(layer.of_layer(i)) for i in range(n_layers))
        share_rotations(each.self_attention for each in self.encoder_layers())
        self.final_norm = final_norm(layer)
        self.distance_biases = distance_biases(layer, n_layers, both_ways=True)
        self.local = layer.local_attention

    def forward(self, x: Tensor, attend: Attend) -> Tensor:
        """Attend from x (B, S, E) to itself: hidden representations (B, S, E)."""
        for layer in self.layers:
            x = layer(x, attend)
        memory: Tensor = self.final_norm(x)
        return memory

    def encoder_layers(self) -> Iterator[EncoderLayer]:
        """The layers in order, with their type."""
        return (cast(EncoderLayer, layer) for layer in self.layers)

    def biases(self, size: int, device: torch.device | None = None) -> Biases:
        """Return the biases of the layers by distance, each (1, H, S, S) or (S, S), for sequences of S tokens."""
        biases = biases_of(self.distance_biases, self.encoder_layers(), distances(size, device))
        if self.local is None:
            return biases
        near = local_bias(size, self.local.reach, device).to(next(self.parameters()).dtype)
        local = (layer.self_attention for i, layer in enumerate(self.encoder_layers()) if i in self.local.layers)
        return dict(biases) | {attention: near + biases.get(attention, 0) for attention in local}

    def encode(self, x: Tensor, mask: Tensor) -> Tensor:
        """Attend from x (B, S, E) to itself where mask (B, S) is true: hidden representations (B, S, E)."""
        biases = self.biases(x.shape[1], x.device)
        hidden: Tensor = self(x, masked_attention(mask[:, None, None, :], biases=biases))
        return hidden


class Decoder(nn.Module):
    """A stack of decoder layers over the encoder's memory of width d_memory."""

    def __init__(self, n_layers: int, layer: TransformerConfig, d_memory: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(layer, d_memory) for _ in range(n_layers))
        self.final_norm = final_norm(layer)
        self.distance_biases = distance_biases(layer, n_layers, both_ways=False)

    def forward(self, x: Tensor, to_target: ToTarget, to_source: Attend) -> Tensor:
        """Attend from x (B, T, E) to itself and to the source: (B, T, E)."""
        for layer in self.layers:
            x = layer(x, to_target, to_source)
        hidden: Tensor = self.final_norm(x)
        return hidden

    def decoder_layers(self) -> Iterator[DecoderLayer]:
        """The layers in order, with their type."""
        return (cast(DecoderLayer, layer) for layer in self.layers)

    def biases(self, distances: Tensor) -> Biases:
        """Return the biases of self-attention by distances (T, S) or (B, T, S): (B, H, T, S)."""
        return biases_of(self.distance_biases, self.decoder_layers(), distances)


def reading_target(attend: Attend, scan: Scan) -> ToTarget:
    """Return what self-attention does by `attend`, and an SSRU by `scan`."""
    return lambda sublayer, x: sublayer(x, scan) if isinstance(sublayer, SSRU) else attend(sublayer, x)


@dataclass
class DecoderCaches:
    """The state of decoding between two steps."""

    attention: Caches
    """Keys and values of every attention."""
    states: dict[SSRU, Tensor]
    """State (B, 1, E) of every SSRU."""
    length: int
    """The most target tokens, L."""


class Transformer(nn.Module):
    """The encoder-decoder Transformer (lecture, "The Transformer"; Vaswani et al. 2017).

    Source and target share one vocabulary, and one matrix is source embedding, target embedding and output projection
    (Press and Wolf 2017). An encoder with a width or vocabulary of its own has its own embedding, and an untied output
    projection is one more matrix.

    Attributes:
        is_target_token: (V), tokens that a translation may have: those of the target language, once known.
    """

    is_target_token: Tensor

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        encoder_layer = config.encoder_layer
        self.embedding = token_embedding(config)
        self.encoder_embedding = token_embedding(encoder_layer) if config.has_source_embedding else None
        self.encoder_positions = SidePositions(encoder_layer) if config.encoder_positions else None
        self.encoder = Encoder(config.n_encoder_layers, encoder_layer)
        self.decoder = Decoder(config.n_decoder_layers, config, encoder_layer.d_model)
        self.output = None if config.tied_output else nn.Linear(config.d_model, config.vocab_size, bias=False)
        self.output_bias = nn.Parameter(torch.zeros(config.vocab_size)) if config.output_bias else None
        self.shortlist = (
            Shortlist(config.shortlist, config.encoder_layer.vocab_size) if config.shortlist is not None else None
        )
        self.register_buffer("is_target_token", torch.ones(config.vocab_size, dtype=torch.bool))

    @property
    def source_embedding(self) -> TokenEmbedding:
        """Embedding of the encoder: its own, or the shared one."""
        return self.embedding if self.encoder_embedding is None else self.encoder_embedding

    def embed_source(self, source: Tensor) -> Tensor:
        """Embed source (B, S): (B, S, d_encoder)."""
        embedded: Tensor = self.source_embedding(source, side=self.encoder_positions)
        return embedded

    @property
    def projection(self) -> nn.Embedding | nn.Linear:
        """Output projection without its bias: the decoder embedding, if tied."""
        return self.embedding.tokens if self.output is None else self.output

    def forward(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> Tensor:
        """Return hidden states (B, T, E) for teacher-forced target (B, T), given source (B, S) of lengths (B)."""
        source_mask = padding_mask(source_lengths, source.shape[1])
        return self.decode(target, self.encode(source, source_mask), source_mask)

    def encode(self, source: Tensor, source_mask: Tensor) -> Tensor:
        """Encode source (B, S) under source_mask (B, S): memory (B, S, d_encoder)."""
        return self.encoder.encode(self.embed_source(source), source_mask)

    def decode(self, target: Tensor, memory: Tensor, source_mask: Tensor) -> Tensor:
        """Decode teacher-forced target (B, T) over memory (B, S, d_encoder): hidden states (B, T, E)."""
        T, device = target.shape[1], target.device
        attend = masked_attention(causal_mask(T, device), biases=self.decoder.biases(distances(T, device)))
        to_target = reading_target(attend, scan_from_zero)
        to_source = masked_attention(source_mask[:, None, None, :], memory)
        hidden: Tensor = self.decoder(self.embedding(target), to_target, to_source)
        return hidden

    def logits(self, hidden: Tensor) -> Tensor:
        """Project hidden (..., E) to vocabulary logits (..., V), -inf for tokens that no translation has."""
        logits = F.linear(hidden, self.projection.weight, self.output_bias)
        return logits.masked_fill(~self.is_target_token, float("-inf"))

    def shortlists(self, source: Tensor, source_lengths: Tensor) -> Tensor | None:
        """Return which tokens (B, V) the translation of each source (B, S) of lengths (B) may have; None: all."""
        if self.shortlist is None:
            return None
        allowed = torch.zeros(len(source), self.config.vocab_size, dtype=torch.bool)
        for row, (ids, length) in enumerate(zip(source.tolist(), source_lengths.tolist(), strict=True)):
            allowed[row, self.shortlist.of_source(ids[:length], self.config.vocab_size)] = True
        return allowed

    def init_caches(self, memory: Tensor, cache_length: int) -> DecoderCaches:
        """Return the state before the first target token, and keys and values of memory (B, S, d_encoder).

        Caches of self-attention are empty, of L = cache_length; states of SSRUs are zeros.
        """
        caches = DecoderCaches({}, {}, cache_length)
        for layer in self.decoder.decoder_layers():
            attention = layer.cross_attention
            caches.attention[attention] = Cache(*attention.project_memory(memory, memory))
            if isinstance(layer.self_attention, MultiHeadAttention):
                key = memory.new_zeros(memory.shape[0], attention.n_heads, cache_length, attention.head_dim)
                caches.attention[layer.self_attention] = Cache(key, key.clone())
            else:
                caches.states[layer.self_attention] = memory.new_zeros(memory.shape[0], 1, attention.d_model)
        return caches

    def decode_step(self, ids: Tensor, positions: Tensor, caches: DecoderCaches, source_mask: Tensor) -> Tensor:
        """Return logits (B, V) after one more token per row, ids (B) at positions (B). Caches are written in place."""
        positions = positions.unsqueeze(1)
        x = self.embedding(ids.unsqueeze(1), positions)
        places = torch.arange(caches.length, device=ids.device)
        biases = self.decoder.biases(places - positions.unsqueeze(1))
        to_target = reading_target(
            cached_attention(caches.attention, positions, biases), scan_further(caches.states, positions)
        )
        to_source = cached_cross_attention(caches.attention, source_mask[:, None, None, :])
        return self.logits(self.decoder(x, to_target, to_source)[:, 0])


class TransformerClassifier(nn.Module):
    """Encoder classifier: per-token logits from a linear layer, pooled over the sequence.

    Max pooling is the lecture's; with mean pooling all tokens count the same. Or one state decides, that of the first
    token or the mean of all, often through one more dense layer (Devlin et al. 2019, "BERT", section 3). Two texts,
    such as a question and a document, are read as one sequence, with `special_tokens.eos` after the first one.
    """

    def __init__(self, config: ClassifierConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = token_embedding(config, config.special_tokens.eos if config.pairs == "segments" else None)
        self.encoder = Encoder(config.n_encoder_layers, config)
        self.pooler = nn.Linear(config.d_model, config.d_model, config.bias) if config.pooler else None
        self.pooler_norm = normalization(config) if config.pooler_norm else nn.Identity()
        self.output = nn.Linear(config.d_model, len(config.labels))

    def forward(self, ids: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Classify ids (B, S) of lengths (B): logits (B, C) and per-token logits (B, S, C), zero in padding.

        If one state decides, the logits of tokens mean nothing.
        """
        return self.classify(self.encode(ids, lengths), lengths)

    def encode(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Encode ids (B, S) of lengths (B): hidden representations (B, S, E)."""
        return self.encoder.encode(self.embedding(ids), padding_mask(lengths, ids.shape[1]))

    def classify(self, hidden: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Classify encoder output (B, S, E) for texts of lengths (B): logits (B, C) and per-token logits (B, S, C)."""
        if self.config.pools_states:
            return self.classify_state(hidden, lengths), self.output(hidden)
        padding = ~padding_mask(lengths, hidden.shape[1]).unsqueeze(-1)  # (B, S, 1)
        token_logits = self.output(hidden).masked_fill(padding, 0.0)
        if self.config.pooling == "max":
            pooled = token_logits.masked_fill(padding, float("-inf")).amax(dim=1)
        else:
            pooled = token_logits.sum(dim=1) / lengths.unsqueeze(1).to(token_logits.dtype)
        return pooled, token_logits

    def classify_state(self, hidden: Tensor, lengths: Tensor) -> Tensor:
        """Classify encoder output (B, S, E) by one state of each text of lengths (B): logits (B, C)."""
        # Two rows are computed: ONNX Runtime multiplies a single row by another kernel, with other last bits.
        rows = hidden[:, :2] if self.config.pooling == "first" else self.mean_states(hidden, lengths)
        if self.pooler is not None and self.config.pooler is not None:
            rows = self.pooler_norm(POOLERS[self.config.pooler](self.pooler(rows)))
        logits: Tensor = self.output(rows)[:, 0]
        return logits

    def mean_states(self, hidden: Tensor, lengths: Tensor) -> Tensor:
        """Return the mean of the states (B, S, E) of each text of lengths (B), twice: (B, 2, E).

        A product adds up tokens in their order, so padding does not change its last bits, as it does those of a sum.
        """
        is_token = padding_mask(lengths, hidden.shape[1]).to(hidden.dtype)
        return torch.stack([is_token, is_token], dim=1) @ hidden / lengths[:, None, None].to(hidden.dtype)


class TransformerEncoder(nn.Module):
    """An encoder of texts with its dense layers; the caller pools its states as configured.

    Source: Reimers and Gurevych 2019, "Sentence-BERT".
    """

    def __init__(self, config: EmbedderConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = token_embedding(config)
        self.encoder = Encoder(config.n_encoder_layers, config)
        widths = [config.d_model * len(config.pooling), *(dense.d_output for dense in config.dense)]
        self.dense = nn.ModuleList(
            nn.Linear(d_input, dense.d_output, dense.bias) for d_input, dense in zip(widths, config.dense, strict=False)
        )

    def encode(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Encode ids (B, S) of lengths (B): hidden representations (B, S, E)."""
        return self.encoder.encode(self.embedding(ids), padding_mask(lengths, ids.shape[1]))

    def project(self, pooled: Tensor) -> Tensor:
        """Run pooled states (B, D) through the dense layers."""
        for layer, dense in zip(self.dense, self.config.dense, strict=True):
            pooled = DENSE_ACTIVATIONS[dense.activation](layer(pooled))
        return pooled
