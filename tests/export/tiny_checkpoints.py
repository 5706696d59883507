"""Tiny random checkpoints, all dimensions different."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import torch
from tokenizers import processors
from torch import nn

from export.proof import TEXTS
from manifest.schema import Precision, Provider
from model.checkpoint import build_model, load_checkpoint, save_checkpoint
from model.networks.transformer import Transformer, TransformerClassifier
from model.tokenizer import BOS_ID, EOS_ID, PAD_ID, train_tokenizer
from tests.model.tiny_configs import configured

Kind = Literal[
    "translation",
    "translation_post_norm",
    "translation_rotary",
    "translation_hard",
    "translation_relative",
    "translation_ssru",
    "mean_classifier",
    "max_classifier",
    "first_classifier",
    "disentangled_classifier",
    "pair_classifier",
    "embedder",
    "local_embedder",
]

LIKE_BERT: dict[str, Any] = {
    "positions": "learned",
    "activation": "gelu",
    "embedding_scale": 1.0,
    "embedding_norm": True,
    "norm_eps": 1e-12,
}
LIKE_T5: dict[str, Any] = {
    "norm": "pre",
    "norm_type": "rms",
    "bias": False,
    "positions": "none",
    "relative_positions": {"buckets": 8, "max_distance": 20},
    "head_dim": 16,
    "beta": 0.3,
    "embedding_scale": 1.0,
    "activation": "geglu_tanh",
}
LAYERS: dict[str, Any] = {
    "vocab_size": 300,
    "d_model": 24,
    "n_heads": 3,
    "d_ff": 40,
    "n_encoder_layers": 2,
    "max_positions": 70,
}
TRANSLATION = LAYERS | {"task": "translation", "n_decoder_layers": 1, "source": "en", "target": "fr"}
CLASSIFICATION = LAYERS | {"task": "classification", "labels": ["bad", "good", "odd", "dull", "long"]}
MODELS: dict[Kind, dict[str, Any]] = {
    "translation": TRANSLATION | {"norm": "pre", "n_encoder_layers": 3, "n_decoder_layers": 2},
    "translation_post_norm": TRANSLATION | {"norm": "post"},
    "translation_rotary": TRANSLATION
    | {"positions": "rotary", "activation": "swiglu", "d_encoder": 36, "beta": 0.4, "norm": "pre"},
    "translation_hard": TRANSLATION | {"attention": "hard", "positions": "learned", "activation": "gelu"},
    "translation_relative": TRANSLATION | LIKE_T5 | {"n_decoder_layers": 2},
    "translation_ssru": TRANSLATION
    | {"n_decoder_layers": 2, "decoder_self": "ssru", "shortlist": {"first": 40, "own": True, "n_entries": 3000}},
    "mean_classifier": CLASSIFICATION | {"pooling": "mean", "norm": "pre", "n_encoder_layers": 3},
    "max_classifier": CLASSIFICATION | {"pooling": "max", "norm": "post"},
    "first_classifier": CLASSIFICATION | LIKE_BERT | {"pooling": "first", "pooler": "tanh"},
    "disentangled_classifier": CLASSIFICATION
    | LIKE_BERT
    | {"n_encoder_layers": 1, "positions": "none", "beta": 0.2, "disentangled": {"buckets": 8, "max_distance": 40}}
    | {"pooling": "mean_states", "pooler": "gelu", "pooler_norm": True},
    "local_embedder": LAYERS
    | LIKE_BERT
    | {"task": "embedding", "activation": "geglu", "bias": False, "norm": "pre", "first_norm": False}
    | {"positions": "rotary", "rotary_base": 90.0}
    | {"local_attention": {"layers": [1], "reach": 3, "rotary_base": 40.0}},
    "pair_classifier": CLASSIFICATION
    | LIKE_BERT
    | {"pooling": "first", "pooler": "tanh", "labels": ["near"], "pairs": "segments"},
    "embedder": LAYERS
    | LIKE_BERT
    | {
        "task": "embedding",
        "pooling": ["mean", "max"],
        "dense": [{"d_output": 20, "activation": "tanh"}, {"d_output": 12, "bias": False}],
    },
}
MAX_SOURCE_TOKENS = 60

MakeCheckpoint = Callable[[Kind], Path]
MakeArtifact = Callable[[Kind, Precision], Path]

GRAPHS: list[tuple[Precision, Provider]] = [("fp32", "cpu"), ("int8", "cpu"), ("fp16", "cuda")]
"""Precisions and providers of every kind of graph: float32, int8 and float16."""


def write_checkpoint(directory: Path, kind: Kind) -> None:
    """Write a checkpoint of a kind of model with random weights."""
    shares = {"translation": 1.0, "translation_post_norm": 0.95}  # all tokens, and nearly all: none is looked up
    write_model(directory, kind, MODELS[kind], target_share=shares.get(kind, 0.6))


def write_model(directory: Path, name: str, model: dict[str, Any], eos: float = 5, target_share: float = 1.0) -> None:
    """Write a checkpoint of any model with random weights; the embedding of </s> is `eos` times as large.

    Args:
        target_share: share of the tokens that a translation may have.
    """
    config = configured(model, name, max_tokens=MAX_SOURCE_TOKENS)
    built = build_model(config)
    randomize(built, eos, target_share)
    tokenizer = train_tokenizer(TEXTS, config.model.vocab_size, end_of_sequence=config.model.task == "translation")
    if getattr(config.model, "pairs", None):
        around = [("<s>", BOS_ID), ("</s>", EOS_ID)]
        template = "<s> $A </s>", "<s>:0 $A:0 </s>:0 $B:1 </s>:1"
        tokenizer.post_processor = processors.TemplateProcessing(*template, special_tokens=around)
    save_checkpoint(directory, config, built.state_dict(), tokenizer)


def translator_of(checkpoint: Path) -> Transformer:
    model = load_checkpoint(checkpoint).model
    assert isinstance(model, Transformer)
    return model


def classifier_of(checkpoint: Path) -> TransformerClassifier:
    model = load_checkpoint(checkpoint).model
    assert isinstance(model, TransformerClassifier)
    return model


def randomize(model: nn.Module, eos: float, target_share: float) -> None:
    """Set weights with which greedy search wanders through the vocabulary and may end.

    PyTorch's default weights make a tied decoder repeat its last token for ever, and leave all norms equal.
    """
    random = torch.Generator().manual_seed(2)
    for name, parameter in model.named_parameters():
        scale = 1.0 if "norm" in name else 0.2 if "tokens" in name else 0.25
        parameter.data = torch.randn(parameter.shape, generator=random) * (0.05 if name.endswith("bias") else scale)
        if name.endswith("tokens.weight"):
            parameter.data[EOS_ID] *= eos
    for name, buffer in model.named_buffers():
        if name == "is_target_token":
            buffer.copy_(torch.rand(buffer.shape, generator=random) < target_share)
            buffer[EOS_ID] = True
            if getattr(model, "shortlist", None) is not None:
                buffer[PAD_ID] = False
        if name == "shortlist.offsets":
            buffer[1:-1] = torch.randint(3000, (len(buffer) - 2,), generator=random).sort().values
            buffer[-1] = 3000
        if name == "shortlist.tokens":
            buffer.copy_(torch.randint(300, buffer.shape, generator=random))
