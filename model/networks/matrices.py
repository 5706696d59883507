"""Attention matrices of a model, teacher-forced once, with PyTorch: the reference for faster ways.

Legend: B batch, S source, T target, H heads, Le encoder layers, Ld decoder layers.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from model.networks.attention import MultiHeadAttention
from model.networks.transformer import Transformer, TransformerClassifier, TransformerEncoder


@dataclass(frozen=True)
class Matrices:
    """Attention matrices of a translator; columns of padding and of the decoder's future are zero."""

    encoder: Tensor  # (B, Le, H, S, S)
    decoder: Tensor  # (B, Ld, H, T, T); no layers if the decoder has no self-attention
    cross: Tensor  # (B, Ld, H, T, S)


def translation_matrices(model: Transformer, source: Tensor, source_lengths: Tensor, target: Tensor) -> Matrices:
    """Return the matrices of source (B, S) of source_lengths (B) and of target (B, T), which begins with <s>."""
    encoder = [layer.self_attention for layer in model.encoder.encoder_layers()]
    layers = list(model.decoder.decoder_layers())
    decoder = [layer.self_attention for layer in layers if isinstance(layer.self_attention, MultiHeadAttention)]
    cross = [layer.cross_attention for layer in layers]
    matrices = observe([*encoder, *decoder, *cross], lambda: model(source, source_lengths, target))
    Le, Ld, (B, T) = len(encoder), len(cross), target.shape
    return Matrices(
        torch.stack(matrices[:Le], dim=1),
        torch.stack(matrices[Le:-Ld], dim=1) if decoder else matrices[-1].new_zeros(B, 0, model.config.n_heads, T, T),
        torch.stack(matrices[-Ld:], dim=1),
    )


def classification_matrices(model: TransformerClassifier | TransformerEncoder, ids: Tensor, lengths: Tensor) -> Tensor:
    """Return the matrices (B, Le, H, S, S) of ids (B, S) of lengths (B)."""
    attentions = [layer.self_attention for layer in model.encoder.encoder_layers()]
    return torch.stack(observe(attentions, lambda: model.encode(ids, lengths)), dim=1)


def observe(attentions: Iterable[MultiHeadAttention], run: Callable[[], object]) -> list[Tensor]:
    """Return the matrix (B, H, T, S) of each attention sublayer while `run` runs each of them once.

    The model computes as always; each sublayer is then asked for its matrix with the same inputs.
    """
    attentions = list(attentions)
    seen: dict[MultiHeadAttention, Tensor] = {}

    def note(attention: MultiHeadAttention, inputs: tuple[Tensor, ...], _output: Tensor) -> None:
        seen[attention] = attention.attention_matrix(*inputs)[1]

    handles = [attention.register_forward_hook(note) for attention in attentions]
    try:
        run()
    finally:
        for handle in handles:
            handle.remove()
    return [seen[attention] for attention in attentions]
