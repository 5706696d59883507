"""Encoder-decoders of transformers with the layer names of BART: MarianMT, M2M100, NLLB-200.

Legend: E d_model, V vocabulary.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from model.config import Activation, Norm
from model.importing.hugging_face import CONFIG, number
from model.importing.imported import MissingTensorError, ModelImportError

ACTIVATIONS: Mapping[str, Activation] = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "swish": "silu",
    "silu": "silu",
}
"""Activations by their names in transformers."""
VOCABULARY_MULTIPLE = 64
"""Vocabularies are padded to a multiple of it, so that candidates are selected from groups of equal size."""
SHARED_TABLE, ENCODER_TABLE, DECODER_TABLE, OUTPUT = (
    f"{name}.weight" for name in ("model.shared", "model.encoder.embed_tokens", "model.decoder.embed_tokens", "lm_head")
)
"""Names of token tables, of both sides and of each, and of the output projection. A file may have a table that is tied
to others under any one of their names."""
BARE = ("shared.", "encoder.", "decoder.")
"""Beginnings of names in a model without its head."""
_PARTS = {
    "self_attn.out_proj": "self_attention.output",
    "self_attn_layer_norm": "add_norm_self.norm",
    "encoder_attn.out_proj": "cross_attention.output",
    "encoder_attn_layer_norm": "add_norm_cross.norm",
    "fc1": "feed_forward.hidden",
    "fc2": "feed_forward.output",
    "final_layer_norm": "add_norm_feed_forward.norm",
}


def read_dimensions(config: Mapping[str, Any], norm: Norm, activation: str, scales: bool) -> dict[str, Any]:
    """Return the fields of a TransformerConfig that config.json has.

    Args:
        activation, scales: defaults of the family for activation_function and scale_embedding.

    Raises:
        ModelImportError: a field is missing or not supported.
    """
    sizes = {}
    for name, keys in {
        "n_heads": ("encoder_attention_heads", "decoder_attention_heads"),
        "d_ff": ("encoder_ffn_dim", "decoder_ffn_dim"),
    }.items():
        encoder, decoder = (number(config, key) for key in keys)
        if encoder != decoder:
            raise ModelImportError(
                f"{CONFIG}: `{keys[0]}` is {encoder} and `{keys[1]}` is {decoder}; they must be equal"
            )
        sizes[name] = encoder
    return {
        **sizes,
        "d_model": number(config, "d_model"),
        "n_encoder_layers": number(config, "encoder_layers"),
        "n_decoder_layers": number(config, "decoder_layers"),
        "activation": activation_of(str(config.get("activation_function", activation))),
        "norm": norm,
        "embedding_scale": None if config.get("scale_embedding", scales) else 1.0,
        "positions": "learned",
        "dropout": config.get("dropout") or 0.0,
    }


def activation_of(name: str) -> Activation:
    """Convert the name of an activation in transformers. Raises ModelImportError: the activation is not supported."""
    if name not in ACTIVATIONS:
        raise ModelImportError(f"{CONFIG}: activation {name} is not supported; {', '.join(ACTIVATIONS)} are")
    return ACTIVATIONS[name]


def read_embeddings(
    tensors: Mapping[str, Tensor], config: Mapping[str, Any]
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return token tables and output projection by our names, and the fields of a TransformerConfig that follow.

    If config.json says that all are one, further copies in the file, which some conversions got wrong, are ignored
    (`notes_on_copies` names them). If it does not, equal tables are still shared.

    Raises:
        ModelImportError: a tensor is missing.
    """
    tied, shared = (config.get(key, True) for key in ("tie_word_embeddings", "share_encoder_decoder_embeddings"))
    if tied and shared:
        source = target = first_of(tensors, SHARED_TABLE, DECODER_TABLE, ENCODER_TABLE, OUTPUT)
    else:
        source = first_of(tensors, ENCODER_TABLE, SHARED_TABLE, *[DECODER_TABLE] * shared)
        target = first_of(tensors, DECODER_TABLE, SHARED_TABLE, *[ENCODER_TABLE] * shared, *[OUTPUT] * tied)
    n_tokens = round_up(len(target))
    weights, extra = {"embedding.tokens.weight": pad_rows(target, n_tokens)}, dict[str, Any](vocab_size=n_tokens)
    if not torch.equal(source, target):
        extra["source_vocab_size"] = round_up(len(source))
        weights["encoder_embedding.tokens.weight"] = pad_rows(source, extra["source_vocab_size"])
    if not tied:
        extra["tied_output"] = False
        weights["output.weight"] = pad_rows(tensor_of(tensors, OUTPUT), n_tokens)
    return weights, extra


def notes_on_copies(tensors: Mapping[str, Tensor], config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a note if tables differ that config.json says are one."""
    tied, shared = (config.get(key, True) for key in ("tie_word_embeddings", "share_encoder_decoder_embeddings"))
    names = [SHARED_TABLE, DECODER_TABLE, ENCODER_TABLE, OUTPUT] if shared else [DECODER_TABLE, OUTPUT]
    used = next((name for name in names if name in tensors), None)
    if not tied or used is None:
        return ()
    others = [name for name in names if name in tensors and name != used]
    return tuple(
        f"{name} differs from {used}; {CONFIG} ties them, so that {used} is used"
        for name in others
        if not torch.equal(tensors[name], tensors[used])
    )


def position_tables(encoding: Tensor, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return a table of positions for each table of tokens."""
    sides = [name.removesuffix("tokens.weight") for name in weights if name.endswith("embedding.tokens.weight")]
    return {f"{side}encoding": encoding.clone() for side in sides}


def read_layers(
    tensors: Mapping[str, Tensor], n_layers: int, side: str, final_norm: bool
) -> Iterator[tuple[str, Tensor]]:
    """Yield the layers of encoder or decoder by our names. Raises ModelImportError: a tensor is missing."""
    attentions = {"self_attn": "self_attention"} | ({"encoder_attn": "cross_attention"} if side == "decoder" else {})
    for i in range(n_layers):
        theirs, ours = f"model.{side}.layers.{i}", f"{side}.layers.{i}"
        for end in ("weight", "bias"):
            for their_name, our_name in attentions.items():
                parts = [tensor_of(tensors, f"{theirs}.{their_name}.{part}_proj.{end}") for part in "qkv"]
                yield f"{ours}.{our_name}.input.{end}", torch.cat(parts)
            for their_name, our_name in _PARTS.items():
                if side == "decoder" or not their_name.startswith("encoder_attn"):
                    yield f"{ours}.{our_name}.{end}", tensor_of(tensors, f"{theirs}.{their_name}.{end}")
    for end in ("weight", "bias") if final_norm else ():
        yield f"{side}.final_norm.{end}", tensor_of(tensors, f"model.{side}.layer_norm.{end}")


def with_head_names(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return tensors by their names in a model with its head, if they are of a model without it."""
    return {f"model.{name}" if name.startswith(BARE) else name: tensor for name, tensor in tensors.items()}


def tensor_of(tensors: Mapping[str, Tensor], name: str) -> Tensor:
    """Return a tensor; raise MissingTensorError if there is none."""
    if name not in tensors:
        raise MissingTensorError(name)
    return tensors[name]


def first_of(tensors: Mapping[str, Tensor], *names: str) -> Tensor:
    """Return the tensor that has one of these names, the first that there is; raise ModelImportError if none is."""
    return tensor_of(tensors, next((name for name in names if name in tensors), names[0]))


def written_tokens(n_tokens: int, size: int, banned: Iterable[int]) -> Tensor:
    """Return which of n_tokens rows of a table (V) a translation may have: those of the vocabulary of this size."""
    is_written = torch.arange(n_tokens) < size
    is_written[[*banned]] = False
    return is_written


def pad_rows(rows: Tensor, n_rows: int) -> Tensor:
    """Pad rows (V, ...) with zeros to n_rows."""
    missing = n_rows - len(rows)
    return torch.cat([rows, rows.new_zeros(missing, *rows.shape[1:])]) if missing else rows


def round_up(size: int) -> int:
    """Round up to a multiple of `VOCABULARY_MULTIPLE`."""
    return -(-size // VOCABULARY_MULTIPLE) * VOCABULARY_MULTIPLE
