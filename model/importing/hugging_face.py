"""Directories in Hugging Face's layout: JSON files, what a card says, and how a model is asked to generate."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from model.config import Decoding
from model.importing.imported import MAX_BEAM_SIZE, NO_THRESHOLD, ModelImportError

CONFIG, GENERATION, TOKENIZER_CONFIG, CARD = (
    "config.json",
    "generation_config.json",
    "tokenizer_config.json",
    "README.md",
)

NEUTRAL_VALUES: Mapping[str, Any] = {
    "diversity_penalty": 0.0,
    "encoder_no_repeat_ngram_size": 0,
    "encoder_repetition_penalty": 1.0,
    "epsilon_cutoff": 0.0,
    "eta_cutoff": 0.0,
    "exponential_decay_length_penalty": None,
    "min_length": 0,
    "no_repeat_ngram_size": 0,
    "num_beam_groups": 1,
    "num_return_sequences": 1,
    "repetition_penalty": 1.0,
    "temperature": 1.0,
    "top_k": 50,
    "top_p": 1.0,
    "typical_p": 1.0,
}
"""Settings that change translations, where they are not followed here, and the values with which they change none."""
FOLLOWED = frozenset({
    "bad_words_ids", "bos_token_id", "decoder_start_token_id", "early_stopping", "eos_token_id", "forced_bos_token_id",
    "forced_eos_token_id", "length_penalty", "max_length", "max_new_tokens", "num_beams", "pad_token_id",
    "renormalize_logits", "suppress_tokens",
})  # fmt: skip
WITHOUT_EFFECT = frozenset({"cache_implementation", "low_memory", "transformers_version", "use_cache"})


def read_json(directory: Path, name: str) -> dict[str, Any]:
    """A JSON object.

    Raises:
        ModelImportError: it is missing, or is none.
    """
    try:
        content = json.loads((directory / name).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelImportError(f"{name} is missing") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ModelImportError(f"{name} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise ModelImportError(f"{name} is no JSON object")
    return content


def read_json_if_there(directory: Path, name: str) -> dict[str, Any]:
    """The same; empty if it is missing."""
    return read_json(directory, name) if (directory / name).is_file() else {}


def number(content: Mapping[str, Any], key: str, name: str = CONFIG) -> int:
    """Raises ModelImportError: a file does not say it, or says something else than a whole number."""
    if content.get(key) is None:
        raise ModelImportError(f"{name} has no {key}")
    try:
        return int(content[key])
    except (TypeError, ValueError, OverflowError):
        raise ModelImportError(f"{name} has {key} {json.dumps(content[key])}, which is no whole number") from None


def architectures(config: Mapping[str, Any]) -> tuple[str, ...]:
    """The classes of transformers that a config.json names; none where it does not."""
    named = config.get("architectures") or ()
    return (named,) if isinstance(named, str) else tuple(map(str, named))


def licence_of(directory: Path) -> str | None:
    """What the card says at its top; None where it says nothing."""
    path = directory / CARD
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    parts = text.split("---\n", 2)
    if len(parts) < 3 or parts[0].strip():
        return None
    try:
        front = yaml.safe_load(parts[1])
    except yaml.YAMLError:
        return None
    licence = front.get("license") if isinstance(front, dict) else None
    return str(licence) if licence else None


@dataclass(frozen=True)
class Generation:
    """How a model is asked to generate.

    Attributes:
        decoding: what is followed of it.
        start: the token with which a target begins.
        banned: tokens that are never written.
        notes: what is not followed, a sentence each.
    """

    decoding: Decoding
    start: int
    banned: frozenset[int]
    notes: tuple[str, ...]


def read_generation(directory: Path, config: Mapping[str, Any], begins_with_language: bool = False) -> Generation:
    """Of generation_config.json, or of config.json where an older model has it there.

    Args:
        begins_with_language: whether a first token that is forced is that of a language, which a request chooses.

    Raises:
        ModelImportError: a setting has a value that makes no sense.
    """
    settings = read_json_if_there(directory, GENERATION)
    file = GENERATION if settings else CONFIG
    if not settings:
        settings = {key: value for key, value in config.items() if key in FOLLOWED | NEUTRAL_VALUES.keys()}
    notes = [
        f"{file} asks for {key} {json.dumps(value)}, which is not followed here"
        for key, value in settings.items()
        if _is_ignored(key, value)
    ]
    bad_words: list[list[int]] = settings.get("bad_words_ids") or []
    banned = {words[0] for words in bad_words if len(words) == 1} | set(settings.get("suppress_tokens") or [])
    notes += [
        f"{file} bars the tokens {words} together (bad_words_ids), which is not followed here"
        for words in bad_words
        if len(words) != 1
    ]
    if not begins_with_language and (first := settings.get("forced_bos_token_id")) is not None:
        notes.append(f"{file} forces every target to begin with token {first}, which is not followed here")
    start = number({**config, **settings}, "decoder_start_token_id", file)
    longest = number(settings, "max_length", file) if settings.get("max_length") else None
    if settings.get("max_new_tokens") is not None:
        longest = number(settings, "max_new_tokens", file) + 1
    if (early := settings.get("early_stopping", False)) not in (True, False, None):
        notes.append(f"{file} asks for early_stopping {json.dumps(early)}, which is not followed here")
    beam_size, penalty = settings.get("num_beams") or 1, settings.get("length_penalty")
    if isinstance(beam_size, int) and beam_size > MAX_BEAM_SIZE:
        notes.append(f"{file} asks for a beam of {beam_size}: the widest that is served is {MAX_BEAM_SIZE}")
        beam_size = MAX_BEAM_SIZE
    try:
        decoding = Decoding(
            beam_size=beam_size,
            length_penalty=1.0 if penalty is None else penalty,
            beam_threshold=NO_THRESHOLD,
            stop="full" if early is True else "full_no_better",
            max_target_tokens=longest - 1 if longest else None,  # the start is counted there
        )
    except ValueError as error:
        raise ModelImportError(f"{file}: {error}") from error
    return Generation(decoding, start, frozenset(banned), tuple(notes))


def _is_ignored(key: str, value: object) -> bool:
    if key in FOLLOWED | WITHOUT_EFFECT or key.startswith(("_", "output_", "return_")):
        return False
    return value not in (None, False, [], {}) and value != NEUTRAL_VALUES.get(key)
