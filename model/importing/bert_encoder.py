"""Encoders like BERT in the layout of transformers: those of `encoder_namings`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from model.batching import bucket
from model.importing.encoder_decoder import activation_of, tensor_of
from model.importing.encoder_namings import NAMINGS, Naming
from model.importing.hugging_face import CONFIG, number, read_json
from model.importing.imported import ModelImportError
from model.importing.weights_files import read_tensors

POSITIONS, SEGMENTS = (f"embeddings.{name}_embeddings.weight" for name in ("position", "token_type"))
UNUSED_TENSORS = ("pooler.", "embeddings.position_", "embeddings.token_type_ids")
"""Prefixes of tensors that are ignored: a pooler that no head reads, numbers from 0 on, and positions of a model that
does not use them."""
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
    """Read the encoder of a directory. Raises ModelImportError: a file is missing or damaged, or the model is not
    supported."""
    config = read_json(directory, CONFIG)
    kind = str(config.get("model_type"))
    if kind not in NAMINGS:
        raise ModelImportError(f"`model_type` {kind} is not supported as an encoder; {', '.join(NAMINGS)} are")
    naming = NAMINGS[kind]
    _refuse_variants(config)
    tensors = {_current_name(name): tensor for name, tensor in read_tensors(directory).items()}
    prefix = naming.prefix if any(name.startswith(naming.prefix) for name in tensors) else ""
    wanted = ReadTensors(
        {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
    )
    if naming.tokens not in wanted and naming.tied in tensors and config.get("tie_word_embeddings", True):
        wanted[naming.tokens] = tensors[naming.tied]
    fields = _fields(config, naming)
    weights = {
        **dict(_embedding(wanted, config, naming, fields)),
        **dict(_layers(wanted, naming, fields)),
        **dict(naming.tables(wanted, config, fields)),
    }
    wanted.refuse_more(naming.family)
    fields["vocab_size"] = len(weights["embedding.tokens.weight"])
    table = weights.get("embedding.encoding")
    fields["max_positions"] = number(config, "max_position_embeddings") if table is None else len(table)
    return ImportedEncoder(naming, config, fields, weights, tensors)


def second_segment(encoder: ImportedEncoder) -> Tensor | None:
    """Return what is added to tokens of a second text, besides what is added to all tokens; None for nothing."""
    prefix = encoder.naming.prefix
    for name in (f"{prefix}{SEGMENTS}", SEGMENTS):
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


def _fields(config: Mapping[str, Any], naming: Naming) -> dict[str, Any]:
    values = dict(naming.fixed)
    for ours, theirs in naming.sizes.items():
        if ours not in naming.fixed:
            values[ours] = number(config, theirs)
        elif config.get(theirs) is not None:
            values[ours] = config[theirs]
    if "activation" in values:
        values["activation"] = activation_of(str(values["activation"]))
    usual = {"norm": "post", "positions": "learned", "embedding_scale": 1.0, "embedding_norm": True}
    return {**values, **usual, **naming.settings(config)}


def _embedding(
    tensors: Mapping[str, Tensor], config: Mapping[str, Any], naming: Naming, fields: Mapping[str, Any]
) -> Iterator[tuple[str, Tensor]]:
    # One text is all of type 0.
    of_all = tensors[SEGMENTS][0] if SEGMENTS in tensors else None
    tokens = tensor_of(tensors, naming.tokens)
    if fields["positions"] == "learned":
        positions = tensor_of(tensors, POSITIONS).float()
        if naming.pads_first:
            padding_id = number(config, "pad_token_id") if naming.padding_id is None else naming.padding_id
            positions = positions[padding_id + 1 :]
        yield "embedding.encoding", positions if of_all is None else positions + of_all
    elif of_all is not None:
        tokens = tokens.float() + of_all
    yield "embedding.tokens.weight", tokens


def _layers(tensors: Mapping[str, Tensor], naming: Naming, fields: Mapping[str, Any]) -> Iterator[tuple[str, Tensor]]:
    for end in ("weight", "bias") if fields.get("bias", True) else ("weight",):
        for our_name, their_name in naming.norms.items():
            yield f"{our_name}.{end}", tensor_of(tensors, f"{their_name}.{end}")
        for i in range(fields["n_encoder_layers"]):
            theirs, ours = f"{naming.layers}{i}", f"encoder.layers.{i}"
            stacked = [tensor_of(tensors, f"{theirs}.{name}.{end}") for name in naming.projections]
            yield f"{ours}.self_attention.input.{end}", torch.cat(stacked)
            for our_name, their_name in naming.parts.items():
                if our_name != "add_norm_self.norm" or i > 0 or fields.get("first_norm", True):
                    yield f"{ours}.{our_name}.{end}", tensor_of(tensors, f"{theirs}.{their_name}.{end}")


class ReadTensors(dict[str, Tensor]):
    """Tensors by name, which note the names that were read."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        super().__init__(tensors)
        self.read = set[str]()

    def __getitem__(self, name: str) -> Tensor:
        self.read.add(name)
        return super().__getitem__(name)

    def refuse_more(self, family: str) -> None:
        """Refuse tensors that nothing has read, which show that the model is not what its config.json says."""
        more = [name for name in self if name not in self.read and not name.startswith(UNUSED_TENSORS)]
        if more:
            raise ModelImportError(
                f"the weights have unknown tensors, which no {family} has: {more[0]} ({len(more)} in all)"
            )


def _current_name(name: str) -> str:
    for older, today in OLDER_NAMES.items():
        name = name.replace(older, today)
    return name
