"""T5 and its descendants (Raffel et al. 2020): T5 v1.1, Flan-T5, mT5 (Xue et al. 2021), UMT5, MADLAD-400.

They read what to do as text: a task before the text ("summarize: "), or a token of the target language (<2fr>). Scores
of attention have no factor, but biases by distance; all UMT5's layers have their own, those of others share them.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, models, normalizers
from torch import Tensor

from model.batching import bucket
from model.config import Activation, RelativePositions, SpecialTokens, TransformerConfig
from model.importing.encoder_decoder import activation_of, first_of, pad_rows, round_up, tensor_of, written_tokens
from model.importing.hugging_face import (
    CONFIG,
    kind_of_writer,
    licence_of,
    number,
    read_generation,
    read_json,
    read_json_if_there,
)
from model.importing.imported import ImportedModel, ModelImportError, Options, config_of
from model.importing.sentencepiece_files import BYTE, CONTROL, UNKNOWN, read_model, tokenizer_of
from model.importing.tasks import LANGUAGE_TOKEN, tasks_of
from model.importing.tokenizer_files import TOKENIZER, length_limits, read_tokenizer_json
from model.importing.weights_files import read_tensors
from model.tokenizer import end_with, special_around

FAMILIES = {"t5": "T5", "mt5": "mT5", "umt5": "UMT5"}
"""Families by their model_type."""
PIECES = "spiece.model"
DEFAULT_POSITIONS = 512
"""Most tokens of a text where no file says it: distances have no end, and the published models were trained on 512."""
SHARED, OUTPUT = "shared.weight", "lm_head.weight"
_ATTENTIONS = {"SelfAttention": "self", "EncDecAttention": "cross"}
_SUBLAYERS = {
    "encoder": ("SelfAttention", "DenseReluDense"),
    "decoder": ("SelfAttention", "EncDecAttention", "DenseReluDense"),
}


def recognizes(directory: Path) -> bool:
    """Whether a directory has such a model in the layout of transformers."""
    return read_json_if_there(directory, CONFIG).get("model_type") in FAMILIES


def import_directory(directory: Path, options: Options) -> ImportedModel:
    """Import the model of a directory. Raises ModelImportError: a file is missing or damaged, or the model is not
    supported."""
    config = read_json(directory, CONFIG)
    kind = kind_of_writer(config, FAMILIES)
    generation = read_generation(directory, config)
    eos, size = number(config, "eos_token_id"), number(config, "vocab_size")
    tokenizer = read_pieces(directory, size, eos)
    tasks, activation = tasks_of(tokenizer, config, options), activation_of_layers(config, kind)
    tensors = read_tensors(directory)
    table = first_of(tensors, SHARED, "encoder.embed_tokens.weight", "decoder.embed_tokens.weight", OUTPUT)
    weights, n_tokens = {"embedding.tokens.weight": pad_rows(table, round_up(size))}, round_up(size)
    untied = tensors.get(OUTPUT, table)
    is_tied = torch.equal(untied, table)
    if not is_tied:
        weights["output.weight"] = pad_rows(untied, n_tokens)
    n_positions = min([config.get("n_positions") or DEFAULT_POSITIONS, *length_limits(directory)])
    unk = tokenizer.token_to_id("<unk>")
    n_layers = number(config, "num_layers")
    transformer = TransformerConfig(
        vocab_size=n_tokens,
        special_tokens=SpecialTokens(
            pad=number(config, "pad_token_id"), unk=unk if unk is not None else 0, bos=generation.start, eos=eos
        ),
        d_model=number(config, "d_model"),
        n_heads=number(config, "num_heads"),
        head_dim=number(config, "d_kv"),
        d_ff=number(config, "d_ff"),
        n_encoder_layers=n_layers,
        n_decoder_layers=config.get("num_decoder_layers") or n_layers,
        max_positions=bucket(n_positions),
        dropout=config.get("dropout_rate") or 0.0,
        norm="pre",
        norm_type="rms",
        norm_eps=config.get("layer_norm_epsilon") or 1e-6,
        bias=False,
        positions="none",
        relative_positions=RelativePositions(
            buckets=config.get("relative_attention_num_buckets") or 32,
            max_distance=config.get("relative_attention_max_distance") or 128,
            per_layer=kind == "umt5",
        ),
        beta=1.0,
        embedding_scale=1.0,
        activation=activation,
        tied_output=is_tied,
        source=tasks.sources,
        target=tasks.targets,
        prompts=tasks.prompts,
    )
    for side, n in (("encoder", n_layers), ("decoder", transformer.n_decoder_layers)):
        weights.update(_layers(tensors, side, n, per_layer=kind == "umt5"))
    if _scales_output(config, kind):
        # The factor of the hidden states before the projection is one of the last normalization too.
        weights["decoder.final_norm.weight"] = weights["decoder.final_norm.weight"].float() * transformer.d_model**-0.5
    weights["is_target_token"] = written_tokens(n_tokens, size, generation.banned)
    family = FAMILIES[kind]
    licence = licence_of(directory)
    return ImportedModel(
        config_of(
            directory, options, family, tasks.description, transformer, licence, generation.decoding, n_positions
        ),
        weights,
        tokenizer,
        notes=generation.notes,
    )


def read_pieces(directory: Path, n_tokens: int, eos: int) -> Tokenizer:
    """Read the tokenizer, which puts the end of sequence after a text. Raises ModelImportError: a file is missing or
    damaged."""
    if (directory / TOKENIZER).is_file():
        tokenizer = read_tokenizer_json(directory)
    elif (directory / PIECES).is_file():
        tokenizer = _sentence_pieces(directory / PIECES, n_tokens)
    else:
        raise ModelImportError(f"{TOKENIZER} or {PIECES} is missing")
    if isinstance(tokenizer.model, models.Unigram):
        _command_nothing(tokenizer)
    name = tokenizer.id_to_token(eos)
    if name is None:
        raise ModelImportError(f"the tokenizer has no token {eos}, the `eos_token_id` of {CONFIG}")
    if special_around(tokenizer)[1] != [eos]:
        end_with(tokenizer, name, eos)
    return tokenizer


def _sentence_pieces(path: Path, n_tokens: int) -> Tokenizer:
    """Build the tokenizer of a SentencePiece model, whose control pieces and names of languages are special tokens."""
    model = read_model(path)
    tokenizer = tokenizer_of(model)
    if not isinstance(tokenizer.model, models.Unigram):
        raise ModelImportError(f"{path.name} is a BPE model; it must be a unigram model")
    scores = [(piece.piece, float(piece.score)) for piece in model.pieces]
    unk = next((i for i, piece in enumerate(model.pieces) if piece.type == UNKNOWN), None)
    byte_fallback = any(piece.type == BYTE for piece in model.pieces)
    tokenizer.model = models.Unigram(scores, unk_id=unk, byte_fallback=byte_fallback)
    special = [p.piece for p in model.pieces if p.type in (CONTROL, UNKNOWN) or LANGUAGE_TOKEN.fullmatch(p.piece)]
    # Sentinels take the rest of the vocabulary, the last one first.
    n_more = min(100, n_tokens - len(scores)) if tokenizer.token_to_id("<extra_id_0>") is None else 0
    tokenizer.add_special_tokens([*special, *(f"<extra_id_{i}>" for i in reversed(range(n_more)))])
    return tokenizer


def _command_nothing(tokenizer: Tokenizer) -> None:
    """Let no text have special tokens: a space is put into their names, as they are pieces too."""
    pieces = {piece for piece, _ in json.loads(tokenizer.to_str())["model"]["vocab"]}
    names = [token.content for token in tokenizer.get_added_tokens_decoder().values() if token.special]
    rests = [re.escape(name[1:]) for name in names if name in pieces and name.startswith("<")]
    if rests:
        apart = normalizers.Replace(Regex(f"<(?={'|'.join(rests)})"), "< ")
        tokenizer.normalizer = normalizers.Sequence([*([tokenizer.normalizer] if tokenizer.normalizer else []), apart])


def activation_of_layers(config: Mapping[str, Any], kind: str) -> Activation:
    """Convert `feed_forward_proj`: an activation, or "gated-" and the one of the gate. Raises ModelImportError: the
    activation is not supported."""
    name = str(config.get("feed_forward_proj") or ("relu" if kind == "t5" else "gated-gelu"))
    gated, _, plain = name.rpartition("-")
    of_gate = activation_of("gelu_new" if (gated, plain) == ("gated", "gelu") else plain)
    if not gated:
        return of_gate
    ours: dict[Activation, Activation] = {"relu": "reglu", "gelu": "geglu", "gelu_tanh": "geglu_tanh", "silu": "swiglu"}
    return ours[of_gate]


def _scales_output(config: Mapping[str, Any], kind: str) -> bool:
    """Whether hidden states are multiplied by d_model^-0.5 before the projection: where both tables were one in
    training. A newer config.json says so itself."""
    if kind == "mt5":
        return False
    said = config.get("scale_decoder_outputs")
    return bool(config.get("tie_word_embeddings") is not False if said is None else said)


def _layers(tensors: Mapping[str, Tensor], side: str, n_layers: int, per_layer: bool) -> Iterator[tuple[str, Tensor]]:
    """Yield the layers of encoder or decoder by our names. Raises ModelImportError: a tensor is missing."""
    for i in range(n_layers):
        ours = f"{side}.layers.{i}"
        for j, part in enumerate(_SUBLAYERS[side]):
            theirs = f"{side}.block.{i}.layer.{j}"
            sublayer = _ATTENTIONS.get(part, "feed_forward")
            yield f"{ours}.add_norm_{sublayer}.norm.weight", tensor_of(tensors, f"{theirs}.layer_norm.weight")
            if sublayer == "feed_forward":
                gate = (f"{theirs}.{part}.{name}.weight" for name in ("wi_0", "wi_1"))
                hidden = [tensors[name] for name in gate if name in tensors]
                hidden = hidden or [tensor_of(tensors, f"{theirs}.{part}.wi.weight")]
                yield f"{ours}.feed_forward.hidden.weight", torch.cat(hidden)
                yield f"{ours}.feed_forward.output.weight", tensor_of(tensors, f"{theirs}.{part}.wo.weight")
            else:
                stacked = [tensor_of(tensors, f"{theirs}.{part}.{name}.weight") for name in "qkv"]
                yield f"{ours}.{sublayer}_attention.input.weight", torch.cat(stacked)
                yield f"{ours}.{sublayer}_attention.output.weight", tensor_of(tensors, f"{theirs}.{part}.o.weight")
        if i == 0 or per_layer:
            name = f"{side}.block.{i}.layer.0.SelfAttention.relative_attention_bias.weight"
            yield f"{side}.distance_biases.{i}.table", tensor_of(tensors, name)
    yield f"{side}.final_norm.weight", tensor_of(tensors, f"{side}.final_layer_norm.weight")
