"""Small T5 models in Hugging Face's layout."""

import json
from pathlib import Path
from typing import Any, Literal

import torch
from transformers import (
    GenerationConfig,
    MT5Config,
    MT5ForConditionalGeneration,
    T5Config,
    T5ForConditionalGeneration,
    T5Tokenizer,
    UMT5Config,
    UMT5ForConditionalGeneration,
)

from tests.model.importing.marian_checkpoints import ENGLISH, FRENCH, train
from tests.model.importing.sentencepieces import sentencepiece_model

Family = Literal["t5", "flan", "madlad", "mt5", "umt5"]
CLASSES: dict[Family, tuple[Any, Any]] = {
    "t5": (T5Config, T5ForConditionalGeneration),
    "flan": (T5Config, T5ForConditionalGeneration),
    "madlad": (T5Config, T5ForConditionalGeneration),
    "mt5": (MT5Config, MT5ForConditionalGeneration),
    "umt5": (UMT5Config, UMT5ForConditionalGeneration),
}
PREFIX = "translate English to French: "
TASKS = {
    "summarization": {"prefix": "summarize: ", "min_length": 30},
    "translation_en_to_fr": {"prefix": PREFIX, "num_beams": 4},
    "translation_en_to_ro": {"prefix": "translate English to Romanian: ", "num_beams": 4},
}
"""As published models have them in config.json."""


def write_t5(directory: Path, family: Family, steps: int = 0, with_json: bool = False, **changes: Any) -> Any:
    """Write a model and its tokenizer, trained for some steps on a dozen sentences from English to French.

    Args:
        with_json: whether the tokenizer is a tokenizer.json instead of a SentencePiece model.
    """
    directory.mkdir(parents=True, exist_ok=True)
    codes = ["<2fr>", "<2de>", "<2zh_Hant>"] if family == "madlad" else []
    pieces = sentencepiece_model(
        [*ENGLISH, *FRENCH, *(task["prefix"] for task in TASKS.values())] * 20,
        230,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        user_defined_symbols=codes,
        normalization_rule_name="nmt_nfkc",
    )
    (directory / "spiece.model").write_bytes(pieces)
    (directory / "tokenizer_config.json").write_text('{"tokenizer_class": "T5Tokenizer", "model_max_length": 110}')
    tokenizer = tokenizer_of(directory)
    if with_json:
        tokenizer.save_pretrained(directory)
        (directory / "spiece.model").unlink()
    make_config, make_model = CLASSES[family]
    gated = {} if family == "t5" else {"feed_forward_proj": "gated-gelu"}
    config = make_config(
        **{
            "vocab_size": len(tokenizer) + 3,
            "d_model": 48,
            "d_kv": 16,
            "num_heads": 4,
            "d_ff": 80,
            "num_layers": 3,
            "num_decoder_layers": 2,
            "relative_attention_max_distance": 20,
            "relative_attention_num_buckets": 8,
            "dropout_rate": 0.0,
            "decoder_start_token_id": 0,
            **gated,
            **changes,
        }
    )
    torch.manual_seed(3)
    model = make_model(config)
    is_untied = family in ("flan", "madlad", "umt5")
    if is_untied:
        model.lm_head.weight = torch.nn.Parameter(torch.randn_like(model.shared.weight) * 0.1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "relative_attention_bias" in name:
                parameter.normal_()
        model.shared.weight.normal_(std=0.5 if is_untied else 1.0)
    if is_untied or family == "mt5":
        model.config.scale_decoder_outputs = False
    prefix = {"madlad": "<2fr> ", "t5": PREFIX}.get(family, "")
    train(model, tokenizer, [prefix + text for text in ENGLISH], steps)
    model.generation_config = GenerationConfig(decoder_start_token_id=0, eos_token_id=1, pad_token_id=0)
    model.eval().save_pretrained(directory)
    said = json.loads((directory / "config.json").read_text())
    # As in published files: newer ones say more.
    said |= {"tie_word_embeddings": not (is_untied or family == "mt5")}
    said.pop("scale_decoder_outputs", None)
    if family == "t5":
        said["task_specific_params"] = TASKS
    (directory / "config.json").write_text(json.dumps(said))
    return model


def tokenizer_of(directory: Path) -> Any:
    """Load the tokenizer with transformers."""
    return T5Tokenizer.from_pretrained(directory)


def load_t5(directory: Path, family: Family) -> Any:
    """Load the model with transformers."""
    return CLASSES[family][1].from_pretrained(directory).eval()
