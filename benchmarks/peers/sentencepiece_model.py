"""Converts our byte-level BPE tokenizer to a SentencePiece model, the only kind in packages of LibreTranslate.

Both are byte pair encoding. A token's bytes become the text of a piece, its rank among the merges the score, and a byte
that is no character a byte piece. Only tokens with two or more bytes of an incomplete character have no counterpart;
their ids get a piece that matches nothing.
"""

from typing import Any

from sentencepiece import SentencePieceProcessor, sentencepiece_model_pb2
from tokenizers import Tokenizer

from benchmarks.texts import vocabulary
from model.tokenizer import BOS_ID, EOS_ID, PAD_ID, SPECIAL_TOKENS, UNK_ID

SPACE = "▁"
protobuf: Any = sentencepiece_model_pb2  # its classes are created on import
Piece = protobuf.ModelProto.SentencePiece


def from_tokenizer(tokenizer: Tokenizer) -> tuple[bytes, list[str]]:
    """Return the serialized model, and the piece of every token id."""
    byte_of = _bytes_of_characters()
    proto = protobuf.ModelProto()
    seen: set[str] = set()
    for i, token in enumerate(vocabulary(tokenizer)):
        if i < len(SPECIAL_TOKENS):
            piece, kind = token, Piece.UNKNOWN if i == UNK_ID else Piece.CONTROL
        else:
            piece, kind = _piece(bytes(byte_of[character] for character in token))
        if not piece or piece in seen:
            piece, kind = f"<{i}>", Piece.UNUSED
        seen.add(piece)
        proto.pieces.add(piece=piece, score=-i, type=kind)
    pieces = [piece.piece for piece in proto.pieces]
    # A model with byte pieces must have all 256, including those of characters, which are never needed.
    proto.pieces.extend(
        Piece(piece=_byte_piece(byte), score=0, type=Piece.BYTE) for byte in range(256) if _byte_piece(byte) not in seen
    )
    _describe(proto)
    return proto.SerializeToString(), pieces


def tokenized_alike(tokenizer: Tokenizer, texts: list[str]) -> int:
    """Return how many texts have the same tokens in both tokenizers."""
    serialized, pieces = from_tokenizer(tokenizer)
    processor = SentencePieceProcessor(model_proto=serialized)
    ours = [[pieces[i] for i in encoding.ids[:-1]] for encoding in tokenizer.encode_batch(texts)]
    return sum(a == b for a, b in zip(processor.encode(texts, out_type=str), ours, strict=True))


def _piece(raw: bytes) -> tuple[str, int]:
    """Return text and type of a piece; part of a character has no text."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return (_byte_piece(raw[0]), Piece.BYTE) if len(raw) == 1 else ("", Piece.UNUSED)
    if len(raw) == 1 and not text.isprintable():
        return _byte_piece(raw[0]), Piece.BYTE
    return text.replace(" ", SPACE), Piece.NORMAL


def _byte_piece(byte: int) -> str:
    return f"<0x{byte:02X}>"


def _describe(proto: Any) -> None:
    proto.trainer_spec.model_type = protobuf.TrainerSpec.BPE
    proto.trainer_spec.vocab_size = len(proto.pieces)
    proto.trainer_spec.byte_fallback = True
    for name, i in {"unk_id": UNK_ID, "bos_id": BOS_ID, "eos_id": EOS_ID, "pad_id": PAD_ID}.items():
        setattr(proto.trainer_spec, name, i)
    proto.trainer_spec.pad_piece = SPECIAL_TOKENS[PAD_ID]
    proto.normalizer_spec.name = "identity"
    proto.normalizer_spec.add_dummy_prefix = True
    proto.normalizer_spec.remove_extra_whitespaces = True
    proto.normalizer_spec.escape_whitespaces = True


def _bytes_of_characters() -> dict[str, int]:
    """Return the table of byte-level BPE (Radford et al. 2019): printable bytes are themselves, others follow 255."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    table = {chr(byte): byte for byte in printable}
    return {**table, **{chr(256 + n): byte for n, byte in enumerate(others)}}
