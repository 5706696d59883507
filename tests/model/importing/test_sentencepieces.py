"""SentencePiece models as tokenizers."""

from pathlib import Path

import pytest
from sentencepiece import sentencepiece_model_pb2

from model.importing.imported import ModelImportError
from model.importing.sentencepiece_files import BPE, NORMAL, UNKNOWN, read_model, tokenizer_of


def test_a_piece_as_long_as_its_file_is_no_reason_to_wait(tmp_path: Path) -> None:
    model = sentencepiece_model_pb2.ModelProto()  # type: ignore[attr-defined]
    model.trainer_spec.model_type = BPE
    for i, piece in enumerate(("<unk>", "▁", "a", "b", "ab", "▁ab", "ab" * 500_000)):
        model.pieces.add(piece=piece, score=-i, type=NORMAL if i else UNKNOWN)
    (tmp_path / "a.model").write_bytes(model.SerializeToString())
    tokenizer = tokenizer_of(read_model(tmp_path / "a.model"))
    assert tokenizer.encode("ab ab").tokens == ["▁ab", "▁ab"]


def test_a_piece_that_is_no_text_is_refused(tmp_path: Path) -> None:
    model = sentencepiece_model_pb2.ModelProto()  # type: ignore[attr-defined]
    model.pieces.add(piece="ab", type=NORMAL)
    (tmp_path / "a.model").write_bytes(model.SerializeToString().replace(b"ab", b"\xff\xff"))
    with pytest.raises(ModelImportError, match=r"a\.model is no SentencePiece model: a piece is not UTF-8"):
        read_model(tmp_path / "a.model")
