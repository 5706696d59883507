"""The recurrent encoder-decoder, the Transformer's ancestor: GRU or LSTM, with attention or without.

Legend: B batch, S source, T target, E d_model, V vocabulary, N encoder layers, P numbers in the state of a layer: E of
a GRU, 2E of an LSTM. Masks: True = may be attended.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.config import Cell, RecurrentConfig
from model.networks.additive_attention import AdditiveAttention
from model.networks.layers import SequenceDropout, TokenEmbedding
from model.networks.masks import padding_mask


@dataclass(frozen=True)
class Memory:
    """What the encoder knows of a source."""

    states: Tensor  # (B, S, E) of the last layer, rubbish in padding
    last: Tensor  # (B, N * E): of every layer, the state in which each direction has read the whole source


@dataclass
class RecurrentCache:
    """What the decoder remembers between steps: the same amount, however long the target is."""

    states: list[Tensor]  # (B, P) of each layer
    values: Tensor  # (B, S, E) encoder states
    keys: Tensor | None  # (B, S, E) the same, projected for attention


class RecurrentLayer(nn.Module):
    """One layer of cells over a whole sequence (lecture, "RNNCell"), in PyTorch's own loop over time."""

    def __init__(self, d_input: int, d_hidden: int, cell: Cell) -> None:
        super().__init__()
        self.cells: nn.GRU | nn.LSTM = (nn.GRU if cell == "gru" else nn.LSTM)(d_input, d_hidden, batch_first=True)
        self.d_state = d_hidden if cell == "gru" else 2 * d_hidden

    def forward(self, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """x (B, T, d_input) from state (B, P), by default zero: outputs (B, T, d_hidden) and the state (B, P) after."""
        if state is None:
            state = x.new_zeros(x.shape[0], self.d_state)
        state = state.to(x.dtype).unsqueeze(0)
        if isinstance(self.cells, nn.GRU):
            outputs, state = self.cells(x, state.contiguous())
            return outputs, state[0]
        hidden, cell = state.chunk(2, dim=-1)
        outputs, (hidden, cell) = self.cells(x, (hidden.contiguous(), cell.contiguous()))
        return outputs, torch.cat([hidden, cell], dim=-1)[0]


class BidirectionalLayer(nn.Module):
    """Two layers of half the width, one of which reads from the end (Bahdanau et al. 2015, section 3.2)."""

    def __init__(self, d_model: int, cell: Cell) -> None:
        super().__init__()
        self.from_start = RecurrentLayer(d_model, d_model // 2, cell)
        self.from_end = RecurrentLayer(d_model, d_model // 2, cell)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """x (B, S, E) of lengths (B): states (B, S, E), and of each row those (B, E) after its last and first token."""
        B, S, _ = x.shape
        rows, places = torch.arange(B, device=x.device), torch.arange(S, device=x.device)
        # Each row turned round by itself: padding stays behind its tokens, where it can change nothing of them.
        turned = torch.where(places < lengths.unsqueeze(1), lengths.unsqueeze(1) - 1 - places, places)  # (B, S)
        from_start, _ = self.from_start(x)
        from_end, _ = self.from_end(x[rows.unsqueeze(1), turned])
        last = torch.cat([from_start[rows, lengths - 1], from_end[rows, lengths - 1]], dim=-1)
        return torch.cat([from_start, from_end[rows.unsqueeze(1), turned]], dim=-1), last


class RecurrentTranslator(nn.Module):
    """Encoder-decoder of recurrent cells (lecture, "RNN Encoder", "RNN Decoder"; Cho, Sutskever et al., both 2014).

    The decoder begins with a dense layer of the encoder's last states. Without attention that is all it has of the
    source. With additive attention each of its outputs attends to the encoder's states, and output and context make
    the hidden state that predicts (Luong et al. 2015, section 3.1). In the lecture, and with Bahdanau, the state before
    attends, and its context goes into the cell: such a decoder is trained one step after another, this one at one go.

    Source and target share one vocabulary, and one matrix serves as source embedding, target embedding and output
    projection, as in `Transformer`.
    """

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.config = config
        d_model, cell, n_encoder = config.d_model, config.cell, config.n_encoder_layers
        # Order needs no encoding where tokens are read one after another.
        self.embedding = TokenEmbedding(config.vocab_size, d_model, config.max_positions, config.dropout, "none")
        self.encoder = nn.ModuleList(BidirectionalLayer(d_model, cell) for _ in range(n_encoder))
        self.decoder = nn.ModuleList(RecurrentLayer(d_model, d_model, cell) for _ in range(config.n_decoder_layers))
        self.bridge = nn.Linear(n_encoder * d_model, sum(layer.d_state for layer in self.decoder_layers()))
        self.attention = AdditiveAttention(d_model) if config.attention == "additive" else None
        self.output = nn.Linear(d_model if self.attention is None else 2 * d_model, d_model)
        self.dropout = SequenceDropout(config.dropout)

    def forward(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> Tensor:
        """Hidden states (B, T, E) for teacher-forced target (B, T), given source (B, S) of lengths (B)."""
        source_mask = padding_mask(source_lengths, source.shape[1])
        return self.decode(target, self.encode(source, source_mask), source_mask)

    def encode(self, source: Tensor, source_mask: Tensor) -> Memory:
        """source (B, S) under source_mask (B, S), whose padding is at the end."""
        lengths = source_mask.sum(dim=1)
        x = self.embedding(source)
        last = []
        for layer in self.encoder:
            states, last_of_layer = layer(x, lengths)
            x = self.dropout(states)
            last.append(last_of_layer)
        return Memory(x, torch.cat(last, dim=-1))

    def decode(self, target: Tensor, memory: Memory, source_mask: Tensor) -> Tensor:
        """Teacher-forced target (B, T) over memory: hidden states (B, T, E)."""
        return self._read(target, self.init_caches(memory, target.shape[1]), source_mask)

    def logits(self, hidden: Tensor) -> Tensor:
        """hidden (..., E) to vocabulary logits (..., V)."""
        return F.linear(hidden, self.embedding.tokens.weight)

    def init_caches(self, memory: Memory, cache_length: int) -> RecurrentCache:  # noqa: ARG002 (more tokens take no more)
        """The decoder's first states, and the keys of memory."""
        sizes = [layer.d_state for layer in self.decoder_layers()]
        states = list(torch.split(torch.tanh(self.bridge(memory.last)), sizes, dim=-1))
        keys = None if self.attention is None else self.attention.key(memory.states)
        return RecurrentCache(states, memory.states, keys)

    def decode_step(self, ids: Tensor, positions: Tensor, caches: RecurrentCache, source_mask: Tensor) -> Tensor:  # noqa: ARG002
        """Logits (B, V) after one more token per row: ids (B). Its position is how many the caches have read before."""
        return self.logits(self._read(ids.unsqueeze(1), caches, source_mask)[:, 0])

    def attention_matrix(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> Tensor | None:
        """Weights (B, T, S) of teacher-forced target (B, T) over source (B, S) of lengths (B), if it attends."""
        source_mask = padding_mask(source_lengths, source.shape[1])
        caches = self.init_caches(self.encode(source, source_mask), target.shape[1])
        outputs = self._recur(target, caches)
        if self.attention is None or caches.keys is None:
            return None
        return self.attention.attention_matrix(outputs, caches.keys, source_mask)

    def decoder_layers(self) -> Iterator[RecurrentLayer]:
        """The layers in order, as what they are."""
        return (cast(RecurrentLayer, layer) for layer in self.decoder)

    def _read(self, ids: Tensor, caches: RecurrentCache, source_mask: Tensor) -> Tensor:
        """Hidden states (B, T, E) after each of the next tokens (B, T). Caches are written in place."""
        outputs = self._recur(ids, caches)
        if self.attention is not None and caches.keys is not None:
            context = self.attention(outputs, caches.keys, caches.values, source_mask)
            outputs = torch.cat([outputs, context], dim=-1)
        return torch.tanh(self.output(outputs))

    def _recur(self, ids: Tensor, caches: RecurrentCache) -> Tensor:
        x: Tensor = self.embedding(ids)
        for i, layer in enumerate(self.decoder_layers()):
            outputs, caches.states[i] = layer(x, caches.states[i])
            x = self.dropout(outputs)
        return x
