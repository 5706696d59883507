"""What DeBERTa-v2 and -v3 have beside BERT: scores of tokens with distances.

Source: He et al. 2021, "DeBERTa"; He et al. 2023, "DeBERTaV3".
"""

from collections.abc import Iterator, Mapping
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from model.config import Disentangled
from model.importing.encoder_decoder import tensor_of
from model.importing.hugging_face import CONFIG, number
from model.importing.imported import ModelImportError

KINDS = {"c2p": "query_to_distance", "p2c": "distance_to_key"}
"""Products of tokens and distances, by their names in `pos_att_type`."""


def settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a LayerConfig that differ from BERT's. Raises ModelImportError: the model is not
    supported."""
    if config.get("conv_kernel_size"):
        raise ModelImportError(f"{CONFIG}: `conv_kernel_size` is set; models with a convolution are not supported")
    named = config.get("pos_att_type") or ()
    kinds = [kind.strip() for kind in (named.lower().split("|") if isinstance(named, str) else named)]
    for kind in kinds:
        if kind not in KINDS:
            raise ModelImportError(f"{CONFIG}: `pos_att_type` has {kind}; {' and '.join(KINDS)} are supported")
    head_dim = number(config, "hidden_size") // number(config, "num_attention_heads")
    if config.get("attention_head_size", head_dim) != head_dim:
        raise ModelImportError(f"{CONFIG}: `attention_head_size` must be {head_dim}, as all heads share `hidden_size`")
    # Every kind of score counts in the factor, used or not.
    values: dict[str, Any] = {
        "positions": "learned" if config.get("position_biased_input", True) else "none",
        "beta": (head_dim * (1 + len(kinds))) ** -0.5,
    }
    if config.get("relative_attention") and kinds:
        longest = config.get("max_relative_positions", -1)
        values["disentangled"] = Disentangled(
            buckets=max(0, config.get("position_buckets", -1)),
            max_distance=longest if longest > 0 else number(config, "max_position_embeddings"),
            **{ours: theirs in kinds for theirs, ours in KINDS.items()},
        )
    return values


def tables(
    tensors: Mapping[str, Tensor], config: Mapping[str, Any], fields: Mapping[str, Any]
) -> Iterator[tuple[str, Tensor]]:
    """Yield the keys and queries of distances in each layer by our names.

    Layers project one table of distances, which is the same for all texts: it is projected here, once.

    Raises:
        ModelImportError: a tensor is missing.
    """
    disentangled = fields.get("disentangled")
    if disentangled is None:
        return
    distances = tensor_of(tensors, "encoder.rel_embeddings.weight").float()
    if "layer_norm" in config.get("norm_rel_ebd", "none").lower():
        weight, bias = (tensor_of(tensors, f"encoder.LayerNorm.{end}").float() for end in ("weight", "bias"))
        distances = F.layer_norm(distances, distances.shape[1:], weight, bias, fields["norm_eps"])
    prefix = "" if config.get("share_att_key") else "pos_"
    wanted = {"keys": disentangled.query_to_distance, "queries": disentangled.distance_to_key}
    for i in range(fields["n_encoder_layers"]):
        for ours, theirs in (("keys", "key_proj"), ("queries", "query_proj")):
            if wanted[ours]:
                name = f"encoder.layer.{i}.attention.self.{prefix}{theirs}"
                weight, bias = (tensor_of(tensors, f"{name}.{end}").float() for end in ("weight", "bias"))
                yield f"encoder.layers.{i}.self_attention.disentangled.{ours}", F.linear(distances, weight, bias)
