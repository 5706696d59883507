"""Perplexity of a language model per token, and bits per byte.

Only bits per byte compare between models with different tokenizers.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer

from model.batching import TextBatch, TextExample, batches_by_length, collate_texts
from model.networks.language_model import LanguageModel
from model.tokenizer import PAD_ID
from model.training.examples import text_windows

BATCH_TOKENS = 4096


def measure_perplexity(model: LanguageModel, tokenizer: Tokenizer, texts: Sequence[str], size: int) -> dict[str, float]:
    """Measure perplexity per token, </s> counted, and bits per byte of UTF-8, in windows of `size` tokens.

    Each token is predicted once, from those before it in its window: a window does not see the one before.
    """
    windows = [TextExample(ids) for ids in text_windows(tokenizer, texts, size)]
    nats = 0.0
    for batch in batches_by_length(np.array([len(window) for window in windows]), BATCH_TOKENS):
        nats += total_nats(model, collate_texts([windows[i] for i in batch]))
    n_tokens = sum(len(window) for window in windows)
    n_bytes = sum(len(text.encode()) for text in texts)
    return {
        "perplexity": round(math.exp(nats / n_tokens), 2),
        "bits_per_byte": round(nats / math.log(2) / n_bytes, 4),
    }


@torch.inference_mode()
def total_nats(model: LanguageModel, batch: TextBatch) -> float:
    """Return the sum of -log p over all tokens of a batch."""
    real = batch.target_output != PAD_ID
    logits = model.logits(model(batch.target_input)[real])
    return float(F.cross_entropy(logits, batch.target_output[real], reduction="sum"))
