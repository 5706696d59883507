"""Directories in the layout of Hugging Face: JSON files, the licence in a card, and generation settings."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import Field, NonNegativeInt, TypeAdapter, ValidationError

from manifest.schema import MAX_BEAM_SIZE
from model.checked_yaml import parsed
from model.config import Decoding
from model.importing.imported import NO_THRESHOLD, ModelImportError, in_words
from model.importing.json_files import parsed_json
from model.importing.setting_types import shown, typed
from model.tokenizer import UNK

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
"""Settings that are not followed here, and values with which they change no translation."""
FOLLOWED = frozenset({
    "bad_words_ids", "bos_token_id", "decoder_start_token_id", "early_stopping", "eos_token_id", "forced_bos_token_id",
    "forced_eos_token_id", "length_penalty", "max_length", "max_new_tokens", "num_beams", "pad_token_id",
    "renormalize_logits", "suppress_tokens",
})  # fmt: skip
WITHOUT_EFFECT = frozenset({"cache_implementation", "low_memory", "transformers_version", "use_cache"})
_IDS = TypeAdapter(dict[str, NonNegativeInt])
_NUMBER: TypeAdapter[int] = TypeAdapter(Annotated[int, Field(ge=0, lt=2**31)])


def read_json(directory: Path, name: str) -> dict[str, Any]:
    """Read the settings of a JSON file, in the types that they have for all families. Raises ModelImportError: the file
    is missing or no JSON object, or a setting is of another type."""
    return typed(_read_object(directory, name), name)


def read_json_if_there(directory: Path, name: str) -> dict[str, Any]:
    """Read a JSON object; empty if the file is missing."""
    return read_json(directory, name) if (directory / name).is_file() else {}


def read_ids(directory: Path, name: str, needed: Iterable[str] = (UNK,)) -> dict[str, int]:
    """Read a vocabulary: the id of each piece. Raises ModelImportError: the file is missing or no such object, or a
    needed piece is."""
    try:
        ids = _IDS.validate_python(_read_object(directory, name), strict=True)
    except ValidationError as error:
        wrong = error.errors()[0]
        piece = wrong["loc"][0] if wrong["loc"] else "all"
        raise ModelImportError(f"{name}: the id of {piece} is {shown(wrong['input'])}; it must be 0 or more") from None
    for piece in needed:
        if piece not in ids:
            raise ModelImportError(f"{name} has no {piece}")
    return ids


def number(content: Mapping[str, Any], key: str, name: str = CONFIG) -> int:
    """Return a size, a count or an id; raise ModelImportError if it is missing or something else."""
    if content.get(key) is None:
        raise ModelImportError(f"{name} has no `{key}`")
    try:
        return _NUMBER.validate_python(content[key])
    except ValidationError:
        raise ModelImportError(f"{name}: `{key}` is {shown(content[key])}; it must be an integer, 0 or more") from None


def _read_object(directory: Path, name: str) -> dict[str, Any]:
    try:
        content = parsed_json(directory / name)
    except FileNotFoundError:
        raise ModelImportError(f"{name} is missing") from None
    except ValueError as error:  # of JSON or of its encoding
        raise ModelImportError(f"{name} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise ModelImportError(f"{name} is not a JSON object")
    return content


def architectures(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the classes of transformers that a config.json names, if any."""
    named = config.get("architectures") or ()
    return (named,) if isinstance(named, str) else tuple(map(str, named))


WRITERS = ("ForConditionalGeneration", "WithLMHeadModel")
"""Ends of the names of classes of transformers that write text."""


def kind_of_writer(config: Mapping[str, Any], families: Mapping[str, str]) -> str:
    """Return the model_type of a model that writes text.

    Args:
        families: names of families by their model_type.

    Raises:
        ModelImportError: the model has another task.
    """
    kind = str(config["model_type"])
    for name in architectures(config):
        if not name.endswith(WRITERS):
            raise ModelImportError(f"{name} is not supported; {families[kind]} models that write text are")
    return kind


def licence_of(directory: Path) -> str | None:
    """Return the licence at the top of the card, if there is one."""
    licence = front_matter(directory).get("license")
    return str(licence) if licence else None


def front_matter(directory: Path) -> dict[str, Any]:
    """Return what the card says at its top for programs; nothing if there is no card, or no YAML at its top."""
    path = directory / CARD
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    parts = text.split("---\n", 2)
    if len(parts) < 3 or parts[0].strip():
        return {}
    try:
        front = parsed(parts[1])
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}
    return front if isinstance(front, dict) else {}


@dataclass(frozen=True)
class Generation:
    """Generation settings of a model.

    Attributes:
        decoding: the settings that are followed.
        start: the first token of a target.
        banned: tokens that are never written.
        first: the token that every target must begin with, if there is one.
        notes: settings that are not followed, a sentence each.
    """

    decoding: Decoding
    start: int
    banned: frozenset[int]
    notes: tuple[str, ...]
    first: int | None = None


def read_generation(directory: Path, config: Mapping[str, Any], begins_with_language: bool = False) -> Generation:
    """Read generation_config.json, or config.json of an older model.

    Args:
        begins_with_language: whether a forced first token is a language, which requests choose.

    Raises:
        ModelImportError: a setting has an impossible value.
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
    n_tokens = config.get("decoder_vocab_size") or config.get("vocab_size")
    banned = {int(words[0]) for words in bad_words if len(words) == 1} | set(settings.get("suppress_tokens") or [])
    if banned and isinstance(n_tokens, int) and max(banned) >= n_tokens:
        raise ModelImportError(f"{file} bars the token {max(banned)}, but the model has only {n_tokens}")
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
        raise ModelImportError(f"{file}: {in_words(error)}") from error
    return Generation(decoding, start, frozenset(banned), tuple(notes), settings.get("forced_bos_token_id"))


def _is_ignored(key: str, value: object) -> bool:
    if key in FOLLOWED | WITHOUT_EFFECT or key.startswith(("_", "output_", "return_")):
        return False
    return value not in (None, False, [], {}) and value != NEUTRAL_VALUES.get(key)
