"""Vectors of tokens and texts, to compare their meaning (lecture, "Semantic Representations").

Legend: B batch, S source tokens, T target tokens, E width of the encoder or d_model, D width of an embedding.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
import torch
from torch import Tensor

from model.batching import batches_by_length, pad
from model.checkpoint import Checkpoint, CheckpointError
from model.config import EmbedderConfig
from model.evaluation.scoring import translate
from model.networks.masks import padding_mask
from model.networks.transformer import Transformer, TransformerClassifier, TransformerEncoder
from model.pooling import pooled
from model.tokenizer import cut_source, special_around, windows_of

BATCH_TOKENS = 4096


@dataclass(frozen=True)
class TokenVectors:
    """One vector for each token of a text, or of its translation."""

    text: str
    """The text that the tokens are of."""
    tokens: list[str]
    """Tokens as the vocabulary writes them: "Ġdog" is "dog" after a space."""
    vectors: Tensor  # (S or T, E)

    def mean(self) -> Tensor:
        """Return the mean (E) over every token, </s> included, as one vector for the text."""
        return self.vectors.mean(dim=0)


def encoder_states(checkpoint: Checkpoint, texts: Sequence[str]) -> list[TokenVectors]:
    """Return the encoder's last hidden states of each text, which a decoder attends to or a classifier pools.

    A text longer than the training texts is read in windows that do not overlap; translators should be given sentences.

    Raises:
        CheckpointError: the model has no encoder of this kind.
    """
    encoded = checkpoint.encode(texts)
    states = states_of(checkpoint, encoded)
    return [
        TokenVectors(text, checkpoint.pieces(ids, of="source"), vectors)
        for text, ids, vectors in zip(texts, encoded, states, strict=True)
    ]


@torch.inference_mode()
def states_of(checkpoint: Checkpoint, sequences: Sequence[list[int]]) -> list[Tensor]:
    """Return the encoder's last hidden states of token ids: (S, E) each. Raises CheckpointError: the model has no
    encoder of this kind."""
    size = checkpoint.config.max_tokens
    around = ([], []) if isinstance(checkpoint.model, Transformer) else special_around(checkpoint.tokenizer)
    windows = [windows_of(whole, size, around) for whole in sequences]
    return [
        torch.cat(rows) if rows else torch.zeros(0, checkpoint.config.model.d_model)
        for rows in _states_of_windows(checkpoint, windows)
    ]


def _states_of_windows(checkpoint: Checkpoint, windows: Sequence[list[list[int]]]) -> list[list[Tensor]]:
    """Return the states (S, E) of each window of each text."""
    model, flat = checkpoint.model, [ids for of_text in windows for ids in of_text]
    by_number: dict[int, Tensor] = {}
    for batch in batches_by_length(np.array([len(ids) for ids in flat]), BATCH_TOKENS):
        ids, lengths = pad([flat[w] for w in batch])
        if isinstance(model, Transformer):
            hidden = model.encode(ids, padding_mask(lengths, ids.shape[1]))
        elif isinstance(model, TransformerClassifier | TransformerEncoder):
            hidden = model.encode(ids, lengths)
        else:
            raise CheckpointError(f"{checkpoint.config.name} has no Transformer encoder, so its states cannot be shown")
        by_number |= {int(w): row[:length] for w, row, length in zip(batch, hidden, lengths.tolist(), strict=True)}
    numbered = count()
    return [[by_number[next(numbered)] for _ in of_text] for of_text in windows]


@torch.inference_mode()
def text_embeddings(checkpoint: Checkpoint, texts: Sequence[str], prompt: str | None = None) -> list[Tensor]:
    """Embed texts as an encoder of texts does, without normalization: (D) each.

    A longer text is the mean of the embeddings of its windows, each with the prompt, weighted by their pooled tokens.

    Args:
        prompt: the name of one of the model's prompts; None is its default.

    Raises:
        CheckpointError: the model has no such prompt, or is no encoder of texts.
    """
    model, tokenizer = checkpoint.model, checkpoint.tokenizer
    if not isinstance(model, TransformerEncoder):
        raise CheckpointError(f"{checkpoint.config.name} is no encoder of texts, so it has no prompts")
    put_in_front = _text_of(prompt, model.config)
    before, after = special_around(tokenizer)
    n_before = len(before) + len(tokenizer.encode(put_in_front, add_special_tokens=False).ids)
    windows = [
        windows_of(ids, checkpoint.config.max_tokens, (ids[:n_before], after)) or [ids]
        for ids in checkpoint.encode([put_in_front + text for text in texts])
    ]
    n_left_out = n_before if put_in_front and not model.config.pool_prompt else 0
    embeddings = []
    for states in _states_of_windows(checkpoint, windows):
        kept = [rows[min(n_left_out, len(rows) - 1) :] for rows in states]
        vectors = torch.stack([pooled(part, len(rows), model.config) for part, rows in zip(kept, states, strict=True)])
        n_kept = torch.tensor([float(len(part)) for part in kept])
        embeddings.append(n_kept @ model.project(vectors) / sum(map(len, kept)))
    return embeddings


def _text_of(prompt: str | None, config: EmbedderConfig) -> str:
    name = config.default_prompt if prompt is None else prompt
    if name is not None and name not in config.prompts:
        raise CheckpointError(f"unknown `prompt` {name!r}; the model has {', '.join(config.prompts) or 'none'}")
    return "" if name is None else config.prompts[name]


@torch.inference_mode()
def cross_attention_outputs(checkpoint: Checkpoint, sentences: Sequence[str], layer: int = -1) -> list[TokenVectors]:
    """Return cross-attention's output for each token of the model's own greedy translations: (T, E) each.

    Row t is the output of a layer's cross-attention sublayer, its heads merged and projected but not added to anything,
    at the step that wrote target token t: what was read of the source for it. </s> has a row if it was written.

    Args:
        layer: decoder layer, from 0; -1 is the last.

    Raises:
        CheckpointError: the checkpoint is not a translator, or has no such layer.
    """
    translations = translate(checkpoint, sentences)
    model = checkpoint.model
    assert isinstance(model, Transformer), "else it would not have translated"
    layers = list(model.decoder.decoder_layers())
    if not -len(layers) <= layer < len(layers):
        raise CheckpointError(f"`layer` is {layer}, but {checkpoint.config.name} has {len(layers)} decoder layers")
    limit, tokens = model.config.max_positions, model.config.special_tokens
    given: list[Tensor] = []
    handle = layers[layer].cross_attention.register_forward_hook(lambda _module, _inputs, output: given.append(output))
    try:
        outputs = []
        for sentence, (text, hypothesis) in zip(sentences, translations, strict=True):
            source = cut_source(checkpoint.encode([sentence])[0], limit)  # as translate reads it
            written = [*hypothesis.ids, tokens.eos] if hypothesis.finished else hypothesis.ids
            read = torch.tensor([[tokens.bos, *written[:-1]]])
            model(torch.tensor([source]), torch.tensor([len(source)]), read)
            outputs.append(TokenVectors(text, checkpoint.pieces(written, of="target"), given.pop()[0]))
    finally:
        handle.remove()
    return outputs
