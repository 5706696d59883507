"""mBART-50 (Tang et al. 2020), which translates between 50 languages, and BART (Lewis et al. 2020), which mostly
summarizes.

Both sides have learned positions and a normalized embedding of their own. In mBART-50 a token before a source names its
language, and a target begins with the token of its language.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor

from manifest.schema import ANY_LANGUAGE, NO_LANGUAGE, Language
from model.config import SpecialTokens, TransformerConfig
from model.importing.encoder_decoder import (
    pad_rows,
    read_dimensions,
    read_embeddings,
    read_layers,
    tensor_of,
    written_tokens,
)
from model.importing.hugging_face import (
    CONFIG,
    TOKENIZER_CONFIG,
    kind_of_writer,
    licence_of,
    number,
    read_generation,
    read_json,
    read_json_if_there,
)
from model.importing.imported import ImportedModel, ModelImportError, Options, config_of
from model.importing.tasks import chosen
from model.importing.tokenizer_files import TOKENIZER, mbart_pieces, read_tokenizer, read_tokenizer_json
from model.importing.weights_files import read_tensors
from model.tokenizer import EOS, end_with

FAMILIES = {"mbart": "mBART-50", "bart": "BART"}
"""Families by their model_type."""
FIRST_POSITION = 2
"""Row of the first position: those before it are kept for padding."""
CODE = re.compile(r"[a-z]{2,3}_[A-Z]{2}")
CODES = (
    "ar_AR cs_CZ de_DE en_XX es_XX et_EE fi_FI fr_XX gu_IN hi_IN it_IT ja_XX kk_KZ ko_KR lt_LT lv_LV my_MM ne_NP nl_XX "
    "ro_RO ru_RU si_LK tr_TR vi_VN zh_CN af_ZA az_AZ bn_IN fa_IR he_IL hr_HR id_ID ka_GE km_KH mk_MK ml_IN mn_MN mr_IN "
    "pl_PL ps_AF pt_XX sv_SE sw_KE ta_IN te_IN th_TH tl_XX uk_UA ur_PK xh_ZA gl_ES sl_SI"
)
"""Languages whose tokens follow the pieces of sentencepiece.bpe.model, in this order; no file names them."""


def recognizes(directory: Path) -> bool:
    """Whether a directory has such a model in the layout of transformers."""
    return read_json_if_there(directory, CONFIG).get("model_type") in FAMILIES


def import_directory(directory: Path, options: Options) -> ImportedModel:
    """Import the model of a directory. Raises ModelImportError: a file is missing or damaged, or the model is not
    supported."""
    config = read_json(directory, CONFIG)
    kind = kind_of_writer(config, FAMILIES)
    generation = read_generation(directory, config, begins_with_language=True)
    size = number(config, "vocab_size")
    if kind == "mbart":
        tokenizer, sources, targets = _mbart(directory, generation.first, options)
    else:
        tokenizer = read_tokenizer(directory, size)
        first = () if generation.first is None else (generation.first,)
        sources = (Language(code=(options.sources or (ANY_LANGUAGE,))[0]),)
        targets = (Language(code=(options.targets or (NO_LANGUAGE,))[0], target_prefix=first),)
    tensors = read_tensors(directory)
    weights, extra = read_embeddings(tensors, config)
    n_positions, unk = number(config, "max_position_embeddings"), tokenizer.token_to_id("<unk>")
    has_bias = "final_logits_bias" in tensors and bool(torch.any(tensors["final_logits_bias"]))
    transformer = TransformerConfig(
        max_positions=n_positions,
        special_tokens=SpecialTokens(
            pad=number(config, "pad_token_id"),
            unk=unk if unk is not None else 0,
            bos=generation.start,
            eos=number(config, "eos_token_id"),
        ),
        embedding_norm=True,
        encoder_positions="source_vocab_size" not in extra,
        output_bias=has_bias,
        source=sources,
        target=targets,
        **extra,
        **read_dimensions(config, norm="pre" if kind == "mbart" else "post", activation="gelu", scales=False),
    )
    place = "encoder_positions" if transformer.encoder_positions else "encoder_embedding"
    for side, ours, n_layers in (
        ("encoder", place, transformer.n_encoder_layers),
        ("decoder", "embedding", transformer.n_decoder_layers),
    ):
        weights |= _side(tensors, side, ours)
        weights.update(read_layers(tensors, n_layers, side, final_norm=kind == "mbart"))
    if has_bias:
        weights["output_bias"] = pad_rows(tensors["final_logits_bias"].flatten(), transformer.vocab_size)
    weights["is_target_token"] = written_tokens(transformer.vocab_size, size, generation.banned)
    family, n_languages = FAMILIES[kind], f"{len(sources)} to {len(targets)} languages"
    does = "text to text" if targets[0].code == NO_LANGUAGE else n_languages
    return ImportedModel(
        config_of(directory, options, family, does, transformer, licence_of(directory), generation.decoding),
        weights,
        tokenizer,
        notes=generation.notes,
    )


def _side(tensors: Mapping[str, Tensor], side: str, ours: str) -> dict[str, Tensor]:
    """Return the positions and the embedding norm of encoder or decoder by our names."""
    theirs = f"model.{side}"
    tensors_by_name = {f"{ours}.encoding": tensor_of(tensors, f"{theirs}.embed_positions.weight")[FIRST_POSITION:]}
    for end in ("weight", "bias"):
        tensors_by_name[f"{ours}.norm.{end}"] = tensor_of(tensors, f"{theirs}.layernorm_embedding.{end}")
    return tensors_by_name


def _mbart(
    directory: Path, only_target: int | None, options: Options
) -> tuple[Tokenizer, tuple[Language, ...], tuple[Language, ...]]:
    """Return the tokenizer, which puts </s> after a text, and the languages of both sides. `only_target` is the token
    of the language of a model that writes only this one."""
    said: Any = read_json_if_there(directory, TOKENIZER_CONFIG).get("tokenizer_class") or ""
    if str(said).removesuffix("Fast") == "MBartTokenizer":
        raise ModelImportError("mBART-25 puts the language after a text; only mBART-50 is supported")
    if (directory / TOKENIZER).is_file():
        tokenizer = read_tokenizer_json(directory)
    else:
        tokenizer = mbart_pieces(directory, CODES.split())
    added = tokenizer.get_added_tokens_decoder()
    codes = {token.content: i for i, token in sorted(added.items()) if CODE.fullmatch(token.content)}
    eos = tokenizer.token_to_id(EOS)
    if not codes or eos is None:
        raise ModelImportError(f"{TOKENIZER} has no language tokens, or no {EOS}")
    end_with(tokenizer, EOS, eos)
    written = {code: i for code, i in codes.items() if only_target in (None, i)} or codes
    return (
        tokenizer,
        tuple(Language(code=code, source_prefix=(codes[code],)) for code in chosen(codes, options.sources)),
        tuple(Language(code=code, target_prefix=(codes[code],)) for code in chosen(written, options.targets)),
    )
