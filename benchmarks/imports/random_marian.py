"""Writes a MarianMT of the size of opus-mt models with random weights, in the files of transformers.

As in `benchmarks.random_model`, every sequence ends at its limit: the feed-forward networks outweigh the token that was
read and change it, so that no token repeats for ever, and the bias of the logits excludes </s>.
"""

import io
import json
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from sentencepiece import sentencepiece_model_pb2
from transformers import GenerationConfig, MarianConfig, MarianMTModel

from benchmarks.texts import OWN_SENTENCES
from model.importing.sentencepiece_files import NORMAL

VOCAB_SIZE = 59_514
EOS_ID, UNK_ID, PAD_ID = 0, 1, VOCAB_SIZE - 1
N_LAYERS, N_HEADS, D_MODEL, D_FF, POSITIONS = 6, 8, 512, 2048, 512
SEED = 20
HIDDEN_GAIN, OUTPUT_GAIN = 5.0, 3.0
"""Factors of both weights of each feed-forward network."""
EOS_BIAS = -1000.0
UNLIKELY = -99.0
N_TRAINED, N_PIECES = 300, 32_000
"""Pieces of a SentencePiece model that are trained on our own sentences, and all pieces; the others occur in no text.
Opus-mt models have as many for source and target each, of which some are in both."""


def save_random_marian(directory: Path) -> None:
    """Write weights, configurations, both SentencePiece models and the vocabulary."""
    torch.manual_seed(SEED)
    model: Any = MarianMTModel(_config())
    _never_repeat_never_end(model)
    model.generation_config = search_settings(PAD_ID)
    model.save_pretrained(directory)
    _save_tokenizer(directory)


def search_settings(pad: int) -> GenerationConfig:
    """Return the search settings of opus-mt models."""
    return GenerationConfig(
        num_beams=4,
        max_length=POSITIONS,
        bad_words_ids=[[pad]],
        renormalize_logits=True,
        pad_token_id=pad,
        decoder_start_token_id=pad,
        eos_token_id=EOS_ID,
        bos_token_id=EOS_ID,
        forced_eos_token_id=EOS_ID,
    )


def _config() -> Any:
    return MarianConfig(
        vocab_size=VOCAB_SIZE,
        decoder_vocab_size=VOCAB_SIZE,
        d_model=D_MODEL,
        encoder_layers=N_LAYERS,
        decoder_layers=N_LAYERS,
        encoder_attention_heads=N_HEADS,
        decoder_attention_heads=N_HEADS,
        encoder_ffn_dim=D_FF,
        decoder_ffn_dim=D_FF,
        activation_function="swish",
        scale_embedding=True,
        max_position_embeddings=POSITIONS,
        pad_token_id=PAD_ID,
        eos_token_id=EOS_ID,
        bos_token_id=EOS_ID,
        decoder_start_token_id=PAD_ID,
        forced_eos_token_id=EOS_ID,
    )


@torch.no_grad()
def _never_repeat_never_end(model: Any) -> None:
    for name, weight in model.named_parameters():
        if name.endswith("fc1.weight"):
            weight *= HIDDEN_GAIN
        if name.endswith("fc2.weight"):  # removes the effect of the mean of its input, which is never negative
            weight.copy_(OUTPUT_GAIN * (weight - weight.mean(dim=1, keepdim=True)))
    model.model.shared.weight[PAD_ID] = 0
    model.final_logits_bias.normal_(std=0.5)
    model.final_logits_bias[0, EOS_ID] = EOS_BIAS
    model.final_logits_bias[0, PAD_ID] = 0


def _save_tokenizer(directory: Path) -> None:
    model = _trained_pieces()
    special = ["</s>", "<unk>", "<pad>"]
    n_made_up = VOCAB_SIZE - len(special) - sum(piece.type == NORMAL for piece in model.pieces)
    made_up = [f"<made-up-{i}>" for i in range(n_made_up)]
    n_each = N_PIECES - len(model.pieces)
    for name, others in (("source.spm", made_up[:n_each]), ("target.spm", made_up[-n_each:])):
        filled = sentencepiece_model_pb2.ModelProto()  # type: ignore[attr-defined]
        filled.CopyFrom(model)
        for piece in others:
            filled.pieces.add(piece=piece, score=UNLIKELY, type=NORMAL)
        (directory / name).write_bytes(filled.SerializeToString())
    trained = [piece.piece for piece in model.pieces if piece.type == NORMAL]
    pieces = ["</s>", "<unk>", *trained, *made_up, "<pad>"]
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    (directory / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False), encoding="utf-8")
    languages = {"source_lang": "en", "target_lang": "fr"}
    (directory / "tokenizer_config.json").write_text(json.dumps(languages), encoding="utf-8")


def _trained_pieces() -> Any:
    trained = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(OWN_SENTENCES.read_text(encoding="utf-8").splitlines() * 10),
        model_writer=trained,
        vocab_size=N_TRAINED,
        normalization_rule_name="nmt_nfkc",
        minloglevel=2,
    )
    model = sentencepiece_model_pb2.ModelProto()  # type: ignore[attr-defined]
    model.ParseFromString(trained.getvalue())
    return model
