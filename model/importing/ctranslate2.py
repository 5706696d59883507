"""Transformers in directories written by the converters of CTranslate2."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from torch import Tensor

from manifest.schema import AlignmentChoice, Language
from manifest.vocabulary import Vocabulary
from model.config import SpecialTokens, TransformerConfig
from model.importing.ctranslate2_files import MODEL, read_directory
from model.importing.ctranslate2_names import Variables, read_weights
from model.importing.encoder_decoder import pad_rows, round_up
from model.importing.imported import ModelImportError, in_words

SPEC, MIN_REVISION = "TransformerSpec", 3
EPS = 1e-5
TOKEN_TENSORS = ("embedding.tokens.weight", "encoder_embedding.tokens.weight", "output.weight", "output_bias")
"""Tensors with a row for each token."""


@dataclass(frozen=True)
class ImportedTransformer:
    """A translator without its tokenizer.

    Attributes:
        source_end: the token that every source ends with, as the vocabulary writes it.
        alignment: None if the file has the default of converters, which nobody chose.
    """

    config: TransformerConfig
    weights: Mapping[str, Tensor]
    vocabulary: Vocabulary
    source_end: str | None
    alignment: AlignmentChoice | None


def read_transformer(directory: Path, source: str, target: str, target_prefix: str = "") -> ImportedTransformer:
    """Read the model in a directory of CTranslate2.

    Args:
        source, target: codes of its languages, which the files do not name.
        target_prefix: the token that every target begins with, if any.

    Raises:
        ModelImportError: a file is missing or damaged, or the model is not supported.
    """
    stored = read_directory(directory)
    if stored.spec != SPEC or stored.revision < MIN_REVISION:
        raise ModelImportError(
            f"{MODEL} holds {stored.spec or 'a model without a name'}, revision {stored.revision}; "
            f"it must be {SPEC}, revision {MIN_REVISION} or later"
        )
    variables, settings = Variables(stored.variables), stored.settings
    weights, dimensions = read_weights(variables)
    starts_empty = variables.number("decoder/start_from_zero_embedding", default=0) != 0
    alignment = _alignment(variables, dimensions)
    variables.refuse_others()

    of_source, of_target = ({token: i for i, token in enumerate(tokens)} for tokens in (stored.source, stored.target))
    unk, start = of_target[settings.unk_token], settings.decoder_start_token
    if of_source[settings.unk_token] != unk:
        raise ModelImportError(f"{settings.unk_token} has different ids in the source and target vocabularies")
    if start is None and not starts_empty:
        raise ModelImportError("`decoder_start_token` is null; the model must have a start token")
    tables = [name for name in TOKEN_TENSORS if name in weights]
    pad = max(len(stored.source), len(stored.target), *(len(weights[name]) for name in tables))
    n_tokens = round_up(pad + 1)
    language = Language(
        code=target,
        source_prefix=(_id(settings.bos_token, of_source),) if settings.add_source_bos else (),
        target_prefix=(_id(target_prefix, of_target),) if target_prefix else (),
    )
    try:
        config = TransformerConfig(
            **dimensions,
            norm_eps=EPS if settings.layer_norm_epsilon is None else settings.layer_norm_epsilon,
            special_tokens=SpecialTokens(
                pad=pad,
                unk=unk,
                bos=pad if starts_empty or start is None else of_target.get(start, unk),  # the row of <pad> is zero
                eos=_id(settings.eos_token, of_target),
            ),
            vocab_size=n_tokens,
            source_vocab_size=n_tokens if "encoder_embedding.tokens.weight" in weights else None,
            source=source,
            target=(language,) if language.source_prefix or language.target_prefix else target,
        )
    except ValidationError as error:
        raise ModelImportError(f"{MODEL} has sizes that do not fit: {in_words(error)}") from error
    n_written = min(len(stored.target), len(weights["embedding.tokens.weight"]))
    weights |= {name: pad_rows(weights[name], n_tokens) for name in tables}
    weights["is_target_token"] = torch.arange(n_tokens) < n_written
    end = settings.eos_token if settings.add_source_eos else None
    return ImportedTransformer(config, weights, Vocabulary(of_source, of_target, unk), end, alignment)


def _id(token: str, ids: Mapping[str, int]) -> int:
    if token not in ids:
        raise ModelImportError(f"the vocabulary has no {token}")
    return ids[token]


def _alignment(variables: Variables, dimensions: Mapping[str, Any]) -> AlignmentChoice | None:
    """None means the first head of the last layer, the default of converters."""
    layer = variables.number("decoder/alignment_layer", "alignment_layer", default=-1)
    heads = variables.number("decoder/alignment_heads", "alignment_heads", default=1)
    if (layer, heads) == (-1, 1):
        return None
    n_layers, n_heads = dimensions["n_decoder_layers"], dimensions["n_heads"]
    if not (-n_layers <= layer < n_layers and 0 <= heads <= n_heads):
        raise ModelImportError(f"{MODEL} is damaged: it aligns by {heads} heads of layer {layer}, which do not exist")
    return AlignmentChoice(layer=layer % n_layers, heads=tuple(range(heads or n_heads)), next_row=False)
