"""The state shared by all steps that serve one request."""

import math
import time
from dataclasses import dataclass, field
from typing import Any

from service.access.ownership import ANYBODY, Requester
from service.access.usage import Account
from service.pool.pool import Admission
from service.schemas.timing import Timing


@dataclass
class Context:
    """The timing and the deadline of one request.

    Attributes:
        deadline: on the clock of time.monotonic, as the deadlines of engines are.
        admission: counts the request once for all engines; None where one engine does all the work.
        background: whether no client waits for the answer right now. Then engines prefer other requests, and a passage
            may have any number of tags, whose characters do not count.
        account: the account on which characters count; None if they do not count.
        caller: the name of the key, or its digest. Callers with the same name share answers. "": no key. None:
            unknown, so no answers are shared.
        requester: who asks, as stores of glossaries and memories know it.
        client: the key or the address that waits for the answer. Clients with much work let others pass.
        attributes: receives attributes of the answer for a trace; None if the request is not traced.
    """

    timing: Timing = field(default_factory=Timing)
    deadline: float = math.inf
    admission: Admission | None = None
    background: bool = False
    caller: str | None = ""
    requester: Requester = ANYBODY
    client: str | None = None
    account: Account | None = None
    attributes: dict[str, Any] | None = None

    @property
    def left_s(self) -> float:
        """Seconds until the deadline."""
        return self.deadline - time.monotonic()
