"""Small models with random weights, written by CTranslate2's own specifications."""

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
from ctranslate2.specs import TransformerSpec
from ctranslate2.specs.common_spec import Activation, LayerNormSpec, LinearSpec

from model.importing.positions import sines_then_cosines
from model.networks.positions import sinusoidal_encoding

D_MODEL, N_HEADS, D_FF, N_POSITIONS = 24, 3, 40, 300
WORDS = [f"▁w{i}" for i in range(40)]
OPENNMT_TOKENS = ["<unk>", "<blank>", "<s>", "</s>", *WORDS]
OPUS_TOKENS = ["</s>", "<unk>", ">>vie<<", *WORDS]
Variables = Mapping[str, Any]

TYPES = ("float32", "int8", "int16", "int32", "float16", "bfloat16")


def random_spec(
    tokens: Sequence[str],
    target_tokens: Sequence[str] | None = None,
    *,
    pre_norm: bool = True,
    activation: Activation = Activation.RELU,
    layernorm_embedding: bool = False,
    encodings: bool = True,
    scale: float | bool = True,
    tied: bool = True,
    n_encoder_layers: int = 2,
    n_decoder_layers: int = 3,
    alignment: tuple[int, int] = (-1, 1),
    settings: Mapping[str, Any] | None = None,
) -> TransformerSpec:
    """Build a model like OpenNMT-py's by default."""
    random = np.random.default_rng(7)
    layer, heads = alignment
    spec = TransformerSpec.from_config(
        (n_encoder_layers, n_decoder_layers),
        N_HEADS,
        pre_norm=pre_norm,
        activation=activation,
        layernorm_embedding=layernorm_embedding,
        alignment_layer=layer,
        alignment_heads=heads,
    )

    def numbers(*shape: int, scale: float = 1.0) -> np.ndarray:
        return (random.normal(size=shape) * scale).astype(np.float32)

    def fill_linear(linear: LinearSpec, n_out: int, n_in: int) -> None:
        linear.weight, linear.bias = numbers(n_out, n_in, scale=1.5 * n_in**-0.5), numbers(n_out, scale=0.2)

    def fill_norm(norm: LayerNormSpec) -> None:
        norm.gamma, norm.beta = 1 + numbers(D_MODEL, scale=0.2), numbers(D_MODEL, scale=0.2)

    def fill_attention(attention: Any, *n_rows: int) -> None:
        for linear, n in zip(attention.linear, n_rows, strict=True):
            fill_linear(linear, n * D_MODEL, D_MODEL)
        fill_norm(attention.layer_norm)

    source_table = numbers(len(tokens), D_MODEL, scale=D_MODEL**-0.5)
    table = source_table if target_tokens is None else numbers(len(target_tokens), D_MODEL, scale=D_MODEL**-0.5)
    spec.encoder.embeddings[0].weight, spec.decoder.embeddings.weight = source_table, table
    for side in (spec.encoder, spec.decoder):
        side.scale_embeddings = scale
        if encodings:
            side.position_encodings.encodings = sinusoidal_encoding(N_POSITIONS, D_MODEL).numpy()
        if pre_norm:
            fill_norm(side.layer_norm)
        if layernorm_embedding:
            fill_norm(side.layernorm_embedding)
        for block in side.layer:
            fill_attention(block.self_attention, 3, 1)
            if side is spec.decoder:
                fill_attention(block.attention, 1, 2, 1)
            fill_linear(block.ffn.linear_0, D_FF, D_MODEL)
            fill_linear(block.ffn.linear_1, D_MODEL, D_FF)
            fill_norm(block.ffn.layer_norm)
    written = target_tokens or tokens
    spec.decoder.projection.weight = table if tied else numbers(len(written), D_MODEL, scale=D_MODEL**-0.5)
    spec.decoder.projection.bias = numbers(len(written), scale=0.5)
    spec.decoder.projection.bias[list(written).index("</s>")] += 1.0
    spec.register_source_vocabulary(list(tokens))
    spec.register_target_vocabulary(list(written))
    for name, value in (settings or {}).items():
        setattr(spec.config, name, value)
    return spec


def opus_spec(**others: Any) -> TransformerSpec:
    """Build a model as converted from OPUS-MT: post-norm, SiLU, sines before cosines, targets that begin with zeros."""
    settings = {"add_source_eos": True} | others.pop("settings", {})
    spec = random_spec(OPUS_TOKENS, pre_norm=False, activation=Activation.SWISH, settings=settings, **others)
    for side in (spec.encoder, spec.decoder):
        side.position_encodings.encodings = sines_then_cosines(N_POSITIONS, D_MODEL, D_MODEL / 2).numpy()
    spec.decoder.start_from_zero_embedding = True
    return spec


def save(spec: TransformerSpec, directory: Path, quantization: str | None = None) -> Path:
    """Save a model as its converter does; return the directory."""
    directory.mkdir(parents=True, exist_ok=True)
    spec.validate()
    spec.optimize(quantization)
    spec.save(str(directory))
    return directory


def write_model(
    path: Path,
    variables: Variables,
    version: int,
    revision: int,
    spec: str = "TransformerSpec",
    aliases: Mapping[str, str] | None = None,
) -> None:
    """Write a model.bin of any version of the format, byte by byte."""

    def text(string: str) -> bytes:
        return struct.pack("<H", len(string.encode()) + 1) + string.encode() + b"\0"

    content = struct.pack("<I", version)
    if version >= 2:
        content += text(spec) + struct.pack("<I", revision)
    content += struct.pack("<I", len(variables))
    for name, array in variables.items():
        content += text(name) + struct.pack(f"<B{array.ndim}I", array.ndim, *array.shape)
        if version >= 4:
            content += struct.pack("<BI", TYPES.index(array.dtype.name), array.nbytes)
        else:
            content += struct.pack("<BI", array.itemsize, array.size)
        content += array.tobytes()
    if version >= 3:
        content += struct.pack("<I", len(aliases or {}))
        content += b"".join(text(alias) + text(name) for alias, name in (aliases or {}).items())
    path.write_bytes(content)


def arrays_of(spec: TransformerSpec) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Return the variables and aliases of a saved specification."""
    variables = dict(spec.variables(ordered=True))
    aliases = {alias: name for alias, name in variables.items() if isinstance(name, str)}
    return {name: value.numpy() for name, value in variables.items() if name not in aliases}, aliases


def translator(directory: Path) -> ctranslate2.Translator:
    """Load a model with CTranslate2 in float32."""
    return ctranslate2.Translator(str(directory), compute_type="float32", intra_threads=1)
