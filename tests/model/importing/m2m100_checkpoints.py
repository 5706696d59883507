"""Small M2M100 and NLLB-200 models in Hugging Face's layout."""

import json
from pathlib import Path
from typing import Any, Literal

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import GenerationConfig, M2M100Config, M2M100ForConditionalGeneration, M2M100Tokenizer, NllbTokenizer

from tests.model.importing.marian_checkpoints import ENGLISH, FRENCH, train, train_sentencepiece

Family = Literal["m2m100", "nllb"]
NLLB_CODES = ["deu_Latn", "eng_Latn", "fra_Latn", "rus_Cyrl", "zho_Hant"]


def write_m2m100(directory: Path, family: Family, steps: int = 0, **changes: Any) -> M2M100ForConditionalGeneration:
    """Write a model and its tokenizer, trained for some steps on a dozen sentences from English to French."""
    directory.mkdir(parents=True, exist_ok=True)
    size = _write_m2m100_tokenizer(directory) if family == "m2m100" else _write_nllb_tokenizer(directory)
    config = M2M100Config(
        **{
            "vocab_size": size,
            "d_model": 48,
            "encoder_layers": 2,
            "decoder_layers": 3,
            "encoder_attention_heads": 3,
            "decoder_attention_heads": 3,
            "encoder_ffn_dim": 80,
            "decoder_ffn_dim": 80,
            "max_position_embeddings": 128,
            "scale_embedding": True,
            "dropout": 0.0,
            "attention_dropout": 0.0,
            "encoder_layerdrop": 0.0,
            "decoder_layerdrop": 0.0,
            "decoder_start_token_id": 2,
            **changes,
        }
    )
    config.save_pretrained(directory)
    torch.manual_seed(3)
    model = M2M100ForConditionalGeneration(config)
    with torch.no_grad():
        model.model.shared.weight.normal_(std=0.1)
    train(model, tokenizer_of(directory, family), ENGLISH, steps)
    beams: dict[str, Any] = {"num_beams": 5, "early_stopping": True} if family == "m2m100" else {}
    model.generation_config = GenerationConfig(
        max_length=90, decoder_start_token_id=2, eos_token_id=2, pad_token_id=1, bos_token_id=0, **beams
    )
    model.eval().save_pretrained(directory)
    return model


def tokenizer_of(directory: Path, family: Family) -> Any:
    """Load the tokenizer with transformers, from English to French."""
    if family == "m2m100":
        return M2M100Tokenizer.from_pretrained(directory, src_lang="en", tgt_lang="fr")
    return NllbTokenizer.from_pretrained(directory, src_lang="eng_Latn", tgt_lang="fra_Latn")


def _write_m2m100_tokenizer(directory: Path) -> int:
    pieces = train_sentencepiece(directory / "sentencepiece.bpe.model", ENGLISH + FRENCH, 220, "bpe")
    named = [piece for piece in pieces if piece not in ("<s>", "</s>", "<unk>")]
    vocabulary = {piece: i for i, piece in enumerate(["<s>", "<pad>", "</s>", "<unk>", *reversed(named)])}
    (directory / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False), encoding="utf-8")
    (directory / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "M2M100Tokenizer"}))
    return len(vocabulary) + 100 + 8


def _write_nllb_tokenizer(directory: Path) -> int:
    """Write the published form of the tokenizer: a language after the text."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="always", split=True)
    tokenizer.decoder = decoders.Metaspace("▁", prepend_scheme="always", split=True)
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    trainer = trainers.BpeTrainer(vocab_size=220, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(ENGLISH + FRENCH, trainer)
    tokenizer.add_special_tokens([AddedToken(code, special=True) for code in [*NLLB_CODES, "<mask>"]])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s> eng_Latn", special_tokens=[(name, tokenizer.token_to_id(name)) for name in ("</s>", "eng_Latn")]
    )
    tokenizer.save(str(directory / "tokenizer.json"))
    settings = {"tokenizer_class": "NllbTokenizer", "additional_special_tokens": NLLB_CODES}
    (directory / "tokenizer_config.json").write_text(json.dumps(settings))
    return int(tokenizer.get_vocab_size()) + 2
