"""Inputs and outputs of each graph of an artifact: names, shapes and types, as `service` expects them.

Legend: B batch, S source, T target, R decoder rows of N sources, at most W of one, L cache length, H heads, D head_dim,
E d_model, C classes, K tokens of a shortlist.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from manifest.schema import DecoderSelf
from model.config import LayerConfig
from model.networks.transformer import Transformer, TransformerClassifier, TransformerEncoder

Shape = tuple[str | int, ...]
"""Sizes of a tensor: a number if it is fixed, a letter of the legend otherwise."""
INT32 = {"positions", "total_length"}
"""Inputs that ONNX Runtime expects in 32 bits; all other integers have 64."""
LAST_HIDDEN_STATE = "last_hidden_state"
"""Output with the encoder state of each token, for clients that want representations."""
KEY_AND_VALUE = ("key", "value")
DECODER_PARTS: Mapping[DecoderSelf, tuple[str, ...]] = {"attention": KEY_AND_VALUE, "ssru": ("state",)}
"""What a decoder layer keeps of the target tokens before, by `decoder_self`."""


@dataclass(frozen=True)
class Signature:
    """Names and shapes of a graph's inputs and outputs, in order. All but integers have the model's float type."""

    integers: dict[str, Shape]
    floats: dict[str, Shape]
    outputs: dict[str, Shape]


def encoder_signature(model: Transformer) -> Signature:
    H, D = heads(model.config)
    names = cache_names("present", "encoder", model.config.n_decoder_layers)
    outputs: dict[str, Shape] = dict.fromkeys(names, ("B", "S", H * D))
    outputs[LAST_HIDDEN_STATE] = ("B", "S", model.config.d_encoder or model.config.d_model)
    return Signature({"input_ids": ("B", "S"), "source_lengths": ("B",)}, {}, outputs)


def decoder_step_signature(model: Transformer) -> Signature:
    H, D = heads(model.config)
    integers: dict[str, Shape] = {
        "input_ids": ("R", 1),
        "positions": ("R",),
        "total_length": (1,),
        "rows_of_sources": ("N", "W"),
        "places_of_rows": ("R",),
        "source_lengths": ("N",),
        "k": (1,),
    }
    if model.config.shortlist is not None:
        integers["allowed_tokens"] = ("N", "K")
    E, n_layers, parts = model.config.d_model, model.config.n_decoder_layers, DECODER_PARTS[model.config.decoder_self]
    of_target: Shape = ("R", H, "L", D) if model.config.decoder_self == "attention" else ("R", 1, E)
    past: dict[str, Shape] = {}
    for i in range(n_layers):
        past |= {f"past_key_values.{i}.decoder.{part}": of_target for part in parts}
        past |= {f"past_key_values.{i}.encoder.{part}": ("N", "S", H * D) for part in KEY_AND_VALUE}
    outputs: dict[str, Shape] = {"token_ids": ("R", "k"), "log_probs": ("R", "k")}
    outputs |= dict.fromkeys(cache_names("present", "decoder", n_layers, parts), of_target)
    return Signature(integers, past, outputs)


def classifier_signature(model: TransformerClassifier) -> Signature:
    """Return the signature of classifier.onnx; if one state decides, there are no token logits."""
    C = len(model.config.labels)
    outputs: dict[str, Shape] = {"logits": ("B", C)}
    if not model.config.pools_states:
        outputs["token_logits"] = ("B", "S", C)
    outputs[LAST_HIDDEN_STATE] = ("B", "S", model.config.d_model)
    return Signature({"input_ids": ("B", "S"), "lengths": ("B",)}, {}, outputs)


def translation_attention_signature(model: Transformer) -> Signature:
    """Return the signature of attention.onnx of a translator; an SSRU has no matrices."""
    H, _ = heads(model.config)
    n_encoder, n_decoder = model.config.n_encoder_layers, model.config.n_decoder_layers
    outputs: dict[str, Shape] = {
        "encoder": ("B", n_encoder, H, "S", "S"),
        **({"decoder": ("B", n_decoder, H, "T", "T")} if model.config.decoder_self == "attention" else {}),
        "cross": ("B", n_decoder, H, "T", "S"),
    }
    return Signature({"input_ids": ("B", "S"), "source_lengths": ("B",), "target_ids": ("B", "T")}, {}, outputs)


def text_encoder_signature(model: TransformerEncoder) -> Signature:
    """Return the signature of encoder.onnx of an encoder of texts."""
    outputs: dict[str, Shape] = {LAST_HIDDEN_STATE: ("B", "S", model.config.d_model)}
    return Signature({"input_ids": ("B", "S"), "lengths": ("B",)}, {}, outputs)


def dense_signature(model: TransformerEncoder) -> Signature:
    d_input = model.config.d_model * len(model.config.pooling)
    return Signature({}, {"pooled": ("B", d_input)}, {"embedding": ("B", model.config.dense[-1].d_output)})


def text_attention_signature(model: TransformerClassifier | TransformerEncoder) -> Signature:
    """Return the signature of attention.onnx of an encoder without a decoder."""
    H, _ = heads(model.config)
    outputs: dict[str, Shape] = {"encoder": ("B", model.config.n_encoder_layers, H, "S", "S")}
    return Signature({"input_ids": ("B", "S"), "lengths": ("B",)}, {}, outputs)


def cache_names(tense: str, side: str, n_layers: int, parts: Sequence[str] = KEY_AND_VALUE) -> list[str]:
    """Return the names of key and value of each layer in turn: present.0.decoder.key, present.0.decoder.value, ..."""
    return [f"{tense}.{i}.{side}.{part}" for i in range(n_layers) for part in parts]


def heads(config: LayerConfig) -> tuple[int, int]:
    """Return (H, D)."""
    return config.n_heads, config.width_of_head
