"""How large the inputs of each dense layer get, so that they can be quantized with a constant scale.

The model reads sequences of random tokens with PyTorch. That needs no text in its language and finds about what text
finds: with an English-French model, limits within a third of those of news.

Legend: B sequences, S source, T target.
"""

import math
from collections import defaultdict
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from model.config import ClassifierConfig, EmbedderConfig, LayerConfig, SpecialTokens, TransformerConfig
from model.networks.attention import MultiHeadAttention
from model.networks.transformer import Transformer, TransformerClassifier, TransformerEncoder

Limits = dict[str, float]
"""Largest magnitude of what a layer reads, by the layer's name."""

B, S, T = 24, 32, 32
STEP = 1.05
"""Limits are powers of it, so that the last bits of a CPU's sums do not show in the artifact."""
SMALLEST = STEP**-400
"""For what is always zero."""


def activation_limits(model: Transformer | TransformerClassifier | TransformerEncoder) -> Limits:
    """Of each dense layer, of what cross-attention reads of the source (decoder.memory), and of what is projected to
    the vocabulary (embedding.tokens).
    """
    random = np.random.default_rng(0)
    config, tokens = model.config, model.config.special_tokens
    source = config.encoder_layer if isinstance(config, TransformerConfig) else config
    size = min(S, config.max_positions)
    ids = random.choice(ids_of_words(source.vocab_size, tokens), (B, size))
    lengths = random.integers(1, size + 1, B)
    inputs = [ids, lengths]
    if has_special_tokens_around(config):
        ids[:, 0] = tokens.bos
    if isinstance(model, Transformer) or has_special_tokens_around(config):
        ids[np.arange(B), lengths - 1] = tokens.eos
    if isinstance(model, Transformer):
        targets = random.choice(ids_of_words(config.vocab_size, tokens), (B, min(T, config.max_positions)))
        targets[:, 0] = tokens.bos
        inputs.append(targets)
    found: Limits = defaultdict(float)
    handles = watch(model, found)
    try:
        with torch.inference_mode():
            run = model.encode if isinstance(model, TransformerEncoder) else model
            run(*map(torch.from_numpy, inputs))
    finally:
        for handle in handles:
            handle.remove()
    return {name: STEP ** math.ceil(math.log(max(limit, SMALLEST), STEP)) for name, limit in found.items()}


def has_special_tokens_around(config: LayerConfig) -> bool:
    """Whether the encoder reads texts in special tokens, which have the largest activations in many of that kind."""
    return isinstance(config, EmbedderConfig) or (isinstance(config, ClassifierConfig) and config.pooling == "first")


def ids_of_words(vocab_size: int, tokens: SpecialTokens) -> NDArray[np.int64]:
    """All ids but those of special tokens."""
    return np.setdiff1d(np.arange(vocab_size), list(tokens.model_dump().values()))


def watch(model: Transformer | TransformerClassifier | TransformerEncoder, found: Limits) -> list[Any]:
    """Keep `found` up to date while the model runs, until the handles are removed."""

    def note(name: str, x: Tensor) -> None:
        found[name] = max(found[name], float(x.abs().max()))

    def of_layer(name: str) -> Any:
        return lambda _module, inputs: note(name, inputs[0])

    def of_cross_attention(name: str) -> Any:
        def hook(_module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            note(name, inputs[0])
            note("decoder.memory", inputs[1])

        return hook

    handles = []
    # What an untied output projection reads is noted as what the decoder gives: it is never called here.
    projection = "embedding.tokens" if not isinstance(model, Transformer) or model.output is None else "output"
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            handles.append(module.register_forward_pre_hook(of_layer(name)))
        elif isinstance(module, MultiHeadAttention) and name.endswith("cross_attention"):
            query = f"{name}.input" if module.stacked else f"{name}.query"
            handles.append(module.register_forward_pre_hook(of_cross_attention(query)))
    if isinstance(model, Transformer):
        handles.append(model.decoder.register_forward_hook(lambda _module, _inputs, hidden: note(projection, hidden)))
    return handles
