"""Translators of Firefox and Bergamot: students in Marian's binary format, with SSRUs in the decoder.

A directory has the weights (model.enfr.intgemm.alphas.bin), the vocabulary (vocab.enfr.spm, or one for each side), and
often a shortlist (lex.50.50.enfr.s2t.bin) and metadata.json. Each file may be compressed (.gz, .zst). Files are
compared with their sums if a registry of Firefox's models is beside them (firefox_registry.py).

Source: Bogoychev et al. 2020, "Edinburgh's Submissions to the 2020 Machine Translation Efficiency Task".
"""

import re
from collections.abc import Sequence
from pathlib import Path

from model.config import Decoding
from model.importing.firefox_registry import Record, records_of
from model.importing.hugging_face import read_json_if_there
from model.importing.imported import NO_THRESHOLD, ImportedModel, ModelImportError, Options, config_of
from model.importing.lexical_shortlist import read_shortlist
from model.importing.marian_bin import is_marian_bin
from model.importing.marian_model import (
    aligning_head,
    build,
    read_vocabularies,
    read_weights,
    sentencepiece_tokenizer,
    written_tokens,
)
from model.importing.marian_pieces import Languages, choose_languages, language_names
from model.importing.packed_files import PACKED

FAMILY = "Firefox Translations (Bergamot)"
METADATA = "metadata.json"
LICENCE = "mpl-2.0"
"""Licence of the models that Mozilla publishes; other projects have other licences."""
_LANGUAGES = re.compile(r"\.([a-z]{2})([a-z]{2})\.")
"""Two codes in the name of a file: model.enfr.intgemm.alphas.bin."""
_PUBLISHED = re.compile(r"model\.[a-z]{4}\.intgemm.*\.bin")
"""Names that Mozilla gives to its files of weights."""


def recognizes(directory: Path) -> bool:
    """Whether a directory has weights in Marian's binary format."""
    return any(is_marian_bin(path) or path.suffix == ".zst" for path in _files(directory, "model*.bin"))


def import_directory(directory: Path, options: Options) -> ImportedModel:
    """Import the model of a directory. Raises ModelImportError: a file is missing or damaged, or the model is not
    supported."""
    path = _only(directory, "model*.bin", "weights")
    pieces = _vocabularies(directory)
    lists = _only(directory, "lex*.bin", "shortlist") if _files(directory, "lex*.bin") else None
    records = [record for file in (*pieces, lists, path) if file for record in records_of(directory, file)]
    file, vocabulary = read_weights(path), read_vocabularies(*pieces)
    source, target = _languages(directory, path, records, options)
    transformer, weights = build(file, vocabulary, source, target)
    weights["is_target_token"] = written_tokens(transformer, vocabulary.target.values())
    if lists is not None:
        config, tensors = read_shortlist(lists, vocabulary, transformer.encoder_layer.vocab_size)
        transformer, weights = transformer.model_copy(update={"shortlist": config}), weights | tensors
    does = f"{language_names(source)} to {language_names(target)}"
    decoding = Decoding(beam_size=1, length_penalty=1.0, beam_threshold=NO_THRESHOLD)
    return ImportedModel(
        config_of(directory, options, FAMILY, does, transformer, _licence(directory, path, records), decoding),
        weights,
        sentencepiece_tokenizer(*pieces),
        vocabulary,
        aligning_head(file.architecture),
    )


def _vocabularies(directory: Path) -> tuple[Path, Path]:
    """Both sides may have one file."""
    if _files(directory, "srcvocab*.spm"):
        return _only(directory, "srcvocab*.spm", "source vocabulary"), _only(
            directory, "trgvocab*.spm", "target vocabulary"
        )
    shared = _only(directory, "vocab*.spm", "vocabulary")
    return shared, shared


def _files(directory: Path, pattern: str) -> list[Path]:
    """Return the files of a name, perhaps compressed; the unpacked ones if there are both."""
    by_packing = (sorted(directory.glob(pattern + packed)) for packed in PACKED)
    return next((files for files in by_packing if files), [])


def _only(directory: Path, pattern: str, what: str) -> Path:
    paths = _files(directory, pattern)
    if not paths:
        raise ModelImportError(f"{pattern} (the {what}) is missing")
    if len(paths) > 1:
        raise ModelImportError(f"{' and '.join(path.name for path in paths)}: only one file may be the {what}")
    return paths[0]


def _languages(
    directory: Path, weights: Path, records: Sequence[Record], options: Options
) -> tuple[Languages, Languages]:
    """Return the languages: from the options, metadata.json, the registry's record of the weights, or the names of
    files."""
    metadata = read_json_if_there(directory, METADATA)
    read, written = ([str(metadata[key])] if metadata.get(key) else [] for key in ("sourceLanguage", "targetLanguage"))
    if records and not (read or written):
        read, written = [records[-1].source], [records[-1].target]
    named = [weights, *_files(directory, "vocab*.spm"), *_files(directory, "lex*.bin")]
    match_of_name = next((match for match in map(_LANGUAGES.search, [path.name for path in named]) if match), None)
    if match_of_name and not (read or written):
        read, written = [match_of_name[1]], [match_of_name[2]]
    return choose_languages({}, read, written, options)


def _licence(directory: Path, weights: Path, records: Sequence[Record]) -> str | None:
    """Return Mozilla's licence if Mozilla's registry has the files, or they have the names that Mozilla gives them."""
    is_published = records or _PUBLISHED.match(weights.name) or (directory / METADATA).is_file()
    return LICENCE if is_published else None
