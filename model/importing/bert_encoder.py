"""Encoders like BERT in the layout of transformers: BERT, DistilBERT, RoBERTa, XLM-RoBERTa, CamemBERT.

Source: Devlin et al. 2019, "BERT"; Liu et al. 2019, "RoBERTa"; Sanh et al. 2019, "DistilBERT".
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from model.batching import bucket
from model.importing.encoder_decoder import activation_of, tensor_of
from model.importing.hugging_face import CONFIG, number, read_json
from model.importing.imported import ModelImportError
from model.importing.weights_files import read_tensors


@dataclass(frozen=True)
class Naming:
    """Names of weights and settings in one family of encoders.

    Attributes:
        prefix: prefix of the encoder's weights if there is a head beside it.
        layers: prefix of a layer's weights, before its number.
        query, key, value: projections of a layer.
        parts: other parts of a layer, by our names.
        sizes: keys of config.json, by our names.
        fixed: values that config.json may leave out.
        tied: the output projection of a language model, to which the token table is tied.
        pads_first: whether positions are counted from after the padding id.
    """

    family: str
    prefix: str
    layers: str
    query: str
    key: str
    value: str
    parts: Mapping[str, str]
    sizes: Mapping[str, str]
    fixed: Mapping[str, Any]
    tied: str
    pads_first: bool = False


def _like_bert(family: str, prefix: str, tied: str, pads_first: bool = False) -> Naming:
    return Naming(
        family,
        prefix,
        layers="encoder.layer.",
        query="attention.self.query",
        key="attention.self.key",
        value="attention.self.value",
        parts={
            "self_attention.output": "attention.output.dense",
            "add_norm_self.norm": "attention.output.LayerNorm",
            "feed_forward.hidden": "intermediate.dense",
            "feed_forward.output": "output.dense",
            "add_norm_feed_forward.norm": "output.LayerNorm",
        },
        sizes={
            "d_model": "hidden_size",
            "n_heads": "num_attention_heads",
            "d_ff": "intermediate_size",
            "n_encoder_layers": "num_hidden_layers",
            "activation": "hidden_act",
            "norm_eps": "layer_norm_eps",
            "dropout": "hidden_dropout_prob",
        },
        fixed={"activation": "gelu", "norm_eps": 1e-12, "dropout": 0.1},
        tied=tied,
        pads_first=pads_first,
    )


TIED_OF_ROBERTA = "lm_head.decoder.weight"

NAMINGS: Mapping[str, Naming] = {
    "bert": _like_bert("BERT", "bert.", "cls.predictions.decoder.weight"),
    "roberta": _like_bert("RoBERTa", "roberta.", TIED_OF_ROBERTA, pads_first=True),
    "xlm-roberta": _like_bert("XLM-RoBERTa", "roberta.", TIED_OF_ROBERTA, pads_first=True),
    "camembert": _like_bert("CamemBERT", "roberta.", TIED_OF_ROBERTA, pads_first=True),
    "distilbert": Naming(
        "DistilBERT",
        "distilbert.",
        layers="transformer.layer.",
        query="attention.q_lin",
        key="attention.k_lin",
        value="attention.v_lin",
        parts={
            "self_attention.output": "attention.out_lin",
            "add_norm_self.norm": "sa_layer_norm",
            "feed_forward.hidden": "ffn.lin1",
            "feed_forward.output": "ffn.lin2",
            "add_norm_feed_forward.norm": "output_layer_norm",
        },
        sizes={
            "d_model": "dim",
            "n_heads": "n_heads",
            "d_ff": "hidden_dim",
            "n_encoder_layers": "n_layers",
            "activation": "activation",
            "dropout": "dropout",
        },
        fixed={"activation": "gelu", "norm_eps": 1e-12, "dropout": 0.1},
        tied="vocab_projector.weight",
    ),
}
"""Naming by model_type."""

WORD_EMBEDDINGS = "embeddings.word_embeddings.weight"
TOKEN_TYPES = "embeddings.token_type_embeddings.weight"
UNUSED_TENSORS = ("pooler.", "embeddings.position_ids", "embeddings.token_type_ids")
"""Prefixes of tensors that are ignored: a pooler that no head reads, and numbers from 0 on."""
OLDER_NAMES = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}


@dataclass(frozen=True)
class ImportedEncoder:
    """An encoder with our names.

    Attributes:
        fields: settings of a LayerConfig and the number of layers, without special tokens.
        weights: weights by our names.
        tensors: all tensors of the file, by its names.
    """

    naming: Naming
    config: Mapping[str, Any]
    fields: dict[str, Any]
    weights: dict[str, Tensor]
    tensors: dict[str, Tensor]

    @property
    def n_positions(self) -> int:
        """Number of positions."""
        return int(self.fields["max_positions"])


def read_encoder(directory: Path) -> ImportedEncoder:
    """Read the encoder of a directory.

    Raises:
        ModelImportError: a file is missing or damaged, or the model is not supported.
    """
    config = read_json(directory, CONFIG)
    kind = str(config.get("model_type"))
    if kind not in NAMINGS:
        raise ModelImportError(f"`model_type` {kind} is not supported as an encoder; {', '.join(NAMINGS)} are")
    naming = NAMINGS[kind]
    _refuse_variants(config)
    fields = _sizes(config, naming)
    tensors = {_current_name(name): tensor for name, tensor in read_tensors(directory).items()}
    prefix = naming.prefix if any(name.startswith(naming.prefix) for name in tensors) else ""
    own = {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
    if WORD_EMBEDDINGS not in own and naming.tied in tensors and config.get("tie_word_embeddings", True):
        own[WORD_EMBEDDINGS] = tensors[naming.tied]
    weights = dict(_embedding(own, config, naming))
    weights.update(_layers(own, fields["n_encoder_layers"], naming))
    _refuse_more(own, fields["n_encoder_layers"], naming)
    fields["vocab_size"], fields["max_positions"] = (
        len(weights[f"embedding.{name}"]) for name in ("tokens.weight", "encoding")
    )
    return ImportedEncoder(naming, config, fields, weights, tensors)


def second_segment(encoder: ImportedEncoder) -> Tensor | None:
    """Return what is added to tokens of a second text, besides what is added to all tokens; None for nothing."""
    prefix = encoder.naming.prefix
    for name in (f"{prefix}{TOKEN_TYPES}", TOKEN_TYPES):
        if (types := encoder.tensors.get(name)) is not None and len(types) > 1:
            second = types[1].float() - types[0].float()
            return second if second.any() else None
    return None


def max_input_tokens(limits: list[int], n_positions: int) -> int:
    """Return the most tokens within all limits whose batch, as it is padded, still has positions."""
    longest = min([*limits, n_positions])
    while bucket(longest) > n_positions:
        longest -= 1
    return longest


def _refuse_variants(config: Mapping[str, Any]) -> None:
    if (kind := config.get("position_embedding_type", "absolute")) != "absolute":
        raise ModelImportError(f"{CONFIG}: `position_embedding_type` is {kind}; it must be absolute")
    for key in ("is_decoder", "add_cross_attention"):
        if config.get(key):
            raise ModelImportError(f"{CONFIG}: `{key}` is set, so the model is a decoder; it must be an encoder")
    if config.get("quantization_config"):
        raise ModelImportError(f"{CONFIG} has `quantization_config`: import the model before quantization")


def _sizes(config: Mapping[str, Any], naming: Naming) -> dict[str, Any]:
    found = dict(naming.fixed)
    for ours, theirs in naming.sizes.items():
        if ours not in naming.fixed:
            found[ours] = number(config, theirs)
        elif config.get(theirs) is not None:
            found[ours] = config[theirs]
    return {
        **found,
        "activation": activation_of(str(found["activation"])),
        "norm": "post",
        "positions": "learned",
        "embedding_scale": 1.0,
        "embedding_norm": True,
    }


def _embedding(
    tensors: Mapping[str, Tensor], config: Mapping[str, Any], naming: Naming
) -> Iterator[tuple[str, Tensor]]:
    yield "embedding.tokens.weight", tensor_of(tensors, WORD_EMBEDDINGS)
    positions = tensor_of(tensors, "embeddings.position_embeddings.weight").float()
    if naming.pads_first:
        positions = positions[number(config, "pad_token_id") + 1 :]
    if TOKEN_TYPES in tensors:
        positions = positions + tensors[TOKEN_TYPES][0]  # one text is all of type 0
    yield "embedding.encoding", positions
    for end in ("weight", "bias"):
        yield f"embedding.norm.{end}", tensor_of(tensors, f"embeddings.LayerNorm.{end}")


def _layers(tensors: Mapping[str, Tensor], n_layers: int, naming: Naming) -> Iterator[tuple[str, Tensor]]:
    for i in range(n_layers):
        theirs, ours = f"{naming.layers}{i}", f"encoder.layers.{i}"
        for end in ("weight", "bias"):
            stacked = [
                tensor_of(tensors, f"{theirs}.{name}.{end}") for name in (naming.query, naming.key, naming.value)
            ]
            yield f"{ours}.self_attention.input.{end}", torch.cat(stacked)
            for our_name, their_name in naming.parts.items():
                yield f"{ours}.{our_name}.{end}", tensor_of(tensors, f"{theirs}.{their_name}.{end}")


def _refuse_more(tensors: Mapping[str, Tensor], n_layers: int, naming: Naming) -> None:
    """Refuse unknown tensors, which show that the model is not what its config.json says."""
    names = (naming.query, naming.key, naming.value, *naming.parts.values())
    known = {f"{naming.layers}{i}.{name}" for i in range(n_layers) for name in names}
    known |= {
        f"embeddings.{name}"
        for name in ("word_embeddings", "position_embeddings", "token_type_embeddings", "LayerNorm")
    }
    more = [name for name in tensors if name.rpartition(".")[0] not in known and not name.startswith(UNUSED_TENSORS)]
    if more:
        raise ModelImportError(
            f"the weights have unknown tensors, which no {naming.family} has: {more[0]} ({len(more)} in all)"
        )


def _current_name(name: str) -> str:
    for older, today in OLDER_NAMES.items():
        name = name.replace(older, today)
    return name
