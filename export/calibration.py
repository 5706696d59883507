"""Activations that dense layers read, recorded so that they can be quantized with a constant scale.

The model reads texts with PyTorch: those that a user gives, or else our own in its languages. A translator then reads
its own translations of them. For languages without texts here it reads random tokens.

Legend: B sequences, S source, T target, N rows, K input width of a layer.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from export.padding import pad
from export.texts import TEXTS, texts_in
from manifest.schema import Language, SpecialTokens
from model.checkpoint import Checkpoint
from model.config import TransformerConfig
from model.decoding.search import greedy_search
from model.networks.attention import MultiHeadAttention
from model.networks.transformer import Transformer, TransformerClassifier, TransformerEncoder
from model.tokenizer import cut_source

ServedModel = Transformer | TransformerClassifier | TransformerEncoder

Activations = dict[str, Tensor]
"""Inputs (N, K) of a layer, by its name."""
Inputs = tuple[Tensor, ...]
"""One sequence alone: ids (1, S) and lengths (1), and for a translator also a target (1, T) that begins with <s>."""
MAX_TEXTS, MAX_TOKENS = 64, 64
"""Largest number of a user's texts that are read, and of tokens of each."""
MAX_OWN_TEXTS = 24
"""Largest number of our own texts that a model of many languages reads."""
MAX_TARGET_TOKENS = 32
"""Largest number of tokens of a translation: PyTorch writes them one by one."""
ROWS_PER_LAYER = 1000
"""Approximate number of rows kept per layer: of a large model more would take as much memory as the model."""
BATCH_SIZE = 64
"""Texts translated side by side: a large model takes hardly longer for many than for a few."""
B, S, T = 24, 32, 32
"""Number of sequences of random tokens, longest source, and length of each target."""


@dataclass(frozen=True)
class CalibrationSources:
    """Token ids that a model reads in calibration."""

    ids: list[list[int]]
    prefix: tuple[int, ...] = ()
    """Tokens with which their translations begin."""


def calibration_sources(checkpoint: Checkpoint, texts: Sequence[str] = ()) -> list[CalibrationSources]:
    """Return the sources that calibrate a checkpoint's model; none if there are no texts in its languages.

    Args:
        texts: a user's, in the first source language of a translator; of many texts only some are used.
    """
    texts = texts[:: 1 + len(texts) // MAX_TEXTS]
    config = checkpoint.config.model
    if not isinstance(config, TransformerConfig):
        texts = texts or TEXTS["en"]
        return [CalibrationSources(cut_sequences(checkpoint, checkpoint.encode([*texts, *checkpoint.pairs_of(texts)])))]
    pairs = [(config.sources[0], config.targets[0])] if texts else directions(config)
    every = -(-len(pairs) * len(TEXTS["en"]) // MAX_OWN_TEXTS)
    return [
        CalibrationSources(
            cut_sequences(
                checkpoint, checkpoint.encode(texts or texts_in(source.code)[i % every :: every], source, target)
            ),
            target.target_prefix,
        )
        for i, (source, target) in enumerate(pairs)
    ]


def directions(config: TransformerConfig) -> list[tuple[Language, Language]]:
    """Return one pair for each source language that has texts here; the target languages take turns."""
    pairs = []
    for i, source in enumerate(language for language in config.sources if texts_in(language.code)):
        others = [language for language in config.targets if language.code != source.code] or config.targets
        known = [language for language in others if texts_in(language.code)] or others
        pairs.append((source, known[i % len(known)]))
    return pairs


def cut_sequences(checkpoint: Checkpoint, sequences: list[list[int]]) -> list[list[int]]:
    """Cut each sequence to the number of tokens that are read."""
    return [cut_source(ids, min(MAX_TOKENS, checkpoint.config.max_tokens)) for ids in sequences]


@torch.inference_mode()
def record_activations(model: ServedModel, inputs: Sequence[Inputs]) -> Activations:
    """Return the inputs of each dense layer, of cross-attention to the source (decoder.memory) and of the output
    projection (embedding.tokens, or output) while the model reads these sequences.
    """
    n_tokens = max(sum(each[side].numel() for each in inputs) for side in range(0, len(inputs[0]), 2))
    rows_by_layer: dict[str, list[Tensor]] = defaultdict(list)
    handles = record_layer_inputs(model, rows_by_layer, every=-(-n_tokens // ROWS_PER_LAYER))
    try:
        for each in inputs:
            (model.encode if isinstance(model, TransformerEncoder) else model)(*each)
    finally:
        for handle in handles:
            handle.remove()
    return {name: torch.cat(rows) for name, rows in rows_by_layer.items()}


def calibration_inputs(model: ServedModel, read: Sequence[CalibrationSources]) -> list[Inputs]:
    """Return the inputs for each sequence, which for a translator have its own translation, or random tokens if there
    are no sequences."""
    tokens = model.config.special_tokens
    limit = min(MAX_TARGET_TOKENS, model.config.max_positions)
    pairs = [(each.prefix, sequence) for each in read for sequence in each.ids]
    inputs: list[Inputs] = []
    for size in dict.fromkeys(len(prefix) for prefix, _ in pairs):
        same = [pair for pair in pairs if len(pair[0]) == size]
        for start in range(0, len(same), BATCH_SIZE):
            prefixes, ids = zip(*same[start : start + BATCH_SIZE], strict=True)
            alone = [(torch.tensor([sequence]), torch.tensor([len(sequence)])) for sequence in ids]
            if not isinstance(model, Transformer):
                inputs += alone
                continue
            padded, lengths = map(torch.from_numpy, pad(ids, tokens.pad))
            targets = greedy_search(model, padded, lengths, limit, prefixes)
            inputs += [
                (*source, torch.tensor([[tokens.bos, *target.ids[: limit - 1]]]))
                for source, target in zip(alone, targets, strict=True)
            ]
    return inputs or random_inputs(model)


def random_inputs(model: ServedModel) -> list[Inputs]:
    """Return sequences of random tokens."""
    random = np.random.default_rng(0)
    config, tokens = model.config, model.config.special_tokens
    source = config.encoder_layer if isinstance(config, TransformerConfig) else config
    size = min(S, config.max_positions)
    drawn: list[Inputs] = []
    for length in random.integers(1, size + 1, B):
        ids = random.choice(ids_of_words(source.vocab_size, tokens), (1, length))
        inputs = [ids, np.array([length])]
        if isinstance(model, Transformer):
            ids[0, -1] = tokens.eos
            targets = random.choice(ids_of_words(config.vocab_size, tokens), (1, min(T, config.max_positions)))
            targets[0, 0] = tokens.bos
            inputs.append(targets)
        drawn.append(tuple(map(torch.from_numpy, inputs)))
    return drawn


def ids_of_words(vocab_size: int, tokens: SpecialTokens) -> NDArray[np.int64]:
    """Return all ids but those of special tokens."""
    return np.setdiff1d(np.arange(vocab_size), list(tokens.model_dump().values()))


def record_layer_inputs(model: ServedModel, rows_by_layer: dict[str, list[Tensor]], every: int) -> list[Any]:
    """Record every `every`-th row that layers read into `found`, until the returned handles are removed."""

    def note(name: str, x: Tensor) -> None:
        rows_by_layer[name].append(x.flatten(0, -2)[::every].clone())

    def of_layer(name: str) -> Any:
        return lambda _module, inputs: note(name, inputs[0])

    def of_cross_attention(name: str, is_first: bool) -> Any:
        def hook(_module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            note(name, inputs[0])
            if is_first:
                note("decoder.memory", inputs[1])

        return hook

    handles = []
    # The output projection is not called here: it reads what the decoder returns.
    projection = "embedding.tokens" if not isinstance(model, Transformer) or model.output is None else "output"
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            handles.append(module.register_forward_pre_hook(of_layer(name)))
        elif isinstance(module, MultiHeadAttention) and name.endswith("cross_attention"):
            query = f"{name}.input" if module.stacked else f"{name}.query"
            is_first = name == "decoder.layers.0.cross_attention"
            handles.append(module.register_forward_pre_hook(of_cross_attention(query, is_first)))
    if isinstance(model, Transformer):
        handles.append(model.decoder.register_forward_hook(lambda _module, _inputs, hidden: note(projection, hidden)))
    return handles
