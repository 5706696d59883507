"""MarianMT, the OPUS-MT models of Hugging Face's hub (Tiedemann and Thottingal 2020; Junczys-Dowmunt et al. 2018).

source.spm cuts a text into pieces; vocab.json has their ids.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from manifest.vocabulary import Vocabulary
from model.config import SpecialTokens, TransformerConfig
from model.importing.encoder_decoder import (
    notes_on_copies,
    pad_rows,
    position_tables,
    read_dimensions,
    read_embeddings,
    read_layers,
    with_head_names,
)
from model.importing.hugging_face import (
    CONFIG,
    TOKENIZER_CONFIG,
    licence_of,
    number,
    read_generation,
    read_ids,
    read_json,
    read_json_if_there,
)
from model.importing.imported import ImportedModel, ModelImportError, Options, config_of
from model.importing.marian_pieces import (
    SOURCE_PIECES,
    choose_languages,
    language_names,
    refuse_other_pieces,
    source_tokenizer,
    target_ids,
    target_labels,
)
from model.importing.positions import sines_then_cosines
from model.importing.tokenizer_files import with_added_tokens
from model.importing.weights_files import read_tensors

FAMILY, OUTPUT_BIAS = "MarianMT", "final_logits_bias"


def recognizes(directory: Path) -> bool:
    """Whether a directory has a MarianMT model in the layout of transformers."""
    return read_json_if_there(directory, CONFIG).get("model_type") == "marian"


def import_directory(directory: Path, options: Options) -> ImportedModel:
    """Import the model of a directory. Raises ModelImportError: a file is missing or damaged, or the model is not
    supported."""
    config, tokenizer_config = read_json(directory, CONFIG), read_json_if_there(directory, TOKENIZER_CONFIG)
    _refuse_variants(config)
    generation = read_generation(directory, config)
    tokenizer = source_tokenizer(directory / SOURCE_PIECES)
    published = _vocabulary(directory, separate=bool(tokenizer_config.get("separate_vocabs")))
    vocabulary = with_added_tokens(tokenizer, published, directory, number(config, "vocab_size"))
    labels = target_labels(vocabulary.source)
    said = () if labels else _said(tokenizer_config, "target_lang")
    source, target = choose_languages(labels, _said(tokenizer_config, "source_lang"), said, options)
    tensors = with_head_names(read_tensors(directory))
    weights, extra = read_embeddings(tensors, config)
    n_tokens, d_model = weights["embedding.tokens.weight"].shape
    n_positions = number(config, "max_position_embeddings")
    pad = number(config, "pad_token_id")
    transformer = TransformerConfig(
        max_positions=n_positions,
        special_tokens=SpecialTokens(
            pad=pad, unk=vocabulary.unk, bos=generation.start, eos=number(config, "eos_token_id")
        ),
        output_bias=True,
        source=source,
        target=target,
        **extra,
        **read_dimensions(config, norm="post", activation="gelu", scales=False),
    )
    weights |= position_tables(sines_then_cosines(n_positions, d_model, d_model / 2), weights)
    bias = tensors.get(OUTPUT_BIAS, torch.zeros(n_tokens))
    weights["output_bias"] = pad_rows(bias.flatten(), n_tokens)
    refuse_other_pieces(directory, published, weights["output_bias"])
    for side, n_layers in (("encoder", transformer.n_encoder_layers), ("decoder", transformer.n_decoder_layers)):
        weights.update(read_layers(tensors, n_layers, side, final_norm=False))
    written = torch.zeros(n_tokens, dtype=torch.bool)
    written[target_ids(directory, published.target)] = True
    written[[*{*vocabulary.target.values()} - {*published.target.values()}]] = True
    written[[*generation.banned]] = False
    does = f"{language_names(source)} to {language_names(target)}"
    return ImportedModel(
        config_of(directory, options, FAMILY, does, transformer, licence_of(directory), generation.decoding),
        {**weights, "is_target_token": written},
        tokenizer,
        vocabulary,
        notes=(*generation.notes, *notes_on_copies(tensors, config), *_notes_on_bias(tensors)),
    )


def _notes_on_bias(tensors: Mapping[str, Tensor]) -> tuple[str, ...]:
    return () if OUTPUT_BIAS in tensors else (f"the weights have no {OUTPUT_BIAS}, so that it is zero",)


def _refuse_variants(config: Mapping[str, Any]) -> None:
    for key in ("normalize_before", "normalize_embedding", "add_final_layer_norm"):
        if config.get(key):
            raise ModelImportError(f"{CONFIG}: `{key}` is not supported; no published MarianMT model has it")
    if config.get("static_position_embeddings") is False:
        raise ModelImportError(f"{CONFIG}: `static_position_embeddings` must be true, as in all MarianMT models")


def _vocabulary(directory: Path, separate: bool) -> Vocabulary:
    source = read_ids(directory, "vocab.json")
    target = read_ids(directory, "target_vocab.json") if separate else source
    return Vocabulary(source, target, source["<unk>"])


def _said(tokenizer_config: Mapping[str, Any], key: str) -> tuple[str, ...]:
    said = tokenizer_config.get(key)
    return (str(said),) if said else ()
