"""Packages of Argos Translate and LibreTranslate (.argosmodel): a CTranslate2 model and a SentencePiece model."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer

from model.batching import bucket
from model.config import Config, Decoding, Provenance
from model.importing.ctranslate2 import read_transformer
from model.importing.ctranslate2_files import read_json_as
from model.importing.hugging_face import licence_of
from model.importing.imported import NO_THRESHOLD, ImportedModel, ModelImportError, Options
from model.importing.sentencepiece_files import read_model, tokenizer_of
from model.tokenizer import end_with

METADATA, MODEL, PIECES, BPE = "metadata.json", "model", "sentencepiece.model", "bpe.model"
FAMILY = "Argos Translate"
SPLITTERS = ("minisbd", "stanza", "spacy")
"""Folders of models that split texts into sentences."""
MAX_TARGET_TOKENS = 256
DECODING = Decoding(
    beam_size=4, length_penalty=0.2, beam_threshold=NO_THRESHOLD, stop="full", max_target_tokens=MAX_TARGET_TOKENS
)
"""Settings that Argos Translate passes to CTranslate2; packages have none."""


@dataclass(frozen=True)
class Metadata:
    """Fields of metadata.json that an import needs."""

    from_code: str = ""
    to_code: str = ""
    from_name: str = ""
    to_name: str = ""
    package_version: str = ""
    target_prefix: str = ""
    type: str = "translate"


def recognizes(directory: Path) -> bool:
    """Whether a directory has the metadata of a package."""
    return (directory / METADATA).is_file()


def import_directory(directory: Path, options: Options) -> ImportedModel:
    """Import the package in a directory.

    A source may have as many tokens as a target: Argos Translate would cut the translation of a longer one.

    Raises:
        ModelImportError: a file is missing or damaged, or this kind of package is not supported.
    """
    metadata = read_json_as(directory / METADATA, Metadata)
    if metadata.type != "translate":
        raise ModelImportError(f"`type` in {METADATA} is {metadata.type}; it must be translate")
    if (directory / BPE).is_file():
        raise ModelImportError(f"the package has Moses BPE ({BPE}), which is not supported; it needs {PIECES}")
    source = _only("source", options.sources, metadata.from_code)
    target = _only("target", options.targets, metadata.to_code)
    transformer = read_transformer(directory / MODEL, source, target, metadata.target_prefix)
    limit = min(MAX_TARGET_TOKENS, transformer.config.max_positions)
    version = f", version {metadata.package_version}" if metadata.package_version else ""
    return ImportedModel(
        Config(
            name=options.name or f"argos-{source}-{target}",
            description=f"{FAMILY}, {metadata.from_name or source} to {metadata.to_name or target}{version}.",
            max_tokens=next(n for n in range(limit, 0, -1) if bucket(n) <= transformer.config.max_positions),
            model=transformer.config,
            decoding=DECODING,
            provenance=Provenance(source=directory.name, family=FAMILY, licence=licence_of(directory)),
        ),
        transformer.weights,
        _tokenizer(directory, transformer.source_end, transformer.vocabulary.source),
        transformer.vocabulary,
        transformer.alignment,
        _notes(directory),
    )


def _only(which: str, named: tuple[str, ...], said: str) -> str:
    codes = named or ((said,) if said else ())
    if len(codes) != 1:
        raise ModelImportError(f"`--{which}` must name one language, not {', '.join(codes) or 'none'}")
    return codes[0]


def _tokenizer(directory: Path, end: str | None, ids: Mapping[str, int]) -> Tokenizer:
    path = directory / PIECES
    if not path.is_file():
        raise ModelImportError(f"{PIECES} is missing")
    tokenizer = tokenizer_of(read_model(path))
    if end is not None:
        if end not in ids:
            raise ModelImportError(f"the vocabulary has no {end}, which sources end with")
        end_with(tokenizer, end, ids[end])
    return tokenizer


def _notes(directory: Path) -> tuple[str, ...]:
    splitter = next((name for name in SPLITTERS if (directory / name).is_dir()), None)
    return (
        "Argos Translate puts the source's word where a translation has an unknown one (replace_unknowns), and a space "
        "for an underscore; here what the model does not know is kept as it stands in the source",
        *(
            [f"the package brings a model that finds sentences ({splitter}); here the service finds them"]
            if splitter
            else []
        ),
    )
