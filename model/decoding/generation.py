"""Continues a text with a language model, greedily or by sampling.

Legend: V vocabulary.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from model.checkpoint import Checkpoint, CheckpointError
from model.networks.language_model import LanguageModel
from model.tokenizer import BOS_ID, EOS_ID


class GenerationError(ValueError):
    """The requested text cannot be generated."""


class Sampler:
    """Chooses the next token.

    Args:
        temperature: divisor of the logits; 0 takes the most probable token.
        top_k: number of most probable tokens to sample from; None samples from all.
        seed: seed of sampling; the same seed gives the same text.

    Raises:
        GenerationError: temperature is below 0, or top_k below 1.
    """

    def __init__(self, temperature: float = 0.0, top_k: int | None = None, seed: int = 1) -> None:
        if temperature < 0:
            raise GenerationError(f"`temperature` is {temperature:g}; it must be at least 0")
        if top_k is not None and top_k < 1:
            raise GenerationError(f"`top_k` is {top_k}; it must be at least 1")
        self.temperature, self.top_k = temperature, top_k
        self._generator = torch.Generator().manual_seed(seed)

    def __call__(self, logits: Tensor) -> int:
        """Choose a token by logits (V)."""
        if self.temperature == 0:
            return int(logits.argmax())
        candidates = logits.topk(min(self.top_k or len(logits), len(logits)))
        probabilities = (candidates.values / self.temperature).softmax(dim=-1)
        return int(candidates.indices[torch.multinomial(probabilities, 1, generator=self._generator)])


def generate(checkpoint: Checkpoint, text: str, max_tokens: int, choose: Callable[[Tensor], int]) -> str:
    """Return the text with a continuation of at most `max_tokens` tokens. Raises CheckpointError: the checkpoint is not
    a language model. Raises GenerationError: text and continuation exceed the positions of the model."""
    model = checkpoint.model
    if not isinstance(model, LanguageModel):
        raise CheckpointError(
            f"{checkpoint.config.name} is no language model: its task is {checkpoint.config.model.task}"
        )
    prompt = [BOS_ID, *checkpoint.tokenizer.encode(text).ids]
    n_positions, limit = len(prompt) + max_tokens, model.config.max_positions
    if n_positions > limit:
        raise GenerationError(
            f"the text has {len(prompt)} tokens, with {max_tokens} more it has {n_positions}; the limit is {limit}"
        )
    continued: str = checkpoint.tokenizer.decode([*prompt, *continuation(model, prompt, max_tokens, choose)])
    return continued


@torch.inference_mode()
def continuation(
    model: LanguageModel, prompt: list[int], max_tokens: int, choose: Callable[[Tensor], int]
) -> list[int]:
    """Return the tokens after the prompt, up to but without </s>, with cached keys and values."""
    caches = model.init_caches(1, len(prompt) + max_tokens)
    read, unread, produced = 0, prompt, list[int]()
    while len(produced) < max_tokens:
        logits = model.step(torch.tensor([unread]), read, caches)[0]
        read += len(unread)
        token = choose(logits)
        if token == EOS_ID:
            break
        produced.append(token)
        unread = [token]
    return produced


@torch.inference_mode()
def continuation_uncached(
    model: LanguageModel, prompt: list[int], max_tokens: int, choose: Callable[[Tensor], int]
) -> list[int]:
    """Return the same tokens by reading everything again for each: slow and obviously right."""
    ids = list(prompt)
    for _ in range(max_tokens):
        token = choose(model.logits(model(torch.tensor([ids]))[0, -1]))
        if token == EOS_ID:
            break
        ids.append(token)
    return ids[len(prompt) :]
