"""The plan that a loader process gets, and how long a server and a loader wait for workers."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from service.base.log import Log

HUNG_S, LOADING_S = 60.0, 600.0
"""A worker without a heartbeat for HUNG_S, or that still loads after LOADING_S, is killed and replaced."""


@dataclass(frozen=True)
class Plan:
    """What a loader process needs to know.

    Attributes:
        source: the name of a class of sources, "module:name". Servers do not import what it imports.
        arguments: arguments of this class.
        directory: where workers listen, at "0.sock", "1.sock" and so on.
        slow: models that have workers of their own; None: those that prove slow on this machine.
        device: the only GPU that the process sees; None: what CUDA chooses, or the CPU.
    """

    source: str
    arguments: tuple[Any, ...]
    directory: Path
    probe_interval_s: float
    log: Log
    slow: list[str] | None = None
    device: str | None = None
