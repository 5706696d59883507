"""Muon, in bf16 and in float32."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from model.recipe import TrainingConfig
from model.training import optimizer as module
from model.training.optimizer import build_optimizer

RATE, SHAPE = 0.1, (24, 40)
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Coefficients of the iteration by Jordan et al. (2024), https://kellerjordan.github.io/posts/muon/."""


def orthogonal(matrix: Tensor) -> Tensor:
    """Run five Newton-Schulz iterations in float64."""
    a, b, c = COEFFICIENTS
    x = matrix.double() / matrix.double().norm()
    for _ in range(5):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x


def training(**settings: Any) -> TrainingConfig:
    required = {"batch_tokens": 1, "max_steps": 1, "warmup_steps": 1, "decay_steps": 1, "checkpoint_every_steps": 1}
    return TrainingConfig(learning_rate=RATE, **required, **settings)


@pytest.mark.parametrize(("bf16_is_faster", "least", "most"), [(False, 0.0, 1e-5), (True, 1e-4, 5e-2)])
def test_an_update_is_orthogonal_to_the_precision_of_the_processor(
    monkeypatch: pytest.MonkeyPatch, bf16_is_faster: bool, least: float, most: float
) -> None:
    monkeypatch.setattr(module, "bf16_is_faster", lambda: bf16_is_faster)
    matrix = nn.Linear(SHAPE[1], SHAPE[0], bias=False)
    before = matrix.weight.detach().clone()
    optimizer = build_optimizer(matrix, training(optimizer="muon", muon_learning_rate=RATE, weight_decay=0.0))
    gradient = torch.randn(SHAPE, generator=torch.Generator().manual_seed(1))
    matrix.weight.grad = gradient.clone()
    optimizer.step()
    update = (before - matrix.weight.detach()) / (RATE * 0.2 * max(SHAPE) ** 0.5)
    error = (update - orthogonal(gradient)).abs().max().item()
    assert least <= error <= most
    assert torch.equal(matrix.weight.grad, gradient), "it is not changed"
