"""Pieces of MarianMT and Marian models: SentencePiece cuts a text, another file has the ids.

Multilingual models have pieces of the form >>fra<<, which before a source name the target language.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import Tensor

from manifest.schema import Language
from manifest.vocabulary import Vocabulary
from model.importing.imported import ModelImportError, Options
from model.importing.packed_files import unpacked_name
from model.importing.sentencepiece_files import NORMAL, pieces_of, read_model, tokenizer_of
from model.importing.yaml_files import read_text, read_yaml
from model.progress import step
from model.tokenizer import EOS, UNK, end_with

Languages = str | tuple[Language, ...]
SOURCE_PIECES, TARGET_PIECES = "source.spm", "target.spm"
MAX_UNKNOWN, MAX_UNKNOWN_OF_WORSE = 0.5, 0.1
"""Largest share of the pieces of source.spm that the vocabulary of the source may lack; and the same where it has more
of the pieces of target.spm."""
MIN_COMPARED_PIECES, MAX_SHARE_BELOW = 20, 0.8
"""How many pieces of each file are compared at least, and in which share of the pairs of one of source.spm and one of
target.spm that of target.spm may be the less probable one: in half of them if the bias tells nothing."""
_LABEL = re.compile(r">>(.+)<<")


def read_pieces(path: Path) -> dict[str, int]:
    """Read the ids of pieces from YAML, JSON, a text with one per line, or a SentencePiece model. Raises
    ModelImportError: the file is missing, or does not number </s>, <unk> and other pieces from 0."""
    if path.suffix == ".fsv":
        raise ModelImportError(f"{path.name} has factors, which are not supported")
    if not path.is_file():
        raise ModelImportError(f"{path.name} (the vocabulary) is missing")
    if path.suffix in (".yml", ".yaml", ".json"):
        numbers = {piece: str(i) for piece, i in read_yaml(path).items()}
    else:
        is_model = unpacked_name(path.name).endswith(".spm")
        lines = pieces_of(read_model(path)) if is_model else read_text(path).rstrip("\n").split("\n")
        numbers = {piece.removesuffix("\r"): str(i) for i, piece in enumerate(lines)}
    ids = {piece: int(i) if i.isdecimal() else -1 for piece, i in numbers.items()}
    if sorted(ids.values()) != list(range(len(ids))):
        raise ModelImportError(f"{path.name} is no vocabulary: it must number its pieces from 0, without repetition")
    for piece in (EOS, UNK):
        if piece not in ids:
            raise ModelImportError(f"{path.name} has no {piece}")
    return ids


def source_tokenizer(path: Path) -> Tokenizer:
    """Return a tokenizer that cuts a source and appends </s>; its ids are those of the SentencePiece model. Raises
    ModelImportError: the file is missing, or is no SentencePiece model."""
    if not path.is_file():
        raise ModelImportError(f"{path.name} is missing")
    step("reading the tokenizer")
    tokenizer = tokenizer_of(read_model(path))
    end_with(tokenizer, EOS, 0)
    return tokenizer


def refuse_other_pieces(directory: Path, vocabulary: Vocabulary, bias: Tensor) -> None:
    """Refuse a source.spm that is not the model's, above all one that was swapped with target.spm.

    Its pieces are then unknown to the vocabulary. A shared vocabulary knows the pieces of both files; but training
    makes the pieces of sources improbable as targets, so the bias tells which they are.

    Args:
        bias: (V,), the bias of the logits.

    Raises:
        ModelImportError: the file is another model's, or the two were swapped.
    """
    source, target = (_normal_pieces(directory / name) for name in (SOURCE_PIECES, TARGET_PIECES))
    if not source:  # the vocabulary itself is a SentencePiece model
        return
    share, share_of_target = (_share(pieces - vocabulary.source.keys(), pieces) for pieces in (source, target))
    is_separate = vocabulary.source != vocabulary.target
    if share > MAX_UNKNOWN or (is_separate and share > max(MAX_UNKNOWN_OF_WORSE, share_of_target)):
        raise ModelImportError(
            f"{share:.0%} of the {len(source)} pieces of {SOURCE_PIECES} are unknown to the vocabulary; "
            f"is the file another model's, or swapped with {TARGET_PIECES}?"
        )
    ids = vocabulary.target
    sides = source - target, target - source
    of_source, of_target = ([ids[piece] for piece in side if piece in ids] for side in sides)
    if min(len(of_source), len(of_target)) < MIN_COMPARED_PIECES or not bias.isfinite().all():
        return
    below = torch.searchsorted(bias[of_target].sort().values, bias[of_source])
    if below.float().mean() > MAX_SHARE_BELOW * len(of_target):
        raise ModelImportError(
            f"{SOURCE_PIECES} and {TARGET_PIECES} are swapped: the model writes pieces that only {SOURCE_PIECES} has"
        )


def _share(part: set[str], whole: set[str]) -> float:
    return len(part) / len(whole) if whole else 1.0


def _normal_pieces(path: Path) -> set[str]:
    """Return the pieces that texts are cut into; none if the file is missing."""
    model = read_model(path) if path.is_file() else None
    return {piece.piece for piece in model.pieces if piece.type == NORMAL} if model is not None else set()


def target_ids(directory: Path, vocabulary: Mapping[str, int]) -> list[int]:
    """Return the ids that a target may have: pieces of target.spm, which cut the targets in training.

    Nearly half of a shared vocabulary are source pieces. A model learned never to write them, so they are not scored.
    """
    path = directory / TARGET_PIECES
    if not path.is_file():
        return [*vocabulary.values()]
    pieces = {EOS, *pieces_of(read_model(path))}
    return [i for piece, i in vocabulary.items() if piece in pieces]


def target_labels(pieces: Mapping[str, int]) -> dict[str, int]:
    """Return the target languages of a multilingual model, fra for >>fra<<, in the order of their ids."""
    labelled = ((_LABEL.fullmatch(piece), i) for piece, i in sorted(pieces.items(), key=lambda item: item[1]))
    return {match[1]: i for match, i in labelled if match}


def choose_languages(
    labels: Mapping[str, int], read: Sequence[str], written: Sequence[str], options: Options
) -> tuple[Languages, Languages]:
    """Choose the languages of a model: those of the options, or else of its files.

    Args:
        labels: ids of the tokens that select a target language, by language.
        read, written: source and target codes in its files, if any.

    Raises:
        ModelImportError: no language is known, or the model does not have it.
    """
    sources = options.sources or tuple(read)
    if not sources:
        raise ModelImportError("no file names the source language; name it with `--source`")
    source: Languages = sources[0] if len(sources) == 1 else tuple(Language(code=code) for code in sources)
    if labels:
        for code in options.targets:
            if code not in labels:
                raise ModelImportError(f"unknown `--target` {code}; the model has {', '.join(sorted(labels))}")
        targets = options.targets or [code for code in written if code in labels] or labels
        return source, tuple(Language(code=code, source_prefix=(labels[code],)) for code in targets)
    targets = options.targets or tuple(written)
    if not targets:
        raise ModelImportError("no file names the target language; name it with `--target`")
    if len(targets) > 1:
        raise ModelImportError(f"the model writes one language, not {', '.join(targets)}; name it with `--target`")
    return source, targets[0]


def language_names(given: Languages) -> str:
    """Write languages in a description."""
    codes = [given] if isinstance(given, str) else [language.code for language in given]
    return ", ".join(codes) if len(codes) < 6 else f"{len(codes)} languages"
