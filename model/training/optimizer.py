"""Optimizers: AdamW alone, or Muon for weight matrices and AdamW for the rest."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch import nn

from model.recipe import TrainingConfig
from model.training.precision import WithoutBf16, bf16_is_faster


def build_optimizer(model: nn.Module, training: TrainingConfig) -> torch.optim.Optimizer:
    """Build the optimizer; weight decay acts on matrices and embeddings, never on biases and norms."""
    matrices, embeddings, vectors = [], [], []
    for name, parameter in model.named_parameters():
        if parameter.ndim != 2:
            vectors.append(parameter)
        elif "embedding" in name or training.optimizer != "muon":
            embeddings.append(parameter)
        else:
            matrices.append(parameter)
    groups = [{"params": embeddings, "weight_decay": training.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    adamw = torch.optim.AdamW(groups, lr=training.learning_rate, betas=(0.9, 0.98), fused=True)
    if not matrices:
        return adamw
    muon = Muon(
        matrices,
        lr=training.muon_learning_rate,
        weight_decay=training.weight_decay,
        adjust_lr_fn="match_rms_adamw",
    )
    return ChainedOptimizer([adamw, muon])


class Muon(torch.optim.Muon):
    """PyTorch's Muon, orthogonalizing updates in bf16, or in float32 if that is no slower."""

    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        with nullcontext() if bf16_is_faster() else WithoutBf16():
            return super().step(closure)  # type: ignore[no-any-return, no-untyped-call]


class ChainedOptimizer(torch.optim.Optimizer):
    """Several optimizers over disjoint parameters that act as one: one step, one schedule, one state."""

    def __init__(self, optimizers: list[torch.optim.Optimizer]) -> None:
        self.optimizers = optimizers
        super().__init__([group for optimizer in optimizers for group in optimizer.param_groups], {})
        self._share_groups()

    def _share_groups(self) -> None:
        # The same dictionaries as in the members, so that a scheduler sets rates in both.
        self.param_groups = [group for optimizer in self.optimizers for group in optimizer.param_groups]

    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for optimizer in self.optimizers:
            optimizer.step()
        return loss

    def state_dict(self) -> dict[str, Any]:
        return {"optimizers": [optimizer.state_dict() for optimizer in self.optimizers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        for optimizer, state in zip(self.optimizers, state_dict["optimizers"], strict=True):
            optimizer.load_state_dict(state)
        self._share_groups()
