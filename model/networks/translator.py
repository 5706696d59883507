"""What search, evaluation and training ask of a translator, whatever it is made of.

Legend: B batch, S source, T target, E d_model, V vocabulary. Masks: True = may be attended.
"""

from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from model.config import RecurrentConfig, TransformerConfig


@runtime_checkable
class TranslationModel(Protocol):
    """An encoder-decoder. What `encode` and `init_caches` return is for the model itself to read."""

    @property
    def config(self) -> TransformerConfig | RecurrentConfig:
        """What it was built from."""

    def __call__(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> Tensor:
        """Hidden states (B, T, E) for teacher-forced target (B, T), given source (B, S) of lengths (B)."""

    def encode(self, source: Tensor, source_mask: Tensor) -> Any:
        """source (B, S) under source_mask (B, S): memory."""

    def decode(self, target: Tensor, memory: Any, source_mask: Tensor) -> Tensor:
        """Teacher-forced target (B, T) over memory: hidden states (B, T, E)."""

    def logits(self, hidden: Tensor) -> Tensor:
        """hidden (..., E) to vocabulary logits (..., V)."""

    def init_caches(self, memory: Any, cache_length: int) -> Any:
        """What `decode_step` remembers, before the first of `cache_length` target tokens."""

    def decode_step(self, ids: Tensor, positions: Tensor, caches: Any, source_mask: Tensor) -> Tensor:
        """Logits (B, V) after one more token per row: ids (B) at positions (B). Caches are written in place."""
