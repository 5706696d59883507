"""Sentence encoders like BERT, as sentence-transformers saves them, or transformers without a head.

Source: Reimers and Gurevych 2019, "Sentence-BERT".
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PureWindowsPath
from typing import Any

from pydantic import ValidationError
from tokenizers import Tokenizer, normalizers
from torch import Tensor

from manifest.schema import TokenPooling
from model.config import Config, DenseConfig, EmbedderConfig, Provenance
from model.importing import bert
from model.importing.bert_encoder import ImportedEncoder, max_input_tokens, read_encoder
from model.importing.encoder_decoder import tensor_of
from model.importing.encoder_namings import NAMINGS
from model.importing.hugging_face import CONFIG, architectures, licence_of, number, read_json_if_there
from model.importing.imported import ImportedModel, MissingTensorError, ModelImportError, Options, in_words
from model.importing.json_files import parsed_json
from model.importing.setting_types import shown
from model.importing.tokenizer_files import length_limits, read_tokenizer, special_tokens
from model.importing.weights_files import read_tensors, weights_name
from model.tokenizer import special_around

MODULES, PROMPTS, TRANSFORMER_SETTINGS = (
    "modules.json",
    "config_sentence_transformers.json",
    "sentence_*_config.json",  # bert, roberta, distilbert
)

POOLINGS: Mapping[str, TokenPooling] = {
    "cls": "first",
    "max": "max",
    "mean": "mean",
    "mean_sqrt_len_tokens": "mean_sqrt_len",
    "weightedmean": "weighted_mean",
    "lasttoken": "last",
}
"""Kinds of pooling by their names in sentence-transformers."""
FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
"""Kinds of pooling by flags of older configurations; several are joined in this order."""
LANGUAGE_MODEL_PREFIXES = (
    "cls.", "decoder.", "head.", "lm_head.", "lm_predictions.", "mask_predictions.", "vocab_",
)  # fmt: skip
"""Prefixes of weights that predict tokens, which encoders are trained with first."""
PER_TEXT = "sentence_embedding"
MATRYOSHKA, IS_MATRYOSHKA = "matryoshka_dimensions", "is_matryoshka"
"""Keys of config.json: the numbers of dimensions to which embeddings may be cut, and whether there are any."""
ACTIVATIONS = {"Tanh": "tanh", "Identity": "identity"}
"""Activations by the names of PyTorch modules."""


@dataclass
class _Pipeline:
    pooling: tuple[TokenPooling, ...] = ("mean",)
    pool_prompt: bool = True
    dense: list[DenseConfig] = field(default_factory=list)
    weights: dict[str, Tensor] = field(default_factory=dict)
    normalize: bool = False


def recognizes(directory: Path) -> bool:
    """Whether a directory has a supported encoder, and no sequence classifier."""
    try:
        transformer = directory / _transformer(_modules(directory))
    except ModelImportError:
        return True  # reading it says what is wrong
    is_encoder = read_json_if_there(transformer, CONFIG).get("model_type") in NAMINGS
    return (is_encoder or transformer != directory) and not bert.recognizes(transformer)


def import_directory(directory: Path, options: Options) -> ImportedModel:
    """Import the sentence encoder of a directory. Raises ModelImportError: a file is missing or damaged, or the model
    is not supported."""
    modules = _modules(directory)
    transformer = directory / _transformer(modules)
    named = architectures(read_json_if_there(transformer, CONFIG))
    if not modules:
        _refuse_head(named)
    encoder = read_encoder(transformer)
    if not modules and not named:
        _refuse_head_of_weights(encoder)
    pipeline = _pipeline(directory, modules)
    settings = next((read_json_if_there(transformer, path.name) for path in transformer.glob(TRANSFORMER_SETTINGS)), {})
    tokenizer = read_tokenizer(transformer, encoder.fields["vocab_size"])
    if settings.get("do_lower_case"):
        _read_in_lower_case(tokenizer)
    limits = (
        [number(settings, "max_seq_length", TRANSFORMER_SETTINGS)]
        if settings.get("max_seq_length")
        else length_limits(transformer)
    )
    said = read_json_if_there(directory, PROMPTS)
    prompts = {**(said.get("prompts") or {}), **options.prompts}
    try:
        embedder = EmbedderConfig(
            **encoder.fields,
            special_tokens=special_tokens(tokenizer, encoder.config),
            pooling=pipeline.pooling,
            dense=tuple(pipeline.dense),
            normalize=pipeline.normalize,
            prompts=prompts,
            default_prompt=said.get("default_prompt_name"),
            pool_prompt=pipeline.pool_prompt,
            cut_to=_cut_to(encoder, options, pipeline),
        )
        config = Config(
            name=options.name or directory.name,
            description=f"{encoder.naming.family}, an encoder of texts.",
            max_tokens=max_input_tokens(limits, encoder.n_positions),
            model=embedder,
            provenance=Provenance(
                source=directory.name,
                family=f"{encoder.naming.family} as a sentence encoder",
                licence=licence_of(directory),
            ),
        )
    except ValidationError as error:
        raise ModelImportError(f"{CONFIG}: {in_words(error)}") from error
    _refuse_long_prompts(tokenizer, embedder, config.max_tokens)
    notes = []
    if encoder.config.get(IS_MATRYOSHKA) and not embedder.cut_to:
        notes.append(f"{CONFIG} has `{IS_MATRYOSHKA}` and no `{MATRYOSHKA}`: name them with `--dimensions`")
    return ImportedModel(config, {**encoder.weights, **pipeline.weights}, tokenizer, notes=tuple(notes))


def _cut_to(encoder: ImportedEncoder, options: Options, pipeline: _Pipeline) -> tuple[int, ...]:
    """Return the numbers of dimensions to which embeddings may be cut: those of the options, or of config.json."""
    width = pipeline.dense[-1].d_output if pipeline.dense else encoder.fields["d_model"] * len(pipeline.pooling)
    named = options.dimensions or encoder.config.get(MATRYOSHKA) or ()
    if not isinstance(named, list | tuple) or not all(isinstance(n, int) and 0 < n <= width for n in named):
        raise ModelImportError(f"embeddings have {width} dimensions and cannot be cut to {shown(named)}")
    return tuple(sorted({n for n in named if n < width}))


def _modules(directory: Path) -> list[tuple[str, str]]:
    """Return the modules of the pipeline in order: kind and folder of each. Empty if no file lists them."""
    if not (directory / MODULES).is_file():
        return []
    try:
        listed = parsed_json(directory / MODULES)
        modules = [(str(module["type"]).rpartition(".")[2], str(module.get("path") or "")) for module in listed]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelImportError(f"{MODULES} must list modules with `type` and `path`: {error!r}") from error
    for _, path in modules:
        if PureWindowsPath(path).anchor or ".." in PureWindowsPath(path).parts:
            raise ModelImportError(f"{MODULES} has a `path` outside of the directory: {path}")
    return modules


def _transformer(modules: list[tuple[str, str]]) -> str:
    if modules and modules[0][0] != "Transformer":
        raise ModelImportError(f"{MODULES} begins with {modules[0][0]}; it must be Transformer")
    return modules[0][1] if modules else ""


def _refuse_head(named: tuple[str, ...]) -> None:
    """Refuse encoders with another head: they were trained for another task, and their embeddings say little."""
    for name in named:
        if not name.endswith("Model"):
            raise ModelImportError(
                f"{name} has a head that is not supported; sequence classifiers and encoders without a head are"
            )


def _refuse_head_of_weights(encoder: ImportedEncoder) -> None:
    """Refuse weights of an unknown head, other than that of a language model, if no file names it."""
    prefix = encoder.naming.prefix
    has_head = any(name.startswith(prefix) for name in encoder.tensors)
    for name in encoder.tensors if has_head else ():
        if not name.startswith((prefix, *LANGUAGE_MODEL_PREFIXES)):
            raise ModelImportError(
                f"the weights have a head ({name}), and {CONFIG} has no `architectures` that name it"
            )


def _pipeline(directory: Path, modules: list[tuple[str, str]]) -> _Pipeline:
    pipeline, expected = _Pipeline(), ["Pooling"]
    for kind, path in modules[1:]:
        if kind not in expected:
            raise ModelImportError(f"{MODULES} has {kind} instead of {' or '.join(expected) or 'nothing'}")
        match kind:
            case "Pooling":
                _read_pooling(directory, path, pipeline)
                expected = ["Dense", "Normalize"]
            case "Dense":
                _read_dense(directory, path, pipeline)
            case "Normalize":
                pipeline.normalize = True
                expected = []
    if expected == ["Pooling"] and modules:
        raise ModelImportError(f"{MODULES} has no Pooling")
    return pipeline


def _read_pooling(directory: Path, path: str, pipeline: _Pipeline) -> None:
    settings = _settings(directory, path)
    modes = settings.get("pooling_mode") or [name for flag, name in FLAGS.items() if settings.get(flag)] or ["mean"]
    modes = [modes] if isinstance(modes, str) else modes
    for mode in modes:
        if mode not in POOLINGS:
            raise ModelImportError(f"pooling {mode} is not supported; {', '.join(POOLINGS)} are")
    pipeline.pooling = tuple(POOLINGS[mode] for mode in modes)
    pipeline.pool_prompt = bool(settings.get("include_prompt", True))


def _read_dense(directory: Path, path: str, pipeline: _Pipeline) -> None:
    settings = _settings(directory, path)
    activation = str(settings.get("activation_function") or "Tanh").rpartition(".")[2]
    if activation not in ACTIVATIONS:
        raise ModelImportError(f"{path}: activation {activation} is not supported; {' and '.join(ACTIVATIONS)} are")
    if settings.get("use_residual"):
        raise ModelImportError(f"{path} has a residual connection, which is not supported")
    if settings.get("module_input_name", PER_TEXT) != PER_TEXT:
        raise ModelImportError(f"{path} is a layer over every token, which is not supported; layers over a text are")
    tensors = read_tensors(directory / path)
    place, has_bias = len(pipeline.dense), bool(settings.get("bias", True))
    try:
        for end in ("weight", "bias") if has_bias else ("weight",):
            pipeline.weights[f"dense.{place}.{end}"] = tensor_of(tensors, f"linear.{end}")
    except MissingTensorError as error:
        raise ModelImportError(f"{path}/{weights_name(directory / path)} has no {error.name}") from error
    d_output = len(pipeline.weights[f"dense.{place}.weight"])
    pipeline.dense.append(DenseConfig(d_output=d_output, bias=has_bias, activation=ACTIVATIONS[activation]))


def _settings(directory: Path, path: str) -> dict[str, Any]:
    if not (directory / path / CONFIG).is_file():
        raise ModelImportError(f"{path}/{CONFIG} is missing")
    return read_json_if_there(directory / path, CONFIG)


def _read_in_lower_case(tokenizer: Tokenizer) -> None:
    lower = normalizers.Lowercase()
    tokenizer.normalizer = normalizers.Sequence([lower, tokenizer.normalizer]) if tokenizer.normalizer else lower


def _refuse_long_prompts(tokenizer: Tokenizer, embedder: EmbedderConfig, max_tokens: int) -> None:
    """Check that prompts leave room for text: each window of a text has its prompt."""
    if embedder.default_prompt is not None and embedder.default_prompt not in embedder.prompts:
        raise ModelImportError(f"{PROMPTS} has no prompt {embedder.default_prompt!r}, its `default_prompt_name`")
    n_special = sum(map(len, special_around(tokenizer)))
    for name, text in {"": "", **embedder.prompts}.items():
        n_prompt = len(tokenizer.encode(text, add_special_tokens=False).ids)
        if n_prompt + n_special >= max_tokens:
            raise ModelImportError(
                f"prompt {name!r} has {n_prompt} tokens, too many: the model reads at most {max_tokens}"
            )
