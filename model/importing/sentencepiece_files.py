"""SentencePiece models as tokenizers of the `tokenizers` library, with the same pieces for the same text.

Source: Kudo and Richardson 2018, "SentencePiece"; its file format is a protocol buffer, which its package reads.
"""

from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from model.importing.imported import ModelImportError
from model.importing.packed_files import read_packed

SPACE = "▁"
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
"""Types of pieces."""
UNIGRAM, BPE = 1, 2
"""Types of models."""
CONTROL_NAME = "\ue000control\ue000{}"
"""Name of control pieces, which no text contains: users must not be able to write commands."""


def read_model(path: Path) -> Any:
    """Read a SentencePiece model, perhaps compressed, as its protocol buffer. Raises ModelImportError: the file is
    damaged, or its type is not supported."""
    model = sentencepiece_model_pb2.ModelProto()  # type: ignore[attr-defined]
    try:
        model.ParseFromString(read_packed(path))
    except DecodeError as error:
        raise ModelImportError(f"{path.name} is no SentencePiece model: {error}") from error
    if not model.pieces:
        raise ModelImportError(f"{path.name} is no SentencePiece model: it has no pieces")
    if not all(isinstance(piece.piece, str) for piece in model.pieces):  # protobuf returns bytes
        raise ModelImportError(f"{path.name} is no SentencePiece model: a piece is not UTF-8")
    if model.trainer_spec.model_type not in (UNIGRAM, BPE):
        raise ModelImportError(
            f"{path.name} is a SentencePiece model of words or characters; unigram and BPE are supported"
        )
    return model


def pieces_of(model: Any) -> list[str]:
    """Return the pieces in the order of their ids, control pieces by their own names."""
    return [piece.piece for piece in model.pieces]


def tokenizer_of(model: Any) -> Tokenizer:
    """Return a tokenizer that cuts a text as the model does, with its ids and without special tokens.

    Neighbouring unknown characters are one token, whose text (`Encoding.tokens`) is theirs.
    """
    names = [piece.piece if piece.type != CONTROL else CONTROL_NAME.format(i) for i, piece in enumerate(model.pieces)]
    unk = next((i for i, piece in enumerate(model.pieces) if piece.type == UNKNOWN), None)
    bytes_too = any(piece.type == BYTE for piece in model.pieces)
    if model.trainer_spec.model_type == UNIGRAM:
        scores = [(name, float(piece.score)) for name, piece in zip(names, model.pieces, strict=True)]
        tokenizer = Tokenizer(models.Unigram(scores, unk_id=unk, byte_fallback=bytes_too))
    else:
        tokenizer = Tokenizer(
            models.BPE(
                {name: i for i, name in enumerate(names)},
                _merges(names, [piece.score for piece in model.pieces], [piece.type for piece in model.pieces]),
                unk_token=names[unk] if unk is not None else None,
                fuse_unk=True,
                byte_fallback=bytes_too,
            )
        )
    spec = model.normalizer_spec
    steps: list[normalizers.Normalizer] = []
    if spec.precompiled_charsmap:
        steps.append(normalizers.Precompiled(spec.precompiled_charsmap))
    if spec.remove_extra_whitespaces:
        steps += [normalizers.Strip(), normalizers.Replace(Regex(" {2,}"), " ")]
    if steps:
        tokenizer.normalizer = normalizers.Sequence(steps)
    prepend = "always" if spec.add_dummy_prefix else "never"
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(SPACE, prepend_scheme=prepend)
    metaspace = decoders.Metaspace(SPACE, prepend_scheme=prepend)
    fused: list[Any] = [decoders.ByteFallback(), metaspace, decoders.Fuse()] if bytes_too else [metaspace]
    tokenizer.decoder = decoders.Sequence(fused) if len(fused) > 1 else metaspace
    return tokenizer


def _merges(pieces: list[str], scores: list[float], types: list[int]) -> list[tuple[str, str]]:
    """Return the merges of a BPE model, which stores none: each pair of pieces that form one, by falling score."""
    ids = {piece: i for i, piece in enumerate(pieces) if types[i] in (NORMAL, USER_DEFINED)}
    lengths = {len(piece) for piece in ids}  # few, so that a long piece is not cut at all places
    merges = []
    for piece, i in ids.items():
        for cut in lengths & {len(piece) - length for length in lengths}:
            left, right = piece[:cut], piece[cut:]
            if left in ids and right in ids:
                merges.append((-scores[i], ids[left], ids[right], left, right))
    return [(left, right) for *_, left, right in sorted(merges)]
