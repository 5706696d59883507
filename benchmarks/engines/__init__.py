"""Engines that translate token ids, behind one protocol, so that the same is measured for all."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

ATTEND, CTRANSLATE2, PYTORCH, TRANSFORMERS = "attend", "ctranslate2", "pytorch", "transformers"
ATTEND_EXACT = "attend exact"
"""attend with a beam search that drops no hypothesis, like that of CTranslate2."""


@dataclass(frozen=True)
class Work:
    """One sentence to translate.

    Args:
        fixed_length: write exactly `max_target_tokens`, for models with random weights.
    """

    source_ids: list[int]
    max_target_tokens: int
    fixed_length: bool = False


class TranslationEngine(Protocol):
    """An engine with its model loaded."""

    def translate(self, works: list[Work], beam_size: int, batch: int) -> list[list[int]]:
        """Return target token ids without the end of sequence, in the order of the works.

        Args:
            batch: sentences in flight at any time.
        """

    def close(self) -> None:
        """Stop threads and release the model."""


def load(engine: str, model: Path, settings: dict[str, Any]) -> TranslationEngine:
    """Load an engine with `model` in its own format.

    Each adapter is imported when needed: a process that measures one engine must not load the libraries of another.
    """
    if engine in (ATTEND, ATTEND_EXACT):
        from benchmarks.engines.attend import AttendEngine

        return AttendEngine(model, **settings, exact=engine == ATTEND_EXACT)
    if engine == CTRANSLATE2:
        from benchmarks.engines.ctranslate2 import CTranslate2Engine

        return CTranslate2Engine(model, **settings)
    if engine == PYTORCH:
        from benchmarks.engines.pytorch import PyTorchEngine

        return PyTorchEngine(model, **settings)
    if engine == TRANSFORMERS:
        from benchmarks.engines.transformers import TransformersEngine

        return TransformersEngine(model, **settings)
    raise ValueError(f"unknown engine {engine!r}")
