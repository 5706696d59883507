"""What MPNet has beside RoBERTa: biases of attention by distance, one table for all layers.

Source: Song et al. 2020, "MPNet"; the buckets are those of Raffel et al. 2020, "T5".
"""

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from model.importing.encoder_decoder import tensor_of

BUCKETS = {"buckets": 32, "max_distance": 128}
"""Fixed in MPNet, whatever its config.json says."""


def settings(_config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a LayerConfig that differ from RoBERTa's."""
    return {"relative_positions": BUCKETS}


def tables(
    tensors: Mapping[str, Tensor], _config: Mapping[str, Any], _fields: Mapping[str, Any]
) -> Iterator[tuple[str, Tensor]]:
    """Yield the biases by our names. Raises ModelImportError: the tensor is missing."""
    yield "encoder.distance_biases.0.table", tensor_of(tensors, "encoder.relative_attention_bias.weight")
