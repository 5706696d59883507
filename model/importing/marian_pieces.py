"""Pieces of MarianMT's and Marian's own models: SentencePiece cuts a text, another file numbers the pieces.

Multilingual models have pieces of the form >>fra<<, which tell in front of a source what it is translated into.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from tokenizers import Tokenizer

from model.config import Language
from model.importing.imported import ModelImportError, Options
from model.importing.sentencepiece_files import pieces_of, read_model, tokenizer_of
from model.importing.yaml_files import read_text, read_yaml
from model.tokenizer import EOS, UNK, end_with

Languages = str | tuple[Language, ...]
_LABEL = re.compile(r">>(.+)<<")


def read_pieces(path: Path) -> dict[str, int]:
    """The ids of pieces: of a YAML or JSON file, of a text with one a line, or of a SentencePiece model.

    Raises:
        ModelImportError: the file is missing, or does not number </s>, <unk> and other pieces from 0 on.
    """
    if path.suffix == ".fsv":
        raise ModelImportError(f"{path.name} has factors, which are not read here")
    if not path.is_file():
        raise ModelImportError(f"{path.name}, the vocabulary, is missing")
    if path.suffix in (".yml", ".yaml", ".json"):
        numbers = {piece: str(i) for piece, i in read_yaml(path).items()}
    else:
        lines = pieces_of(read_model(path)) if path.suffix == ".spm" else read_text(path).rstrip("\n").split("\n")
        numbers = {piece.removesuffix("\r"): str(i) for i, piece in enumerate(lines)}
    ids = {piece: int(i) if i.isdecimal() else -1 for piece, i in numbers.items()}
    if sorted(ids.values()) != list(range(len(ids))):
        raise ModelImportError(f"{path.name} is no vocabulary: it does not number its pieces from 0 on, each otherwise")
    for piece in (EOS, UNK):
        if piece not in ids:
            raise ModelImportError(f"{path.name} has no {piece}")
    return ids


def source_tokenizer(path: Path) -> Tokenizer:
    """What cuts a source into pieces and puts </s> behind them; ids are those of the SentencePiece model.

    Raises:
        ModelImportError: the file is missing, or no SentencePiece model.
    """
    if not path.is_file():
        raise ModelImportError(f"{path.name} is missing")
    tokenizer = tokenizer_of(read_model(path))
    end_with(tokenizer, EOS, 0)
    return tokenizer


def ids_of_targets(directory: Path, vocabulary: Mapping[str, int]) -> list[int]:
    """The ids that a target may have: those of the pieces of target.spm, by which targets were cut for training.

    The others of a vocabulary of both languages, nearly half of it, are pieces of sources. A model has learned never to
    write them, so they need not be scored.
    """
    path = directory / "target.spm"
    if not path.is_file():
        return [*vocabulary.values()]
    pieces = {EOS, *pieces_of(read_model(path))}
    return [i for piece, i in vocabulary.items() if piece in pieces]


def target_labels(pieces: Mapping[str, int]) -> dict[str, int]:
    """The languages into which a multilingual model translates, fra for >>fra<<, in the order of their ids."""
    found = ((_LABEL.fullmatch(piece), i) for piece, i in sorted(pieces.items(), key=lambda item: item[1]))
    return {match[1]: i for match, i in found if match}


def choose_languages(
    labels: Mapping[str, int], read: Sequence[str], written: Sequence[str], options: Options
) -> tuple[Languages, Languages]:
    """What a model reads and what it writes: as the user says, or else as its files do.

    Args:
        labels: ids of the tokens that tell a multilingual model what to write, by language.
        read, written: codes that its files tell, if any do.

    Raises:
        ModelImportError: nobody says it, or the model has no such language.
    """
    sources = options.sources or tuple(read)
    if not sources:
        raise ModelImportError("no file tells which language the model reads: name the language with --source")
    source: Languages = sources[0] if len(sources) == 1 else tuple(Language(code=code) for code in sources)
    if labels:
        for code in options.targets:
            if code not in labels:
                raise ModelImportError(f"the vocabulary has no >>{code}<<; there are {', '.join(sorted(labels))}")
        targets = options.targets or [code for code in written if code in labels] or labels
        return source, tuple(Language(code=code, source_prefix=(labels[code],)) for code in targets)
    targets = options.targets or tuple(written)
    if not targets:
        raise ModelImportError("no file tells which language the model writes: name the language with --target")
    if len(targets) > 1:
        raise ModelImportError(
            f"the model writes one language, and these are named: {', '.join(targets)}; name one with --target"
        )
    return source, targets[0]


def describe_languages(given: Languages) -> str:
    """Languages in a description."""
    codes = [given] if isinstance(given, str) else [language.code for language in given]
    return ", ".join(codes) if len(codes) < 6 else f"{len(codes)} languages"
