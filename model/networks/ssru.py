"""The simpler simple recurrent unit (SSRU), which some decoders have in place of self-attention.

Legend: B batch, T target tokens, E d_model.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

Scan = Callable[["SSRU", Tensor, Tensor], Tensor]
"""Function that computes the states (B, T, E) of a unit from its gates and its additions, each (B, T, E): each state is
the one before it times its gate, plus its addition."""


class SSRU(nn.Module):
    """A recurrent unit with one gate and one state: c[t] = f[t] * c[t-1] + (1 - f[t]) * x[t]; its output is relu(c).

    The candidate x and the gate f are projections of the input alone, so one product computes both for all tokens.

    Source: Kim et al. 2019, "From Research to Production and Back: Ludicrously Fast Neural Machine Translation".
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.d_model = d_model
        self.input = nn.Linear(d_model, 2 * d_model)

    def forward(self, x: Tensor, scan: Scan) -> Tensor:
        """Run over x (B, T, E), whose states `scan` computes: (B, T, E)."""
        candidate, gate = self.input(x).chunk(2, dim=-1)
        gate = torch.sigmoid(gate)
        return torch.relu(scan(self, gate, candidate - gate * candidate))


def scan_from_zero(_unit: SSRU, gate: Tensor, added: Tensor) -> Tensor:
    """Compute states (B, T, E) one after the other, from zeros on: a `Scan`."""
    state = torch.zeros_like(added[:, 0])
    states = []
    for t in range(added.shape[1]):
        state = gate[:, t] * state + added[:, t]
        states.append(state)
    return torch.stack(states, dim=1)


def scan_further(states: dict[SSRU, Tensor], positions: Tensor) -> Scan:
    """Return a `Scan` of one more token at positions (B, 1), from states (B, 1, E) that it replaces.

    At position 0 a row begins again, whatever its state is.
    """
    is_further = (positions > 0).unsqueeze(-1)

    def scan(unit: SSRU, gate: Tensor, added: Tensor) -> Tensor:
        states[unit] = gate * states[unit] * is_further + added
        return states[unit]

    return scan
