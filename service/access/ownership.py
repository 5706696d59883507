"""Who asks, and whose glossaries and memories a request may use.

What a key stores belongs to its client. What was stored without keys belongs to everybody.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from service.base.errors import NotOwner

Right = Literal["read", "write"]


@dataclass(frozen=True)
class Requester:
    """Whoever asks.

    Attributes:
        client: the client of its key; None: there are no keys, so everything may be read and changed.
        shared: other clients, and what this one may do with what belongs to them. Who may write may also read.
    """

    client: str | None = None
    shared: Mapping[str, Right] = field(default_factory=dict)

    def may_read(self, owner: str | None) -> bool:
        return self.client is None or owner in (None, self.client) or owner in self.shared

    def refuse_writing(self, owner: str | None, what: str) -> None:
        """Raises NotOwner: the requester may not change what belongs to the owner."""
        if self.client is None or owner in (None, self.client) or self.shared.get(owner or "") == "write":
            return
        raise NotOwner(f"{what} belongs to another key, which this one may read only")


ANYBODY = Requester()
"""Whoever asks a service without keys, and work that was allowed when it was asked for, such as documents."""
