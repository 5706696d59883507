"""Writes an NLLB-200 of the size of the distilled 600M model with random weights, to measure memory."""

import json
import sys
from pathlib import Path

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import GenerationConfig, M2M100Config, M2M100ForConditionalGeneration

from benchmarks.texts import OWN_SENTENCES

VOCAB_SIZE = 256_206
N_ROWS_WITHOUT_TOKEN = 2
LANGUAGES = ["deu_Latn", "eng_Latn", "fra_Latn", "rus_Cyrl", "spa_Latn", "zho_Hans"]
"""Some of its 202 languages; their tokens take no more room than others."""
N_LAYERS, N_HEADS, D_MODEL, D_FF, POSITIONS = 12, 16, 1024, 4096, 1024
SEED = 20


def save_random_nllb(directory: Path) -> None:
    """Write weights (2.5 GB), configurations and tokenizer."""
    torch.manual_seed(SEED)
    config = M2M100Config(
        vocab_size=VOCAB_SIZE,
        d_model=D_MODEL,
        encoder_layers=N_LAYERS,
        decoder_layers=N_LAYERS,
        encoder_attention_heads=N_HEADS,
        decoder_attention_heads=N_HEADS,
        encoder_ffn_dim=D_FF,
        decoder_ffn_dim=D_FF,
        max_position_embeddings=POSITIONS,
        scale_embedding=True,
        decoder_start_token_id=2,
    )
    model = M2M100ForConditionalGeneration(config)
    model.generation_config = GenerationConfig(
        max_length=200, decoder_start_token_id=2, eos_token_id=2, pad_token_id=1, bos_token_id=0
    )
    model.save_pretrained(directory)
    _save_tokenizer(directory)


def _save_tokenizer(directory: Path) -> None:
    """Write a tokenizer whose pieces are characters, and others that occur in no text."""
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    letters = sorted(set(OWN_SENTENCES.read_text(encoding="utf-8")) - set(" \n") | {"▁"})
    n_added = len(LANGUAGES) + 1
    n_made_up = VOCAB_SIZE - N_ROWS_WITHOUT_TOKEN - n_added - len(special) - len(letters)
    pieces = [*special, *letters, *(f"<made-up-{i}>" for i in range(n_made_up))]
    tokenizer = Tokenizer(models.BPE({piece: i for i, piece in enumerate(pieces)}, [], unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace("▁", prepend_scheme="always")
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in [*special, *LANGUAGES, "<mask>"]])
    tokenizer.save(str(directory / "tokenizer.json"))
    settings = {"tokenizer_class": "NllbTokenizer", "additional_special_tokens": LANGUAGES}
    (directory / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")


if __name__ == "__main__":
    save_random_nllb(Path(sys.argv[1]))
