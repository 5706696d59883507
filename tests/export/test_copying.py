"""Copies that share tensors."""

import torch
from torch import nn

from export.copying import copy_model


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
