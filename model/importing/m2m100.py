"""M2M100 (Fan et al. 2021) and NLLB-200 (NLLB Team 2022): one model for a hundred or more languages.

A token before a source names its language; a target begins with the token of its language.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from manifest.schema import Language
from manifest.vocabulary import Vocabulary
from model.config import SpecialTokens, TransformerConfig
from model.importing.encoder_decoder import (
    notes_on_copies,
    position_tables,
    read_dimensions,
    read_embeddings,
    read_layers,
    with_head_names,
    written_tokens,
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
from model.importing.positions import sines_then_cosines
from model.importing.sentencepiece_files import read_model, tokenizer_of
from model.importing.tasks import chosen
from model.importing.tokenizer_files import TOKENIZER, read_tokenizer_json, with_added_tokens
from model.importing.weights_files import read_tensors
from model.progress import step
from model.tokenizer import EOS, end_with

FIRST_POSITION = 2
"""Position of the first token: those before it are kept for padding."""
NLLB_CODE = re.compile(r"[a-z]{3}_[A-Z][a-z]{3}")
M2M100_CODES = (
    "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr ht hu hy "
    "id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps pt ro ru "
    "sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu"
)
"""Languages whose tokens follow those of vocab.json, in this order; no file names them."""


def recognizes(directory: Path) -> bool:
    """Whether a directory has such a model in the layout of transformers."""
    return read_json_if_there(directory, CONFIG).get("model_type") == "m2m_100"


def import_directory(directory: Path, options: Options) -> ImportedModel:
    """Import the model of a directory. Raises ModelImportError: a file is missing or damaged, or the model is not
    supported."""
    config, tokenizer_config = read_json(directory, CONFIG), read_json_if_there(directory, TOKENIZER_CONFIG)
    generation = read_generation(directory, config, begins_with_language=True)
    size = number(config, "vocab_size")
    family, tokenizer, vocabulary, codes = _tokenizer(directory, tokenizer_config, size)
    sources, targets = (chosen(codes, asked) for asked in (options.sources, options.targets))
    unk = vocabulary.unk if vocabulary else tokenizer.token_to_id("<unk>") or 0
    n_positions = number(config, "max_position_embeddings")
    tensors = with_head_names(read_tensors(directory))
    weights, extra = read_embeddings(tensors, config)
    transformer = TransformerConfig(
        max_positions=n_positions,
        special_tokens=SpecialTokens(
            pad=number(config, "pad_token_id"),
            unk=unk,
            bos=generation.start,
            eos=number(config, "eos_token_id"),
        ),
        source=tuple(Language(code=code, source_prefix=(codes[code],)) for code in sources),
        target=tuple(Language(code=code, target_prefix=(codes[code],)) for code in targets),
        **extra,
        **read_dimensions(config, norm="pre", activation="relu", scales=True),
    )
    weights["is_target_token"] = written_tokens(transformer.vocab_size, size, generation.banned)
    d_model = transformer.d_model
    weights |= position_tables(sines_then_cosines(n_positions, d_model, d_model / 2 - 1, FIRST_POSITION), weights)
    for side, n_layers in (("encoder", transformer.n_encoder_layers), ("decoder", transformer.n_decoder_layers)):
        weights.update(read_layers(tensors, n_layers, side, final_norm=True))
    does = f"{len(sources)} to {len(targets)} languages"
    return ImportedModel(
        config_of(directory, options, family, does, transformer, licence_of(directory), generation.decoding),
        weights,
        tokenizer,
        vocabulary,
        notes=(*generation.notes, *notes_on_copies(tensors, config)),
    )


def _tokenizer(
    directory: Path, tokenizer_config: Mapping[str, Any], size: int
) -> tuple[str, Tokenizer, Vocabulary | None, dict[str, int]]:
    """Return the family, its tokenizer with </s> after a text, its vocabulary, and the tokens of its languages."""
    step("reading the tokenizer")
    if (directory / "vocab.json").is_file():
        ids = read_ids(directory, "vocab.json")
        codes = {code: len(ids) + i for i, code in enumerate(M2M100_CODES.split())}
        if (kind := tokenizer_config.get("language_codes", "m2m100")) != "m2m100":
            raise ModelImportError(f"{TOKENIZER_CONFIG}: `language_codes` is {kind}; it must be m2m100")
        path = directory / "sentencepiece.bpe.model"
        if not path.is_file():
            raise ModelImportError(f"{path.name} is missing")
        tokenizer = tokenizer_of(read_model(path))
        pieces = ids | {f"__{code}__": i for code, i in codes.items()}
        end_with(tokenizer, EOS, 0)
        vocabulary = with_added_tokens(tokenizer, Vocabulary(pieces, pieces, ids["<unk>"]), directory, size)
        return "M2M100", tokenizer, vocabulary, codes
    if not (directory / TOKENIZER).is_file():
        raise ModelImportError(f"{TOKENIZER} or vocab.json is missing")
    if tokenizer_config.get("legacy_behaviour"):
        raise ModelImportError(f"{TOKENIZER_CONFIG}: `legacy_behaviour` must be off, translations are worse with it")
    tokenizer = read_tokenizer_json(directory)
    added = {token.content: i for i, token in tokenizer.get_added_tokens_decoder().items()}
    codes = {token: i for token, i in added.items() if NLLB_CODE.fullmatch(token)}
    if not codes or EOS not in added:
        raise ModelImportError(f"{TOKENIZER} has no language tokens, or no {EOS}")
    # The published files put the language after the text, unlike the training of any model used today.
    end_with(tokenizer, EOS, added[EOS])
    return "NLLB-200", tokenizer, None, codes
