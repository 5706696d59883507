"""What ModernBERT has beside BERT: rotary positions, local layers, gates, and no biases.

Source: Warner et al. 2024, "Smarter, Better, Faster, Longer".
"""

from collections.abc import Mapping
from typing import Any

from model.config import Activation, LocalAttention
from model.importing.encoder_decoder import activation_of
from model.importing.hugging_face import CONFIG, number
from model.importing.imported import ModelImportError

GATED: Mapping[Activation, Activation] = {
    "relu": "reglu",
    "gelu": "geglu",
    "gelu_tanh": "geglu_tanh",
    "silu": "swiglu",
}
"""Gated activations by the activation of the gate."""
BIASES = ("attention_bias", "mlp_bias", "norm_bias", "classifier_bias")
GLOBAL, LOCAL = "full_attention", "sliding_attention"
BASES = {GLOBAL: ("global_rope_theta", 160000.0), LOCAL: ("local_rope_theta", 10000.0)}
"""Older names and usual values of the rotary base, by kind of layer."""


def settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a LayerConfig that differ from BERT's. Raises ModelImportError: the model is not
    supported."""
    biases = {key: bool(config.get(key, False)) for key in BIASES}
    if len(set(biases.values())) > 1:
        raise ModelImportError(f"{CONFIG}: some of {', '.join(biases)} are set; all or none must be")
    n_layers = number(config, "num_hidden_layers")
    every = config.get("global_attn_every_n_layers", 3)
    kinds = config.get("layer_types") or [LOCAL if i % every else GLOBAL for i in range(n_layers)]
    local = tuple(i for i, kind in enumerate(kinds) if kind == LOCAL)
    return {
        "activation": GATED[activation_of(config.get("hidden_activation", "gelu"))],
        "bias": any(biases.values()),
        "norm": "pre",
        "first_norm": False,
        "positions": "rotary",
        "rotary_base": _rotary_base(config, GLOBAL),
        "local_attention": LocalAttention(
            layers=local, reach=config.get("local_attention", 128) // 2, rotary_base=_rotary_base(config, LOCAL)
        )
        if local
        else None,
    }


def _rotary_base(config: Mapping[str, Any], kind: str) -> float:
    older, usual = BASES[kind]
    said = (config.get("rope_parameters") or {}).get(kind) or config.get("rope_scaling") or {}
    if (way := said.get("rope_type", said.get("type", "default"))) != "default":
        raise ModelImportError(f"{CONFIG}: rotary positions of type {way} are not supported; default is")
    return float(said.get("rope_theta") or config.get(older) or usual)
