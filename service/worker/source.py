"""The source of a worker's models."""

from typing import Protocol

from service.base.contract import ModelInfo
from service.worker.on_demand import Engines


class Source(Protocol):
    """Models by name, and how to load each."""

    @property
    def models(self) -> list[str]:
        """The names of the models."""

    def resolved(self) -> "Source":
        """Return the same source with what this machine can do. The check may make a process unfit for forks, so this
        is called in a process of its own. Raises StartRefused: the machine cannot do what the settings ask for."""

    @property
    def n_workers(self) -> int:
        """Number of workers that share the models."""

    @property
    def forks(self) -> bool:
        """Whether processes may be forked after a model was loaded."""

    @property
    def model_memory(self) -> int | None:
        """Most bytes of loaded models, if models are loaded on demand; None if all are loaded at the start."""

    def model_info(self, model: str) -> ModelInfo:
        """Return what is known about a model before it is loaded. Raises StartRefused: the model cannot be served."""

    def load(self, model: str, alone: bool) -> Engines:
        """Load a model. `alone`: it has a worker of its own, with threads of its own. Raises StartRefused."""

    def trim(self) -> None:
        """Return the memory of models that are gone to the system."""
