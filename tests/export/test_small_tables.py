"""Tables that an artifact looks up as small as the checkpoint keeps them."""

from pathlib import Path

import onnx
import pytest
import torch
from safetensors.torch import save_file

from export.artifact import export
from export.small_tables import CompressedEmbedding
from model.checkpoint import WEIGHTS, load_checkpoint
from model.compression import compressed, dequantized, quantized
from tests.export.tiny_checkpoints import MODELS, write_model

V, WIDTH, DETECTORS = 300, 70, 130


def test_what_is_looked_up_is_what_was_kept() -> None:
    numbers, scales = quantized(torch.randn(V, WIDTH, generator=torch.Generator().manual_seed(3)))
    ids = torch.tensor([[5, 299, 0], [7, 7, 1]])
    assert torch.equal(CompressedEmbedding(numbers, scales)(ids), dequantized(numbers, scales)[ids])


@pytest.mark.parametrize("is_compressed", [True, False])
def test_tables_are_int8_where_a_checkpoint_keeps_them_so(is_compressed: bool, tmp_path: Path) -> None:
    checkpoint, regions = tmp_path / "checkpoint", {"width": WIDTH, "detectors": DETECTORS}
    write_model(checkpoint, "regions", MODELS["mean_classifier"] | {"regions": regions})
    if is_compressed:
        save_file(compressed(load_checkpoint(checkpoint).model.state_dict()), checkpoint / WEIGHTS)
    export(checkpoint, tmp_path / "artifact", "int8")  # which proves that it answers as the checkpoint
    graph = onnx.load(tmp_path / "artifact" / "classifier.onnx", load_external_data=False).graph
    kinds = {tuple(t.dims): t.data_type for t in graph.initializer}
    if is_compressed:
        assert kinds[V, 128] == kinds[V, 192] == onnx.TensorProto.INT8
        assert kinds[V, 2] == kinds[V, 3] == onnx.TensorProto.FLOAT16
    else:
        assert kinds[V, WIDTH] == kinds[V, DETECTORS] == onnx.TensorProto.FLOAT16
