"""The recurrent encoder-decoder, the ancestor of the Transformer: RNN, GRU or LSTM cells, with or without attention.

Legend: B batch, S source, T target, E d_model, V vocabulary, N encoder layers, P size of the state of a layer: 2E of an
LSTM, E of the others. Masks: True = may be attended.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.config import Cell, RecurrentConfig
from model.networks.additive_attention import AdditiveAttention
from model.networks.layers import SequenceDropout, TokenEmbedding
from model.networks.masks import padding_mask

CELLS: dict[Cell, type[nn.RNN | nn.GRU | nn.LSTM]] = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}

AttendToSource = Callable[[Tensor], tuple[Tensor, Tensor]]
"""Attention from queries (B, T, E) to contexts (B, T, E) and weights (B, T, S)."""


@dataclass(frozen=True)
class Memory:
    """Encoder states of a source."""

    states: Tensor  # (B, S, E) of the last layer, rubbish in padding
    last: Tensor  # (B, N * E): of every layer, the state in which each direction has read the whole source


@dataclass
class RecurrentCache:
    """State that the decoder keeps between steps; its size does not depend on the target."""

    states: list[Tensor]  # (B, P) of each layer
    values: Tensor  # (B, S, E) encoder states
    keys: Tensor | None  # (B, S, E) the same, projected for attention


class RecurrentLayer(nn.Module):
    """One layer of cells over a whole sequence (lecture, "RNNCell"), in PyTorch's own loop over time."""

    def __init__(self, d_input: int, d_hidden: int, cell: Cell) -> None:
        super().__init__()
        self.cells = CELLS[cell](d_input, d_hidden, batch_first=True)
        self.d_hidden = d_hidden
        self.d_state = 2 * d_hidden if cell == "lstm" else d_hidden

    def forward(self, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Read x (B, T, d_input) from state (B, P), by default zero: outputs (B, T, d_hidden) and the last state (B,
        P)."""
        if state is None:
            state = x.new_zeros(x.shape[0], self.d_state)
        state = state.to(x.dtype).unsqueeze(0)
        if not isinstance(self.cells, nn.LSTM):
            outputs, state = self.cells(x, state.contiguous())
            return outputs, state[0]
        hidden, cell = state.chunk(2, dim=-1)
        outputs, (hidden, cell) = self.cells(x, (hidden.contiguous(), cell.contiguous()))
        return outputs, torch.cat([hidden, cell], dim=-1)[0]

    def attending(self, x: Tensor, state: Tensor, attend: AttendToSource) -> tuple[Tensor, Tensor, Tensor]:
        """Read with attention (lecture notes, "RNN Decoder with attention"; Bahdanau et al. 2015, section 3.1).

        The state before each token attends, and the cell reads token and context side by side. So steps follow one
        another here, in training too.

        Returns:
            outputs (B, T, d_hidden), the last state (B, P) and the weights (B, T, S).
        """
        steps = []
        for token in torch.split(x, 1, dim=1):
            context, weights = attend(state[:, : self.d_hidden].unsqueeze(1))
            output, state = self(torch.cat([token, context], dim=-1), state)
            steps.append((output, weights))
        outputs, weights_of_all = (torch.cat(parts, dim=1) for parts in zip(*steps, strict=True))
        return outputs, state, weights_of_all


class BidirectionalLayer(nn.Module):
    """Two layers of half the width, one of which reads from the end (Bahdanau et al. 2015, section 3.2)."""

    def __init__(self, d_model: int, cell: Cell) -> None:
        super().__init__()
        self.from_start = RecurrentLayer(d_model, d_model // 2, cell)
        self.from_end = RecurrentLayer(d_model, d_model // 2, cell)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Read x (B, S, E) of lengths (B): states (B, S, E), and those (B, E) after the last token that each direction
        reads."""
        B, S, _ = x.shape
        rows, places = torch.arange(B, device=x.device), torch.arange(S, device=x.device)
        # Each row is reversed by itself: padding stays behind its tokens, where it changes nothing.
        turned = torch.where(places < lengths.unsqueeze(1), lengths.unsqueeze(1) - 1 - places, places)  # (B, S)
        from_start, _ = self.from_start(x)
        from_end, _ = self.from_end(x[rows.unsqueeze(1), turned])
        last = torch.cat([from_start[rows, lengths - 1], from_end[rows, lengths - 1]], dim=-1)
        return torch.cat([from_start, from_end[rows.unsqueeze(1), turned]], dim=-1), last


class RecurrentTranslator(nn.Module):
    """Encoder-decoder of recurrent cells (lecture, "RNN Encoder", "RNN Decoder"; Cho, Sutskever et al., both 2014).

    The decoder begins with a dense layer over the last encoder states. Without attention that is all it has of the
    source. Additive attention has two forms:

    - `before_cell`, the lecture's: the state before attends, and the context goes into the cell of the first layer.
    - `after_cell`: each output attends, and output and context make the hidden state that predicts (Luong et al. 2015,
      section 3.1). All steps are trained at once.

    Source and target share one vocabulary, and one matrix embeds both and projects the output, as in `Transformer`.
    """

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.config = config
        d_model, cell, n_encoder = config.d_model, config.cell, config.n_encoder_layers
        # Positions need no encoding: tokens are read one after another.
        self.embedding = TokenEmbedding(config.vocab_size, d_model, config.max_positions, config.dropout, "none")
        self.encoder = nn.ModuleList(BidirectionalLayer(d_model, cell) for _ in range(n_encoder))
        self.attends_before = config.attention == "before_cell"
        self.attends_after = config.attention == "after_cell"
        widths = [2 * d_model if self.attends_before else d_model] + [d_model] * (config.n_decoder_layers - 1)
        self.decoder = nn.ModuleList(RecurrentLayer(width, d_model, cell) for width in widths)
        self.bridge = nn.Linear(n_encoder * d_model, sum(layer.d_state for layer in self.decoder_layers()))
        self.attention = None if config.attention == "none" else AdditiveAttention(d_model)
        self.output = nn.Linear(2 * d_model if self.attends_after else d_model, d_model)
        self.dropout = SequenceDropout(config.dropout)

    def forward(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> Tensor:
        """Return hidden states (B, T, E) for teacher-forced target (B, T), given source (B, S) of lengths (B)."""
        source_mask = padding_mask(source_lengths, source.shape[1])
        return self.decode(target, self.encode(source, source_mask), source_mask)

    def encode(self, source: Tensor, source_mask: Tensor) -> Memory:
        """Encode source (B, S) under source_mask (B, S); padding must be at the end."""
        lengths = source_mask.sum(dim=1)
        x = self.embedding(source)
        last = []
        for layer in self.encoder:
            states, last_of_layer = layer(x, lengths)
            x = self.dropout(states)
            last.append(last_of_layer)
        return Memory(x, torch.cat(last, dim=-1))

    def decode(self, target: Tensor, memory: Memory, source_mask: Tensor) -> Tensor:
        """Decode teacher-forced target (B, T) over memory: hidden states (B, T, E)."""
        return self._read(target, self.init_caches(memory, target.shape[1]), source_mask)[0]

    def logits(self, hidden: Tensor) -> Tensor:
        """Project hidden (..., E) to vocabulary logits (..., V)."""
        return F.linear(hidden, self.embedding.tokens.weight)

    def shortlists(self, source: Tensor, source_lengths: Tensor) -> None:
        """Return None: a translation may have all tokens."""

    def init_caches(self, memory: Memory, cache_length: int) -> RecurrentCache:  # noqa: ARG002 (a longer target needs no more)
        """Return the decoder's first states and the projected keys of memory."""
        sizes = [layer.d_state for layer in self.decoder_layers()]
        states = list(torch.split(torch.tanh(self.bridge(memory.last)), sizes, dim=-1))
        keys = None if self.attention is None else self.attention.key(memory.states)
        return RecurrentCache(states, memory.states, keys)

    def decode_step(self, ids: Tensor, positions: Tensor, caches: RecurrentCache, source_mask: Tensor) -> Tensor:  # noqa: ARG002
        """Return logits (B, V) after one more token per row, ids (B), at the position that the caches have reached."""
        hidden, _ = self._read(ids.unsqueeze(1), caches, source_mask)
        return self.logits(hidden[:, 0])

    def attention_matrix(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> Tensor | None:
        """Return weights (B, T, S) of teacher-forced target (B, T) over source (B, S) of lengths (B), if it attends."""
        source_mask = padding_mask(source_lengths, source.shape[1])
        caches = self.init_caches(self.encode(source, source_mask), target.shape[1])
        return self._read(target, caches, source_mask)[1]

    def decoder_layers(self) -> Iterator[RecurrentLayer]:
        """The layers in order, with their type."""
        return (cast(RecurrentLayer, layer) for layer in self.decoder)

    def _read(self, ids: Tensor, caches: RecurrentCache, source_mask: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return hidden states (B, T, E) after each of the next tokens (B, T), and attention weights (B, T, S). Caches
        are written in place."""

        def attend(query: Tensor) -> tuple[Tensor, Tensor]:
            assert self.attention is not None
            assert caches.keys is not None
            return cast(tuple[Tensor, Tensor], self.attention(query, caches.keys, caches.values, source_mask))

        weights = None
        x: Tensor = self.embedding(ids)
        for i, layer in enumerate(self.decoder_layers()):
            if i == 0 and self.attends_before:
                outputs, caches.states[i], weights = layer.attending(x, caches.states[i], attend)
            else:
                outputs, caches.states[i] = layer(x, caches.states[i])
            x = self.dropout(outputs)
        if self.attends_after:
            context, weights = attend(x)
            x = torch.cat([x, context], dim=-1)
        return torch.tanh(self.output(x)), weights
