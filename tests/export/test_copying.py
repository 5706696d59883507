"""Copies that share tensors."""

import onnx_ir as ir
import pytest
import torch
from torch import nn

from export import copying
from export.artifact import to_float16
from export.copying import copy_model
from export.graphs import TextAttentionGraph
from export.signatures import text_attention_signature
from export.tracing import trace
from tests.export.tiny_checkpoints import MakeCheckpoint, classifier_of


def test_a_copy_shares_tensors_and_its_changes_leave_the_model_as_it_is() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    copy = copy_model(model)
    shared = zip(copy.state_dict().values(), model.state_dict().values(), strict=True)
    assert all(one.data_ptr() == other.data_ptr() for one, other in shared)
    copy.half()
    copy.set_submodule("1", nn.Identity())
    assert isinstance(model[1], nn.BatchNorm1d)
    for name, tensor in model.state_dict().items():
        assert tensor.dtype == before[name].dtype
        assert torch.equal(tensor, before[name])


def test_a_copy_may_have_other_tensors_and_keeps_those_that_were_one() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    model[1].weight = model[0].weight
    copy = copy_model(model, torch.Tensor.half)
    assert copy[0].weight is copy[1].weight
    assert copy[0].weight.dtype == torch.float16
    assert model[0].weight.dtype == torch.float32


def test_a_graph_of_weights_without_numbers_is_that_of_the_weights(
    checkpoint: MakeCheckpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, graphs = classifier_of(checkpoint("mean_classifier")), []
    for smallest in (copying.LARGE_SIZE, 0):
        monkeypatch.setattr(copying, "LARGE_SIZE", smallest)
        half = to_float16(model)
        if smallest == 0:
            for tensor in half.parameters():
                torch.nn.init.constant_(tensor, float("nan"))  # whatever memory holds
        graph = trace(TextAttentionGraph(half), text_attention_signature(half), 0)
        graphs.append(ir.to_proto(graph).SerializeToString(deterministic=True))
    assert graphs[0] == graphs[1]
