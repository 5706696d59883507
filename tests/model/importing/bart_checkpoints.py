"""Small mBART-50 and BART models in Hugging Face's layout."""

import json
from pathlib import Path
from typing import Any, Literal

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BartTokenizer,
    GenerationConfig,
    MBart50Tokenizer,
    MBartConfig,
    MBartForConditionalGeneration,
)

from tests.model.importing.marian_checkpoints import ENGLISH, FRENCH, train
from tests.model.importing.sentencepieces import sentencepiece_model

Family = Literal["mbart", "bart"]
FRENCH_TOKEN = "fr_XX"


def write_bart(directory: Path, family: Family, steps: int = 0, with_json: bool = False, **changes: Any) -> Any:
    """Write a model and its tokenizer, trained for some steps on a dozen sentences from English to French.

    Args:
        with_json: whether the tokenizer is a tokenizer.json.
    """
    directory.mkdir(parents=True, exist_ok=True)
    if family == "mbart":
        pieces = sentencepiece_model([*ENGLISH, *FRENCH] * 20, 200, normalization_rule_name="nmt_nfkc")
        (directory / "sentencepiece.bpe.model").write_bytes(pieces)
        (directory / "tokenizer_config.json").write_text('{"tokenizer_class": "MBart50Tokenizer"}')
    else:
        _write_byte_pairs(directory)
    tokenizer = tokenizer_of(directory, family)
    if with_json:
        tokenizer.save_pretrained(directory)
        for name in ("sentencepiece.bpe.model", "vocab.json", "merges.txt"):
            (directory / name).unlink(missing_ok=True)
    make_config, make_model = (
        (MBartConfig, MBartForConditionalGeneration)
        if family == "mbart"
        else (BartConfig, BartForConditionalGeneration)
    )
    config = make_config(
        **{
            "vocab_size": len(tokenizer),
            "d_model": 48,
            "encoder_layers": 2,
            "decoder_layers": 3,
            "encoder_attention_heads": 3,
            "decoder_attention_heads": 3,
            "encoder_ffn_dim": 80,
            "decoder_ffn_dim": 80,
            "max_position_embeddings": 96,
            "scale_embedding": family == "mbart",
            "dropout": 0.0,
            "attention_dropout": 0.0,
            "decoder_start_token_id": 2,
            **changes,
        }
    )
    torch.manual_seed(3)
    model = make_model(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed" in name and "layernorm" not in name:
                parameter.normal_(std=0.2)
        model.model.shared.weight.normal_(std=0.1)
        model.final_logits_bias.normal_(std=0.1 if family == "mbart" else 0.0)
    train(model, tokenizer, ENGLISH, steps)
    first = {} if family == "mbart" else {"forced_bos_token_id": 0}
    model.generation_config = GenerationConfig(
        max_length=90, num_beams=5, early_stopping=True, decoder_start_token_id=2, eos_token_id=2, pad_token_id=1,
        bos_token_id=0, **first,
    )  # fmt: skip
    model.eval().save_pretrained(directory)
    return model


def tokenizer_of(directory: Path, family: Family) -> Any:
    """Load the tokenizer with transformers, of mBART-50 from English to French."""
    if family == "bart":
        return BartTokenizer.from_pretrained(directory)
    return MBart50Tokenizer.from_pretrained(directory, src_lang="en_XX", tgt_lang=FRENCH_TOKEN)


def load_bart(directory: Path, family: Family) -> Any:
    """Load the model with transformers."""
    made = MBartForConditionalGeneration if family == "mbart" else BartForConditionalGeneration
    return made.from_pretrained(directory).eval()


def _write_byte_pairs(directory: Path) -> None:
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=380, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(ENGLISH + FRENCH, trainer)
    tokenizer.model.save(str(directory))
    vocabulary = json.loads((directory / "vocab.json").read_text(encoding="utf-8"))
    vocabulary["<mask>"] = len(vocabulary)
    (directory / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False), encoding="utf-8")
    (directory / "tokenizer_config.json").write_text('{"tokenizer_class": "BartTokenizer"}')
