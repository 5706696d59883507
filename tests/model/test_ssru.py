"""SSRUs, compared with their formula in NumPy."""

import numpy as np
import torch

from model.networks.ssru import SSRU, scan_from_zero, scan_further

B, T, E = 2, 5, 6


def by_formula(unit: SSRU, x: np.ndarray) -> np.ndarray:
    """Run a unit over one sequence (T, E) with plain loops."""
    weight, bias = (np.asarray(tensor.detach(), np.float64) for tensor in (unit.input.weight, unit.input.bias))
    state, outputs = np.zeros(E), []
    for token in x:
        candidate = weight[:E] @ token + bias[:E]
        forget = 1 / (1 + np.exp(-(weight[E:] @ token + bias[E:])))
        state = forget * state + (1 - forget) * candidate
        outputs.append(np.maximum(state, 0))
    return np.array(outputs)


@torch.inference_mode()
def test_a_unit_is_its_formula_whole_and_token_by_token() -> None:
    unit, x = SSRU(E), torch.randn(B, T, E)
    expected = np.stack([by_formula(unit, row.numpy()) for row in x])
    np.testing.assert_allclose(unit(x, scan_from_zero).numpy(), expected, atol=1e-6)
    states = {unit: torch.full((B, 1, E), 7.0)}  # left by others: a row begins again at position 0
    steps = [unit(x[:, t : t + 1], scan_further(states, torch.full((B, 1), t))) for t in range(T)]
    np.testing.assert_allclose(torch.cat(steps, dim=1).numpy(), expected, atol=1e-6)
