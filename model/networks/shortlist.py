"""Lexical shortlists: the tokens that a translation of one source may have (Schwenk et al. 2007; Junczys-Dowmunt et al.
2018, "Marian: Cost-effective High-Quality Neural Machine Translation in C++").

Legend: V source vocabulary, M entries of all lists.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from model.config import ShortlistConfig

FILLED_TO = 8
"""Marian fills a shortlist up to a multiple of it, with the first tokens that it lacks."""


class Shortlist(nn.Module):
    """The lists of all source tokens.

    Attributes:
        offsets: (V + 1), where the list of each source token begins; the last one is M.
        tokens: (M), the target tokens of all lists.
    """

    offsets: Tensor
    tokens: Tensor

    def __init__(self, config: ShortlistConfig, n_source: int) -> None:
        super().__init__()
        self.config = config
        self.register_buffer("offsets", torch.zeros(n_source + 1, dtype=torch.int64))
        self.register_buffer("tokens", torch.zeros(config.n_entries, dtype=torch.int32))

    def of_source(self, source: Sequence[int], n_target: int) -> NDArray[np.int64]:
        """Return the tokens below n_target that a translation of this source may have, in order."""
        return allowed_tokens(
            source, self.offsets.numpy(), self.tokens.numpy(), self.config.first, self.config.own, n_target
        )


def allowed_tokens(
    source: Iterable[int], offsets: NDArray[np.int64], tokens: NDArray[np.int32], first: int, own: bool, n_target: int
) -> NDArray[np.int64]:
    """Return the union of the lists of a source, the first tokens and, if `own`, the tokens of the source."""
    is_allowed = np.zeros(n_target, np.bool_)
    is_allowed[:first] = True
    for token in set(source):
        is_allowed[tokens[offsets[token] : offsets[token + 1]]] = True
        if own:
            is_allowed[token] = True
    missing = -int(is_allowed.sum()) % FILLED_TO
    is_allowed[np.flatnonzero(~is_allowed)[:missing]] = True
    return np.flatnonzero(is_allowed)
