"""Converts the names of CTranslate2's Transformer tensors to ours.

Unknown names are refused: they belong to variants that are computed differently.
"""

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from model.config import Activation
from model.importing.ctranslate2_files import MODEL
from model.importing.imported import ModelImportError
from model.importing.positions import sines_then_cosines

MAX_POSITIONS = 1024
"""Most tokens that CTranslate2 reads."""
SIDES = ("encoder", "decoder")

ACTIVATIONS: tuple[Activation, ...] = ("relu", "gelu_tanh", "silu", "gelu")
"""Activations by their code."""
VARIANT_SWITCHES = ("multi_query_attention", "alibi")
"""Switches of variants that are not supported."""
VARIANT_SETTINGS = ("embeddings_merge", "alibi_use_positive_positions", "scale_alibi")
"""Settings of such variants, ignored while they are off."""
LINEAR_LAYERS = {
    "self_attention.input": ("self_attention/linear_0",),
    "self_attention.output": ("self_attention/linear_1",),
    "cross_attention.input": ("attention/linear_0", "attention/linear_1"),
    "cross_attention.output": ("attention/linear_2",),
    "feed_forward.hidden": ("ffn/linear_0",),
    "feed_forward.output": ("ffn/linear_1",),
}
"""Dense layers by our names; their rows are in our order: queries, keys, values."""
NORMS = {
    "add_norm_self.norm": "self_attention/layer_norm",
    "add_norm_cross.norm": "attention/layer_norm",
    "add_norm_feed_forward.norm": "ffn/layer_norm",
}


def read_weights(variables: "Variables") -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the weights, and the fields of a TransformerConfig that follow from them. Raises ModelImportError: a
    tensor is missing, or encoder and decoder differ where they must not."""
    embeddings = _embeddings(variables)
    weights = {**embeddings, **dict(_layers(variables))}
    n_positions, d_model = weights["embedding.encoding"].shape
    activation = variables.of_both("activation", default=0)
    if not 0 <= activation < len(ACTIVATIONS):
        raise ModelImportError(f"activation {activation} is not supported; {', '.join(ACTIVATIONS)} are")
    encoder_scale, decoder_scale = (_scale(variables, side, d_model) for side in SIDES)
    if encoder_scale != decoder_scale:
        raise ModelImportError(f"embeddings have different scales: {encoder_scale:g} and {decoder_scale:g}")
    pre = variables.of_both("pre_norm", default=1) != 0
    for side in SIDES if pre else ():
        weights |= _norm(variables, f"{side}/layer_norm", f"{side}.final_norm")
    return weights, {
        "d_model": d_model,
        "n_heads": variables.of_both("num_heads"),
        "d_ff": len(weights["encoder.layers.0.feed_forward.hidden.weight"]),
        "n_encoder_layers": _n_layers(variables, "encoder"),
        "n_decoder_layers": _n_layers(variables, "decoder"),
        "max_positions": n_positions,
        "dropout": 0.0,
        "norm": "pre" if pre else "post",
        "positions": "learned",
        "embedding_scale": decoder_scale,
        "embedding_norm": "embedding.norm.weight" in weights,
        "activation": ACTIVATIONS[activation],
        "tied_output": "output.weight" not in weights,
        "output_bias": "output_bias" in weights,
    }


def _scale(variables: "Variables", side: str, d_model: int) -> float:
    scale = variables.find(f"{side}/scale_embeddings", f"{side}/embeddings/multiply_by_sqrt_depth")
    if scale is None or (not scale.is_floating_point() and scale.any()):
        return math.sqrt(d_model)
    return float(scale.max()) if scale.is_floating_point() else 1.0


def _embeddings(variables: "Variables") -> dict[str, Tensor]:
    """Return the embeddings of tokens and positions, one for both sides if equal, and the output projection."""
    encoder, decoder = (_embedding(variables, side) for side in SIDES)
    if encoder.keys() != decoder.keys():
        raise ModelImportError("only one side has normalized embeddings, which is not supported")
    n_positions = min(len(encoder["encoding"]), len(decoder["encoding"]))
    for side in (encoder, decoder):
        side["encoding"] = side["encoding"][:n_positions]
    weights = {f"embedding.{name}": tensor for name, tensor in decoder.items()}
    if not all(_same(encoder[name], decoder[name]) for name in decoder):
        weights |= {f"encoder_embedding.{name}": tensor for name, tensor in encoder.items()}
    projection = variables.take("decoder/projection/weight")
    if not _same(projection, decoder["tokens.weight"]):
        weights["output.weight"] = projection
    bias = variables.find("decoder/projection/bias")
    return weights if bias is None else weights | {"output_bias": bias}


def _embedding(variables: "Variables", side: str) -> dict[str, Tensor]:
    tokens = variables.take(
        *([f"{side}/embeddings_0/weight"] if side == "encoder" else []), f"{side}/embeddings/weight"
    )
    d_model = tokens.shape[-1]
    table = variables.find(f"{side}/position_encodings/encodings")
    if table is None:
        table = sines_then_cosines(MAX_POSITIONS, d_model, d_model / 2 - 1, first=1)
    embedding = {"tokens.weight": tokens, "encoding": table[:MAX_POSITIONS]}
    gamma = variables.find(f"{side}/layernorm_embedding/gamma")
    if gamma is not None:
        embedding |= {"norm.weight": gamma, "norm.bias": variables.take(f"{side}/layernorm_embedding/beta")}
    return embedding


def _same(first: Tensor, second: Tensor) -> bool:
    return first is second or (first.shape == second.shape and torch.equal(first, second))


def _layers(variables: "Variables") -> Iterator[tuple[str, Tensor]]:
    for side in SIDES:
        for i in range(_n_layers(variables, side)):
            theirs, ours = f"{side}/layer_{i}", f"{side}.layers.{i}"
            for name, parts in LINEAR_LAYERS.items():
                if side == "decoder" or not name.startswith("cross"):
                    matrices = [variables.take(f"{theirs}/{part}/weight") for part in parts]
                    biases = [variables.find(f"{theirs}/{part}/bias") for part in parts]
                    yield f"{ours}.{name}.weight", torch.cat(matrices)
                    yield (
                        f"{ours}.{name}.bias",
                        torch.cat(
                            [
                                matrix.new_zeros(len(matrix)) if bias is None else bias
                                for matrix, bias in zip(matrices, biases, strict=True)
                            ]
                        ),
                    )
            for name, norm in NORMS.items():
                if side == "decoder" or not name.startswith("add_norm_cross"):
                    yield from _norm(variables, f"{theirs}/{norm}", f"{ours}.{name}").items()


def _n_layers(variables: "Variables", side: str) -> int:
    return next(i for i in itertools.count(1) if not variables.has(f"{side}/layer_{i}/ffn/linear_0/weight"))


def _norm(variables: "Variables", theirs: str, ours: str) -> dict[str, Tensor]:
    return {
        f"{ours}.{end}": variables.take(f"{theirs}/{name}") for end, name in (("weight", "gamma"), ("bias", "beta"))
    }


class Variables:
    """Tensors by name, which remembers those that were not read."""

    def __init__(self, variables: Mapping[str, Tensor]) -> None:
        self._variables = variables
        self._others = set(variables)

    def has(self, name: str) -> bool:
        return name in self._variables

    def find(self, *names: str) -> Tensor | None:
        """Return the first of these tensors that exists."""
        self._others.difference_update(names)
        return next((self._variables[name] for name in names if name in self._variables), None)

    def take(self, *names: str) -> Tensor:
        """Return the first of these tensors; raise ModelImportError if there is none."""
        tensor = self.find(*names)
        if tensor is None:
            raise ModelImportError(f"{MODEL} is not supported: it has no {names[0]}")
        return tensor

    def number(self, *names: str, default: int | None = None) -> int:
        """Return a tensor that is a single number."""
        tensor = self.find(*names) if default is not None else self.take(*names)
        if tensor is None:
            assert default is not None
            return default
        if tensor.numel() != 1:
            raise ModelImportError(f"{MODEL} is damaged: {names[0]} is not a single number")
        return int(tensor.item())

    def of_both(self, name: str, default: int | None = None) -> int:
        """Return a number that encoder and decoder must share; older models store it once."""
        encoder, decoder = (self.number(f"{side}/{name}", name, default=default) for side in SIDES)
        if encoder != decoder:
            raise ModelImportError(f"{name} must be equal in encoder and decoder, not {encoder} and {decoder}")
        return encoder

    def refuse_others(self) -> None:
        """Raise ModelImportError if a tensor was not read, or an unsupported switch is on."""
        for side in SIDES:
            for name in VARIANT_SWITCHES:
                if self.number(f"{side}/{name}", default=0) != 0:
                    raise ModelImportError(f"{MODEL} is a variant that is not supported: {side}/{name} is on")
            self._others.difference_update(f"{side}/{name}" for name in VARIANT_SETTINGS)
        if self._others:
            first = min(self._others)
            more = f" and {len(self._others) - 1} more" if len(self._others) > 1 else ""
            raise ModelImportError(f"{MODEL} is a variant that is not supported: it has {first}{more}")
