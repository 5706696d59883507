"""The interface of translators for search, evaluation and training.

Legend: B batch, S source, T target, E d_model, V vocabulary. Masks: True = may be attended.
"""

from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from model.config import RecurrentConfig, TransformerConfig


@runtime_checkable
class TranslationModel(Protocol):
    """An encoder-decoder. Only the model itself reads the results of `encode` and `init_caches`."""

    @property
    def config(self) -> TransformerConfig | RecurrentConfig:
        """Configuration of the model."""

    def __call__(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> Tensor:
        """Return hidden states (B, T, E) for teacher-forced target (B, T), given source (B, S) of lengths (B)."""

    def encode(self, source: Tensor, source_mask: Tensor) -> Any:
        """Encode source (B, S) under source_mask (B, S)."""

    def decode(self, target: Tensor, memory: Any, source_mask: Tensor) -> Tensor:
        """Decode teacher-forced target (B, T) over memory: hidden states (B, T, E)."""

    def logits(self, hidden: Tensor) -> Tensor:
        """Project hidden (..., E) to vocabulary logits (..., V)."""

    def shortlists(self, source: Tensor, source_lengths: Tensor) -> Tensor | None:
        """Return which tokens (B, V) the translation of each source (B, S) of lengths (B) may have; None: all."""

    def init_caches(self, memory: Any, cache_length: int) -> Any:
        """Return the state of `decode_step` before the first of `cache_length` target tokens."""

    def decode_step(self, ids: Tensor, positions: Tensor, caches: Any, source_mask: Tensor) -> Tensor:
        """Return logits (B, V) after one more token per row, ids (B) at positions (B). Caches are written in place."""
