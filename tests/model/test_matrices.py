"""Attention matrices are stochastic, masked, and those that the model multiplies its values with."""

import pytest
import torch
from torch import Tensor

from model.networks.attention import MultiHeadAttention
from model.networks.matrices import Matrices, classification_matrices, observe, translation_matrices
from model.networks.transformer import Transformer, TransformerClassifier

B, S, T, H, E = 3, 7, 5, 3, 24
LENGTHS = torch.tensor([7, 1, 4])


@pytest.fixture
def matrices(transformer: Transformer) -> Matrices:
    return of(transformer, torch.randint(4, 50, (B, S)), LENGTHS, torch.randint(4, 50, (B, T)))


def of(model: Transformer, source: Tensor, lengths: Tensor, target: Tensor) -> Matrices:
    with torch.no_grad():
        return translation_matrices(model, source, lengths, target)


def test_there_is_one_matrix_for_each_layer_and_head(matrices: Matrices, transformer: Transformer) -> None:
    n_decoder = 2 if transformer.config.decoder_self == "attention" else 0
    assert matrices.encoder.shape == (B, 3, H, S, S)
    assert matrices.decoder.shape == (B, n_decoder, H, T, T)
    assert matrices.cross.shape == (B, 2, H, T, S)


def test_padding_changes_no_matrix(transformer: Transformer) -> None:
    source, target = torch.randint(4, 50, (1, 4)), torch.randint(4, 50, (1, T))
    padded = torch.cat([source, torch.randint(4, 50, (1, 3))], dim=1)
    alone = of(transformer, source, torch.tensor([4]), target)
    together = of(transformer, padded, torch.tensor([4]), target)
    torch.testing.assert_close(together.encoder[..., :4, :4], alone.encoder)
    torch.testing.assert_close(together.decoder, alone.decoder)
    torch.testing.assert_close(together.cross[..., :4], alone.cross)


@torch.no_grad()
def test_layers_and_sublayers_are_told_apart(transformer: Transformer) -> None:
    """Each matrix times the values of its sublayer gives the output of that sublayer."""
    source, target = torch.randint(4, 50, (B, S)), torch.randint(4, 50, (B, T))
    encoder = [layer.self_attention for layer in transformer.encoder.encoder_layers()]
    decoder = [layer.self_attention for layer in transformer.decoder.decoder_layers()]
    decoder = [sublayer for sublayer in decoder if isinstance(sublayer, MultiHeadAttention)]
    cross = [layer.cross_attention for layer in transformer.decoder.decoder_layers()]
    said: dict[MultiHeadAttention, tuple[Tensor, Tensor, Tensor]] = {}

    def note(attention: MultiHeadAttention, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        said[attention] = (inputs[1], inputs[2], output)

    for attention in (*encoder, *decoder, *cross):
        attention.register_forward_hook(note)
    matrices = of(transformer, source, LENGTHS, target)
    for attentions, kind in ((encoder, matrices.encoder), (decoder, matrices.decoder), (cross, matrices.cross)):
        for i, attention in enumerate(attentions):
            key, value, output = said[attention]
            _, v = attention.project_memory(key, value)
            context = attention.merge_heads(kind[:, i] @ v)
            torch.testing.assert_close(attention.output(context), output)


def test_a_classifiers_matrices_are_its_encoders(classifier: TransformerClassifier) -> None:
    ids = torch.randint(4, 50, (B, S))
    with torch.inference_mode():
        matrices = classification_matrices(classifier, ids, LENGTHS)
    assert matrices.shape == (B, 2, H, S, S)
    torch.testing.assert_close(matrices.sum(dim=-1), torch.ones(B, 2, H, S))
    assert torch.all(matrices[1, ..., 1:] == 0)


def test_nobody_watches_a_model_once_its_matrices_are_taken(transformer: Transformer) -> None:
    attention = next(transformer.encoder.encoder_layers()).self_attention

    def fail() -> None:
        raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError, match="out of memory"):
        observe([attention], fail)
    assert not attention._forward_hooks
