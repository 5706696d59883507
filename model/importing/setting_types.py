"""Types of the settings in the JSON files of Hugging Face's directories, the same for all families of models."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, NonNegativeInt, TypeAdapter, ValidationError

from model.importing.imported import ModelImportError


class Token(BaseModel):
    """A token with its settings, which may be stored in place of its text."""

    content: str


KINDS: tuple[tuple[str, TypeAdapter[Any], frozenset[str]], ...] = (
    (
        "true or false",
        TypeAdapter(bool),
        frozenset({
            "add_prefix_space", "attention_bias", "bias", "classifier_bias", "do_lower_case", "include_prompt",
            "is_decoder", "legacy_behaviour", "mlp_bias", "norm_bias", "position_biased_input", "relative_attention",
            "scale_decoder_outputs", "scale_embedding", "separate_vocabs", "share_att_key",
            "share_encoder_decoder_embeddings", "static_position_embeddings", "strip_accents", "tie_word_embeddings",
            "tokenize_chinese_chars",
        }),
    ),
    (
        "a number",
        TypeAdapter(float),
        frozenset({
            "dropout", "dropout_rate", "global_rope_theta", "layer_norm_epsilon", "length_penalty", "local_rope_theta",
            "model_max_length",
        }),
    ),
    (
        "an integer",
        TypeAdapter(int),
        frozenset({
            "attention_head_size", "conv_kernel_size", "forced_bos_token_id", "global_attn_every_n_layers",
            "local_attention", "max_relative_positions", "n_positions", "num_beams", "num_decoder_layers",
            "pad_token_id", "position_buckets", "relative_attention_max_distance", "relative_attention_num_buckets",
        }),
    ),
    (
        "a text",
        TypeAdapter(str),
        frozenset({
            "activation", "activation_function", "classifier_activation", "classifier_pooling", "default_prompt_name",
            "feed_forward_proj", "hidden_act", "hidden_activation", "language_codes", "model_type", "norm_rel_ebd",
            "pooler_hidden_act", "position_embedding_type", "problem_type", "sourceLanguage", "source_lang",
            "targetLanguage", "target_lang", "tokenizer_class",
        }),
    ),
    (
        "a text, or a list of texts",
        TypeAdapter(str | list[str]),
        frozenset({
            "architectures", "layer_types", "pooling_mode", "pos_att_type",
        }),
    ),
    ("a list of integers", TypeAdapter(list[NonNegativeInt]), frozenset({"suppress_tokens"})),
    ("a list of lists of integers", TypeAdapter(list[list[NonNegativeInt]]), frozenset({"bad_words_ids"})),
    ("texts by their names", TypeAdapter(dict[str, str]), frozenset({"prompts"})),
    (
        "settings by their names",
        TypeAdapter(dict[str, dict[str, Any]]),
        frozenset({
            "added_tokens_decoder", "task_specific_params",
        }),
    ),
    (
        "a token",
        TypeAdapter(str | Token),
        frozenset(f"{kind}_token" for kind in ("bos", "cls", "eos", "mask", "pad", "sep", "unk")),
    ),
    (
        "tokens",
        TypeAdapter(list[str | Token] | dict[str, str | Token]),
        frozenset({
            "additional_special_tokens", "extra_special_tokens",
        }),
    ),
)  # fmt: skip
"""Types of settings, in words, and the settings that have them. Null is the same as none of these."""


def typed(settings: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the settings of a file without those that are null but have a type, numbers and the like in their types.
    Raises ModelImportError: one has another type than it must have."""
    typed_keys = {key for *_, keys in KINDS for key in keys}
    given = {key: value for key, value in settings.items() if value is not None or key not in typed_keys}
    for words, kind, keys in KINDS:
        for key in sorted(keys & given.keys()):
            value = given[key]
            try:
                checked = kind.validate_python(value)
            except ValidationError:
                raise ModelImportError(f"{name}: `{key}` is {shown(value)}; it must be {words}") from None
            given[key] = checked if isinstance(value, bool | int | float | str) else value
    return given


def shown(value: object) -> str:
    """Write a value as in its file, cut if it is long."""
    written = json.dumps(value, ensure_ascii=False)
    return written if len(written) < 50 else f"{written[:45]}..."
