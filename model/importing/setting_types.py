"""Types of the settings in the JSON files of Hugging Face's directories, the same for all families of models."""

import json
from typing import Any

from pydantic import NonNegativeInt, TypeAdapter, ValidationError

from model.importing.imported import ModelImportError

KINDS: tuple[tuple[str, TypeAdapter[Any], frozenset[str]], ...] = (
    (
        "true or false",
        TypeAdapter(bool),
        frozenset({
            "add_prefix_space", "bias", "do_lower_case", "include_prompt", "is_decoder", "legacy_behaviour",
            "scale_embedding", "separate_vocabs", "share_encoder_decoder_embeddings", "static_position_embeddings",
            "strip_accents", "tie_word_embeddings", "tokenize_chinese_chars",
        }),
    ),
    ("a number", TypeAdapter(float), frozenset({"dropout", "length_penalty", "model_max_length"})),
    ("an integer", TypeAdapter(int), frozenset({"forced_bos_token_id", "num_beams", "pad_token_id"})),
    (
        "a text",
        TypeAdapter(str),
        frozenset({
            "activation", "activation_function", "default_prompt_name", "hidden_act", "language_codes", "model_type",
            "position_embedding_type", "problem_type", "source_lang", "target_lang", "tokenizer_class",
        }),
    ),
    ("a text, or a list of texts", TypeAdapter(str | list[str]), frozenset({"architectures", "pooling_mode"})),
    ("a list of integers", TypeAdapter(list[NonNegativeInt]), frozenset({"suppress_tokens"})),
    ("a list of lists of integers", TypeAdapter(list[list[NonNegativeInt]]), frozenset({"bad_words_ids"})),
    ("texts by their names", TypeAdapter(dict[str, str]), frozenset({"prompts"})),
    ("settings by their names", TypeAdapter(dict[str, dict[str, Any]]), frozenset({"added_tokens_decoder"})),
)  # fmt: skip
"""Types of settings, in words, and the settings that have them; null is the same as no setting."""


def check_types(settings: dict[str, Any], name: str) -> None:
    """Check the settings of a file.

    Raises:
        ModelImportError: one has another type than it must have.
    """
    for words, kind, keys in KINDS:
        for key in sorted(keys & settings.keys()):
            try:
                kind.validate_python(settings[key])
            except ValidationError:
                raise ModelImportError(f"{name}: `{key}` is {shown(settings[key])}; it must be {words}") from None


def shown(value: object) -> str:
    """Write a value as in its file, cut if it is long."""
    written = json.dumps(value, ensure_ascii=False)
    return written if len(written) < 50 else f"{written[:45]}..."
