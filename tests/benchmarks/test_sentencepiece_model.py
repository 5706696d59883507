"""Needs the `bench` extra."""

import pytest

from export.proof import TEXTS
from model.tokenizer import train_tokenizer

sentencepiece = pytest.importorskip("sentencepiece")


def test_sentencepiece_reads_the_same_tokens_and_loses_no_text() -> None:
    from benchmarks.peers import sentencepiece_model

    tokenizer = train_tokenizer(TEXTS, vocab_size=330, end_of_sequence=True)
    serialized, pieces = sentencepiece_model.from_tokenizer(tokenizer)
    processor = sentencepiece.SentencePieceProcessor(model_proto=serialized)

    plain = [" ".join(text.split()) for text in TEXTS if text.isascii() and text.isprintable() and text.strip()]
    assert plain
    for text in plain:
        assert processor.encode(text, out_type=str) == [pieces[i] for i in tokenizer.encode(text).ids[:-1]]
    for text in ["Ça, c'est « l'été » !", "日本 12.5 €"]:
        assert processor.decode_pieces(processor.encode(text, out_type=str)) == text
