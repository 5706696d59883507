"""SentencePiece models of a few sentences."""

import io
from collections.abc import Iterable
from typing import Any


def sentencepiece_model(texts: Iterable[str], vocab_size: int, **options: Any) -> bytes:
    import sentencepiece  # prints at its first use

    trained = io.BytesIO()
    options |= {"hard_vocab_limit": False, "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=trained, vocab_size=vocab_size, **options
    )
    return trained.getvalue()
