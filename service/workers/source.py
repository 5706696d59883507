"""Where models come from, and what is told to the process that loads them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from service.base.contract import ModelInfo
from service.base.log import Log
from service.workers.on_demand import Engines


class Source(Protocol):
    """Where models come from."""

    @property
    def models(self) -> list[str]:
        """Their names."""

    def settled(self) -> "Source":
        """The same source, once it knows what this machine can do. What it does to find out may be unfit for forks: it
        is called in a process of its own.

        Raises:
            StartRefused: the machine cannot do what is wanted.
        """

    @property
    def n_workers(self) -> int:
        """How many workers share the models."""

    @property
    def forks(self) -> bool:
        """Whether a model may be loaded first, and forked then."""

    @property
    def model_memory(self) -> int | None:
        """Bytes that loaded models may take, if models are loaded on demand."""

    def model_info(self, model: str) -> ModelInfo:
        """What is known of a model that need not be loaded.

        Raises:
            StartRefused: it cannot be.
        """

    def load(self, model: str, alone: bool) -> Engines:
        """Load a model.

        Args:
            alone: in a worker of its own, with threads of its own.

        Raises:
            StartRefused: it cannot be loaded.
        """

    def trim(self) -> None:
        """Return the memory of models that are gone to the system."""


@dataclass(frozen=True)
class Plan:
    """What a loader is told.

    Attributes:
        source: a class of sources, "module:name". Servers have no use for what it imports.
        arguments: of this class.
        directory: where workers listen, as "0.sock", "1.sock" and so on.
        slow: models that have workers of their own; None: those that are slow here.
    """

    source: str
    arguments: tuple[Any, ...]
    directory: Path
    probe_interval_s: float
    log: Log
    slow: list[str] | None = None
