"""OPUS-MT's releases in Marian's own format (Tiedemann and Thottingal 2020; Junczys-Dowmunt et al. 2018).

decoder.yml names the weights and the vocabularies, and has the search settings; source.spm cuts texts.
"""

import re
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

from pydantic import ValidationError
from tokenizers import Tokenizer

from manifest.schema import MAX_BEAM_SIZE
from manifest.vocabulary import Vocabulary
from model.config import Decoding
from model.importing.imported import NO_THRESHOLD, ImportedModel, ModelImportError, Options, config_of
from model.importing.marian_model import (
    aligning_head,
    build,
    read_vocabularies,
    read_weights,
    sentencepiece_tokenizer,
    written_tokens,
)
from model.importing.marian_pieces import (
    SOURCE_PIECES,
    Languages,
    choose_languages,
    language_names,
    refuse_other_pieces,
    source_tokenizer,
    target_ids,
    target_labels,
)
from model.importing.yaml_files import read_text, read_yaml

FAMILY = "OPUS-MT (Marian)"
DECODER, PREPROCESSING, LICENCE, CARD = "decoder.yml", "preprocess.sh", "LICENSE", "README.md"

BEAM_SIZE = 12
"""Marian's default, if decoder.yml has none."""
NEUTRAL_VALUES: Mapping[str, tuple[object, ...]] = {
    "allow-unk": ("false",),
    "max-length-factor": ("3",),
    "output-sampling": ([], "false"),
    "shortlist": ([],),
    "word-penalty": ("0", "0.0"),
}
"""Search settings that are not followed here, and values with which they change nothing."""
_REPLACES = re.compile(r"\bs/[^\x00-\x7f]|normalize-punctuation|replace-unicode-punctuation")


def recognizes(directory: Path) -> bool:
    """Whether a directory has a model in Marian's own format."""
    return (directory / DECODER).is_file() or any(directory.glob("*.npz"))


def import_directory(directory: Path, options: Options) -> ImportedModel:
    """Import the model of a directory. Raises ModelImportError: a file is missing or damaged, or the model is not
    supported."""
    decoder = read_yaml(directory / DECODER)
    path = _named_file(directory, decoder, "models")
    file = read_weights(path)
    vocabulary, tokenizer = _pieces(directory, decoder)
    release = _release(directory)
    source, target = _languages(directory, vocabulary, release, options)
    transformer, weights = build(file, vocabulary, source, target)
    refuse_other_pieces(directory, vocabulary, weights["output_bias"])
    weights["is_target_token"] = written_tokens(transformer, target_ids(directory, vocabulary.target))
    decoding, notes = _decoding(decoder)
    is_aligned = "align" in f"{release.get('modeltype')} {path.name}"
    does = f"{language_names(source)} to {language_names(target)}"
    return ImportedModel(
        config_of(directory, options, FAMILY, does, transformer, _licence(directory), decoding),
        weights,
        tokenizer,
        vocabulary,
        aligning_head(file.architecture) if is_aligned else None,
        (*notes, *_preprocessing_notes(directory)),
    )


def _named_file(directory: Path, decoder: Mapping[str, Any], key: str, place: int = 0) -> Path:
    """Find a file that decoder.yml names in the directory, whatever folder it names."""
    names = decoder.get(key)
    if not isinstance(names, list) or place >= len(names):
        raise ModelImportError(f"{DECODER}: `{key}` must be a list of files")
    if key == "models" and len(names) > 1:
        raise ModelImportError(f"{DECODER}: `models` has {len(names)} files; ensembles are not supported")
    path = directory / PurePath(str(names[place])).name
    if not path.is_file():
        raise ModelImportError(f"{path.name} is missing; {DECODER} names it")
    return path


def _pieces(directory: Path, decoder: Mapping[str, Any]) -> tuple[Vocabulary, Tokenizer]:
    """Return the ids of pieces, and the tokenizer that cuts a source into them."""
    source_path, target_path = (_named_file(directory, decoder, "vocabs", place) for place in (0, 1))
    vocabulary = read_vocabularies(source_path, target_path)
    if source_path.suffix == ".spm":
        return vocabulary, sentencepiece_tokenizer(source_path, target_path)
    if (directory / "source.bpe").is_file():
        raise ModelImportError("its pieces are from BPE (source.bpe), which is not supported; SentencePiece is")
    return vocabulary, source_tokenizer(directory / SOURCE_PIECES)


def _release(directory: Path) -> dict[str, Any]:
    """Read the description of the release; empty if there is none or it is not YAML, as some programs wrote it."""
    for path in sorted(directory.glob("*.yml")):
        if path.name != DECODER and not path.name.endswith(".vocab.yml"):
            try:
                content = read_yaml(path)
            except ModelImportError:
                continue
            if "source-languages" in content:
                return content
    return {}


def _languages(
    directory: Path, vocabulary: Vocabulary, release: Mapping[str, Any], options: Options
) -> tuple[Languages, Languages]:
    """Return the languages: from the options, the description of the release, or the card of older ones.

    A vocabulary may have labels of languages that the model never learned; the release names the used ones.
    """
    used = [label[2:-2] for label in _list(release, "use-target-labels")]
    labels = target_labels(vocabulary.source) if used or not release else {}
    read = _list(release, "source-languages") or _card_languages(directory, "source")
    written = used or _list(release, "target-languages") or _card_languages(directory, "target")
    return choose_languages(labels, read, written, options)


def _list(release: Mapping[str, Any], key: str) -> list[str]:
    value = release.get(key) or []
    return [str(item) for item in value] if isinstance(value, list) else str(value).split()


def _card_languages(directory: Path, side: str) -> list[str]:
    """Return the languages in the card, which lists older releases too; the last one is this."""
    path = directory / CARD
    listed = re.findall(rf"^\* {side} language\(s\): (.+)$", read_text(path) if path.is_file() else "", re.MULTILINE)
    return re.split(r"[\s,]+", listed[-1].strip()) if listed else []


def _decoding(decoder: Mapping[str, Any]) -> tuple[Decoding, list[str]]:
    """Return the search settings of decoder.yml, and notes on those that are not followed."""
    notes = [
        f"{DECODER} asks for {key} {decoder[key]}, which is not followed here"
        for key, neutral in NEUTRAL_VALUES.items()
        if key in decoder and decoder[key] not in neutral
    ]
    beam_size = str(decoder.get("beam-size", BEAM_SIZE))
    if beam_size.isdecimal() and int(beam_size) > MAX_BEAM_SIZE:
        notes.append(f"{DECODER} asks for a beam of {beam_size}: the widest that is served is {MAX_BEAM_SIZE}")
        beam_size = str(MAX_BEAM_SIZE)
    normalize = str(decoder.get("normalize", "false"))
    try:
        decoding = Decoding.model_validate(
            {
                "beam_size": beam_size,
                "length_penalty": {"true": 1.0, "false": 0.0}.get(normalize, normalize),
                "beam_threshold": NO_THRESHOLD,
            }
        )
    except ValidationError as error:
        raise ModelImportError(f"{DECODER}: `beam-size` {beam_size} or `normalize` {normalize} is not valid") from error
    return decoding, notes


def _preprocessing_notes(directory: Path) -> list[str]:
    """Return a note if the texts of training were changed in a way that is not done here."""
    path = directory / PREPROCESSING
    if not path.is_file() or not _REPLACES.search(read_text(path)):
        return []
    return [f"{PREPROCESSING} replaces signs, as typographic quotes by straight ones, which is not followed here"]


def _licence(directory: Path) -> str | None:
    path = directory / LICENCE
    lines = read_text(path).splitlines() if path.is_file() else []
    return next((line.strip() for line in lines if line.strip()), None)
