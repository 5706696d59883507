"""SSRUs of a graph: their states after one more token, or after every token of a target at once.

Legend: B batch, T target, R decoder rows, E d_model.
"""

from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from model.networks.ssru import SSRU, Scan


def next_states(positions: Tensor, past: Mapping[SSRU, Sequence[Tensor]], present: list[Tensor]) -> Scan:
    """Return a scan of one new token per row at positions (R, 1), which appends the new states (R, 1, E) to `present`.

    At position 0 a row begins again, whatever its state is.
    """
    is_further = (positions > 0).unsqueeze(-1)

    def scan(unit: SSRU, gate: Tensor, added: Tensor) -> Tensor:
        (state,) = past[unit]
        state = gate * torch.where(is_further, state, 0.0) + added
        present.append(state)
        return state

    return scan


def all_states(n_positions: int) -> Scan:
    """Return a scan of whole targets (B, T, E) of at most n_positions tokens, without a loop.

    After the step with distance k each state comprises the 2 * k tokens up to its own, as if those before were none.

    Source: Hillis and Steele 1986, "Data Parallel Algorithms", section "Sum of an Array of Numbers".
    """

    def scan(_unit: SSRU, gate: Tensor, added: Tensor) -> Tensor:
        distance = 1
        while distance < n_positions:
            added = added + gate * moved(added, distance)
            gate = gate * moved(gate, distance)
            distance *= 2
        return added

    return scan


def moved(x: Tensor, distance: int) -> Tensor:
    """Return x (B, T, E) moved to later tokens; the first ones become zeros."""
    return F.pad(x, (0, 0, distance, 0))[:, :-distance]
