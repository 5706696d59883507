"""Weights of Marian's own files (.npz, .bin) by our names, and the options of the model.

Marian's matrices are (in, out), PyTorch's (out, in). Legend: E d_model, F d_ff, V vocabulary.
"""

import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, PositiveInt, ValidationError, model_validator
from torch import Tensor

from model.config import Activation
from model.importing.encoder_decoder import pad_rows
from model.importing.imported import ModelImportError
from model.importing.packed_files import refuse_bomb
from model.importing.yaml_files import yaml_of

OPTIONS = "special:model.yml"
"""Array with the training options, as bytes, among the weights."""
ACTIVATIONS: Mapping[str, Activation] = {"swish": "silu", "relu": "relu", "gelu": "gelu"}

SUPPORTED_VALUES = {
    "type": ("a model of another type", ("transformer",)),
    "transformer-preprocess": ("norms before the layers (pre-norm)", ("", "d")),
    "transformer-postprocess": ("other steps behind its layers than sum and norm", ("dan", "an")),
    "transformer-postprocess-emb": ("normalized embeddings", ("d", "")),
    "transformer-postprocess-top": ("steps behind its last layers", ("", "d")),
    "transformer-decoder-autoreg": ("a decoder with average attention (AAN)", ("self-attention", "rnn")),
    "transformer-ffn-depth": ("feed-forward layers of another depth", ("2",)),
    "transformer-decoder-ffn-depth": ("feed-forward layers of another depth", ("0", "2")),
    "transformer-tied-layers": ("layers that share weights (tied layers)", ("[]",)),
    "transformer-no-projection": ("attention without output projection", ("false",)),
    "transformer-pool": ("pooling in place of attention", ("false",)),
    "transformer-attention-mask": ("attention with a bias by distance", ("default",)),
    "transformer-disable-position-embeddings": ("no positions", ("false",)),
    "transformer-train-position-embeddings": ("learned positions", ("false",)),
    "output-omit-bias": ("logits without a bias", ("false",)),
    "right-left": ("targets written from right to left", ("false",)),
    "lemma-dim-emb": ("factors", ("0",)),
    "ulr": ("universal embeddings (ULR)", ("false",)),
}
"""By option: a description of other values, and the supported values ("d" is dropout)."""
ENCODER_TABLE, DECODER_TABLE, OUTPUT = "encoder_Wemb", "decoder_Wemb", "decoder_ff_logit_out_Wt"
"""Names of token tables and of the output projection, where they are not all one, "Wemb"."""
NUMPY_ERRORS = (ValueError, OSError, EOFError, KeyError, TypeError, RuntimeError, zipfile.BadZipFile, zlib.error)
"""Errors that NumPy raises for damaged files."""


class Architecture(BaseModel):
    """Dimensions and alignment layer of a model, by the options of Marian."""

    model_config = ConfigDict(alias_generator=lambda name: name.replace("_", "-"), frozen=True)

    dim_emb: PositiveInt
    enc_depth: PositiveInt
    dec_depth: PositiveInt
    transformer_heads: PositiveInt
    transformer_dim_ffn: PositiveInt
    transformer_decoder_dim_ffn: int = 0
    """0 means as in the encoder."""
    transformer_decoder_autoreg: Literal["self-attention", "rnn"] = "self-attention"
    dec_cell: str = "gru"
    """Unit that a recurrent decoder layer has in place of self-attention."""
    transformer_rnn_projection: bool = False
    layer_normalization: bool = False
    """Whether recurrent units have norms inside."""
    transformer_ffn_activation: Literal["swish", "relu", "gelu"]
    transformer_guided_alignment_layer: PositiveInt | Literal["last"] = "last"
    """Layer that aligns, counted from 1."""
    tied_embeddings: bool = False
    """Whether the decoder's embedding is the output projection."""
    tied_embeddings_src: bool = False
    """Whether encoder and decoder share an embedding."""
    tied_embeddings_all: bool = False

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        if self.transformer_decoder_dim_ffn not in (0, self.transformer_dim_ffn):
            raise ValueError(
                f"`transformer-dim-ffn` is {self.transformer_dim_ffn} and `transformer-decoder-dim-ffn` is "
                f"{self.transformer_decoder_dim_ffn}; they must be equal"
            )
        if self.dim_emb % self.transformer_heads:
            raise ValueError(
                f"`dim-emb` is {self.dim_emb}; it must be a multiple of `transformer-heads`, {self.transformer_heads}"
            )
        if self.is_recurrent and self.dec_cell != "ssru":
            raise ValueError(f"`dec-cell` is {self.dec_cell}; it must be ssru")
        if self.is_recurrent and (self.transformer_rnn_projection or self.layer_normalization):
            raise ValueError("SSRUs with `transformer-rnn-projection` or `layer-normalization` are not supported")
        if self.alignment_layer >= self.dec_depth:
            raise ValueError(f"`transformer-guided-alignment-layer` must be at most `dec-depth`, {self.dec_depth}")
        return self

    @property
    def is_recurrent(self) -> bool:
        """Whether SSRUs take the place of the decoder's self-attention."""
        return self.transformer_decoder_autoreg == "rnn"

    @property
    def alignment_layer(self) -> int:
        """Layer that aligns, counted from 0."""
        layer = self.transformer_guided_alignment_layer
        return (self.dec_depth if layer == "last" else layer) - 1

    @property
    def is_tied_output(self) -> bool:
        return self.tied_embeddings or self.tied_embeddings_all

    @property
    def is_shared_embedding(self) -> bool:
        return self.tied_embeddings_src or self.tied_embeddings_all


@dataclass(frozen=True)
class MarianFile:
    """The arrays of a .npz file, and its options."""

    name: str
    architecture: Architecture
    arrays: dict[str, Any]


def read_npz(path: Path) -> MarianFile:
    """Read a file of weights. Raises ModelImportError: the file is damaged, or the model is not supported."""
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as archive:
            refuse_bomb(path, sum(entry.file_size for entry in archive.zip.infolist()))
            arrays = {name: archive[name] for name in archive.files}
    except ModelImportError:
        raise
    except NUMPY_ERRORS as error:
        raise ModelImportError(f"{path.name} is damaged, or is no .npz file") from error
    return marian_file(path.name, arrays)


def marian_file(name: str, arrays: dict[str, Any]) -> MarianFile:
    """Separate the arrays of a file from its options. Raises ModelImportError: the file has no options, or the model is
    not supported."""
    if OPTIONS not in arrays:
        raise ModelImportError(f"{name} has no {OPTIONS}, the options of the model")
    text = arrays.pop(OPTIONS).tobytes().rstrip(b"\0").decode("utf-8", errors="replace")
    options = yaml_of(text, f"{OPTIONS} of {name}")
    _refuse_others(options)
    try:
        architecture = Architecture.model_validate(options)
    except ValidationError as error:
        first = error.errors()[0]
        said = ": ".join([*map(str, first["loc"][:1]), first["msg"]])
        raise ModelImportError(f"{OPTIONS} of {name}: {said}") from error
    return MarianFile(name, architecture, arrays)


def _refuse_others(options: Mapping[str, Any]) -> None:
    for option, (what, values) in SUPPORTED_VALUES.items():
        if option in options and (value := _as_text(options[option])) not in values:
            raise ModelImportError(f"{what} (`{option}` {value}) is not supported")


def _as_text(value: object) -> str:
    return f"[{', '.join(map(str, value))}]" if isinstance(value, list) else str(value)


class Weights:
    """Arrays of a file, each of which is read once.

    Args:
        file: the file with the arrays.
        vocab_size: V, with the rows that are added here.
    """

    def __init__(self, file: MarianFile, vocab_size: int) -> None:
        self._left = dict(file.arrays)
        self._architecture = file.architecture
        self._vocab_size = vocab_size

    def by_our_names(self, n_source: int, n_target: int) -> dict[str, Tensor]:
        """Return all weights, for vocabularies of these sizes. Raises ModelImportError: an array is missing, unknown,
        or has a wrong shape."""
        architecture = self._architecture
        tensors = dict(self._embeddings(n_source, n_target))
        for i in range(architecture.enc_depth):
            theirs, ours = f"encoder_l{i + 1}", f"encoder.layers.{i}"
            tensors |= self._attention(f"{theirs}_self", ours, "self") | self._feed_forward(f"{theirs}_ffn", ours)
        for i in range(architecture.dec_depth):
            theirs, ours = f"decoder_l{i + 1}", f"decoder.layers.{i}"
            if architecture.is_recurrent:
                tensors |= self._ssru(f"{theirs}_rnn", ours)
            else:
                tensors |= self._attention(f"{theirs}_self", ours, "self")
            tensors |= self._attention(f"{theirs}_context", ours, "cross") | self._feed_forward(f"{theirs}_ffn", ours)
        if self._left:
            raise ModelImportError(f"the weights have an unknown array: {min(self._left)}")
        return tensors

    def _embeddings(self, n_source: int, n_target: int) -> Iterator[tuple[str, Tensor]]:
        d, shared = self._architecture.dim_emb, self._architecture.is_shared_embedding
        tied = self._architecture.is_tied_output
        names = ["Wemb", DECODER_TABLE, ENCODER_TABLE] if shared else [DECODER_TABLE]
        yield "embedding.tokens.weight", self._rows(n_target, d, *names, *[OUTPUT] * tied)
        if not shared:
            yield "encoder_embedding.tokens.weight", self._rows(n_source, d, ENCODER_TABLE)
        if not tied:
            yield "output.weight", self._rows(n_target, d, OUTPUT)
        yield "output_bias", pad_rows(self._take("decoder_ff_logit_out_b", 1, n_target)[0], self._vocab_size)

    def _rows(self, n_pieces: int, d: int, *names: str) -> Tensor:
        """Return a table, which a file may have under any one of the names that are tied."""
        name = next((name for name in names if name in self._left), names[0])
        n_rows = len(self._left.get(name, range(n_pieces)))
        if n_rows != n_pieces:
            raise ModelImportError(f"{name} has {n_rows} rows, but the vocabulary has {n_pieces} pieces")
        return pad_rows(self._take(name, n_pieces, d), self._vocab_size)

    def _attention(self, theirs: str, ours: str, kind: str) -> dict[str, Tensor]:
        d = self._architecture.dim_emb
        return {
            f"{ours}.{kind}_attention.input.weight": torch.cat([self._take(f"{theirs}_W{x}", d, d).T for x in "qkv"]),
            f"{ours}.{kind}_attention.input.bias": torch.cat([self._take(f"{theirs}_b{x}", 1, d)[0] for x in "qkv"]),
            f"{ours}.{kind}_attention.output.weight": self._take(f"{theirs}_Wo", d, d).T,
            f"{ours}.{kind}_attention.output.bias": self._take(f"{theirs}_bo", 1, d)[0],
            **self._norm(f"{theirs}_Wo_ln", f"{ours}.add_norm_{kind}.norm"),
        }

    def _ssru(self, theirs: str, ours: str) -> dict[str, Tensor]:
        d = self._architecture.dim_emb
        bias = self._take(f"{theirs}_bf", 1, d)[0]
        return {
            f"{ours}.self_attention.input.weight": torch.cat(
                [self._take(f"{theirs}_{x}", d, d).T for x in ("W", "Wf")]
            ),
            f"{ours}.self_attention.input.bias": torch.cat([torch.zeros_like(bias), bias]),
            **self._norm(f"{theirs}_ffn_ln", f"{ours}.add_norm_self.norm"),
        }

    def _feed_forward(self, theirs: str, ours: str) -> dict[str, Tensor]:
        d, d_ff = self._architecture.dim_emb, self._architecture.transformer_dim_ffn
        return {
            f"{ours}.feed_forward.hidden.weight": self._take(f"{theirs}_W1", d, d_ff).T,
            f"{ours}.feed_forward.hidden.bias": self._take(f"{theirs}_b1", 1, d_ff)[0],
            f"{ours}.feed_forward.output.weight": self._take(f"{theirs}_W2", d_ff, d).T,
            f"{ours}.feed_forward.output.bias": self._take(f"{theirs}_b2", 1, d)[0],
            **self._norm(f"{theirs}_ffn_ln", f"{ours}.add_norm_feed_forward.norm"),
        }

    def _norm(self, theirs: str, ours: str) -> dict[str, Tensor]:
        d = self._architecture.dim_emb
        return {
            f"{ours}.weight": self._take(f"{theirs}_scale", 1, d)[0],
            f"{ours}.bias": self._take(f"{theirs}_bias", 1, d)[0],
        }

    def _take(self, name: str, *shape: int) -> Tensor:
        if name not in self._left:
            raise ModelImportError(f"the weights have no {name}")
        array = self._left.pop(name)
        if array.shape != shape or array.dtype.kind != "f":
            raise ModelImportError(f"{name} is {array.dtype} {array.shape}; it must be floats {shape}")
        return torch.from_numpy(array)
