"""The checkpoint directory, which training writes and evaluation and export read.

config.yaml (architecture), recipe.yaml (training), weights.safetensors (model/weights.py), tokenizer.json and
training.json (duration); after evaluation also evaluation.json and README.md (the model card); for a translator
alignment.json, if `python -m model align` chose its heads. An artifact has these files beside its graphs and
manifest.json, and is read as a checkpoint too.
"""

import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import ValidationError
from tokenizers import Tokenizer
from torch import Tensor

from manifest.layout import MANIFEST, TOKENIZER, VOCABULARY, WEIGHTS
from manifest.schema import AlignmentChoice, Confidence, Language
from manifest.sums import FileSum, sum_of_file
from manifest.vocabulary import Vocabulary
from model.config import (
    CONFIG,
    ClassifierConfig,
    Config,
    EmbedderConfig,
    LanguageModelConfig,
    LayerConfig,
    ModelConfig,
    RecurrentConfig,
    TransformerConfig,
    load_config,
    save_config,
)
from model.networks.language_model import LanguageModel
from model.networks.recurrent import RecurrentTranslator
from model.networks.transformer import Transformer, TransformerClassifier, TransformerEncoder
from model.tokenizer import ids_of, load_tokenizer
from model.weights import WeightsError, WithoutInitialization, assign_weights, read_weights, write_weights

Model = Transformer | RecurrentTranslator | LanguageModel | TransformerClassifier | TransformerEncoder

EMBEDDING, SECOND = "embedding.tokens.weight", "embedding.second"
ENCODER_PREFIXES = ("embedding.", "encoder.")
"""Prefixes of the tensors that the encoder of every model has."""
TOKEN_SUFFIXES = (EMBEDDING, "is_target_token")
"""Suffixes of tensors with a row for each token."""
FREE_SETTINGS = {"vocab_size", "special_tokens", "max_positions", "dropout", "attention", "beta"}
"""Settings in which a model may differ from the checkpoint that it starts with."""
REQUIRED_FILES = (CONFIG, WEIGHTS, TOKENIZER)
EVALUATION, TRAINING, CARD, ALIGNMENT = "evaluation.json", "training.json", "README.md", "alignment.json"
CONFIDENCE = "confidence"
"""Key of evaluation.json, beside the test sets, of a translator's confidence."""


class CheckpointError(ValueError):
    """A checkpoint directory is incomplete, or its weights do not fit its configuration."""


@dataclass(frozen=True)
class Checkpoint:
    config: Config
    model: Model
    """The network, in evaluation mode and float32."""
    tokenizer: Tokenizer
    evaluation: dict[str, dict[str, float]]
    """Scores by test set and metric; empty before evaluation."""
    alignment: AlignmentChoice | None = None
    """The heads that align; None if they were not chosen."""
    stored: Mapping[str, Tensor] = field(default_factory=dict)
    """Tensors as they are stored, if some are int8: the network has their float values."""
    vocabulary: Vocabulary | None = None
    """Ids of pieces, if the model numbers them otherwise than the tokenizer."""
    confidence: Confidence | None = None
    """None if a translator's confidence was not measured."""

    def pairs_of(self, texts: Sequence[str]) -> list[tuple[str, str]]:
        """Return each text with the next one, if the model reads pairs of texts; else nothing."""
        reads_pairs = isinstance(self.config.model, ClassifierConfig) and self.config.model.pairs is not None
        return list(pairwise(texts)) if reads_pairs else []

    def encode(
        self, texts: Sequence[str | tuple[str, str]], source: Language | None = None, target: Language | None = None
    ) -> list[list[int]]:
        """Return token ids of texts, or of pairs of texts, as the model reads them.

        Args:
            source, target: the languages of a translation; by default the model's first ones.
        """
        prefix: tuple[int, ...] = ()
        if isinstance(self.config.model, TransformerConfig):
            source, target = source or self.config.model.sources[0], target or self.config.model.targets[0]
            prefix = source.source_prefix + target.source_prefix
        encodings = self.tokenizer.encode_batch(list(texts))
        return [[*prefix, *ids_of(encoding, self.vocabulary)] for encoding in encodings]

    def pieces(self, ids: Iterable[int], of: Literal["source", "target"]) -> list[str]:
        """Return the tokens of a source or target as the vocabulary writes them."""
        if self.vocabulary is None:
            return [str(self.tokenizer.id_to_token(i)) for i in ids]
        return [self.vocabulary.pieces[of][i] for i in ids]

    def decode(self, ids: Iterable[int], of: Literal["source", "target"] = "target") -> str:
        """Return the text of a target, or of a source."""
        words = [i for i in ids if i not in self._special]
        if self.vocabulary is None:
            text: str = self.tokenizer.decode(words)
            return text
        names = self.vocabulary.pieces[of]
        joined: str = self.tokenizer.decoder.decode([names[i] for i in words if i in names])
        return joined

    @cached_property
    def _special(self) -> set[int]:
        """Ids of special tokens, which are no part of a text."""
        config = self.config.model
        special = set(config.special_tokens.model_dump().values())
        if isinstance(config, TransformerConfig):
            special.update(*(language.target_prefix for language in config.targets))
        return special


def build_model(config: Config) -> Model:
    """Build the model that a configuration describes, with random weights."""
    match config.model:
        case TransformerConfig():
            return Transformer(config.model)
        case RecurrentConfig():
            return RecurrentTranslator(config.model)
        case LanguageModelConfig():
            return LanguageModel(config.model)
        case ClassifierConfig():
            return TransformerClassifier(config.model)
        case EmbedderConfig():
            return TransformerEncoder(config.model)


def save_checkpoint(
    directory: Path,
    config: Config,
    weights: Mapping[str, Tensor],
    tokenizer: Tokenizer,
    vocabulary: Vocabulary | None = None,
    dtype: torch.dtype | None = torch.float16,
) -> None:
    """Write configuration, weights and tokenizer. The manifest of an artifact in the directory is deleted, so that its
    graphs are not served with other weights.

    Args:
        dtype: see `write_weights`.
    """
    directory.mkdir(parents=True, exist_ok=True)
    (directory / MANIFEST).unlink(missing_ok=True)
    save_config(directory, config)
    tokenizer.save(str(directory / TOKENIZER))
    (directory / VOCABULARY).unlink(missing_ok=True)
    if vocabulary is not None:
        (directory / VOCABULARY).write_text(vocabulary.as_json(), encoding="utf-8")
    write_weights(directory / WEIGHTS, weights, dtype)


def load_checkpoint(directory: Path) -> Checkpoint:
    """Read a checkpoint directory, or an artifact. Raises CheckpointError: a file is missing, or weights or alignment
    do not fit the configuration or the manifest. Raises ConfigError: the configuration cannot be used."""
    _refuse_without(directory, REQUIRED_FILES)
    _refuse_damaged(directory)
    config = load_config(directory)
    with WithoutInitialization():
        model = build_model(config)
    try:
        stored = read_weights(directory / WEIGHTS)
        assign_weights(model, stored)
    except WeightsError as error:
        raise CheckpointError(f"{directory / WEIGHTS} does not hold the weights of this model: {error}") from error
    if all(tensor.dtype != torch.int8 for tensor in stored.values()):
        stored = {}  # the file of large weights is mapped into memory as long as one of them is there
    alignment = load_alignment(directory / ALIGNMENT, config) if (directory / ALIGNMENT).is_file() else None
    evaluation: dict[str, Any] = _read_if_there(directory / EVALUATION, lambda path: json.loads(path.read_text())) or {}
    confidence = _confidence(directory / EVALUATION, evaluation.pop(CONFIDENCE, None))
    unk = config.model.special_tokens.unk
    vocabulary = _read_if_there(directory / VOCABULARY, lambda path: Vocabulary.parse(path.read_bytes(), unk))
    tokenizer = _read_if_there(directory / TOKENIZER, load_tokenizer)
    return Checkpoint(config, model.eval(), tokenizer, evaluation, alignment, stored, vocabulary, confidence)


def _read_if_there(path: Path, read: Callable[[Path], Any]) -> Any:
    """Return None if the file is missing. Raises CheckpointError for any error: tokenizers raises bare Exception."""
    if not path.is_file():
        return None
    try:
        return read(path)
    except Exception as error:
        raise CheckpointError(f"{path} is damaged: {error}") from error


def _confidence(path: Path, content: Any) -> Confidence | None:
    """Raises CheckpointError: the file has something else in its place."""
    try:
        return None if content is None else Confidence.model_validate(content)
    except ValidationError as error:
        raise CheckpointError(f"{path}: `{CONFIDENCE}` is damaged: {error}") from error


def initialize_from(model: Model, checkpoint: Checkpoint, tokenizer: Tokenizer) -> None:
    """Initialize a model with the weights of a checkpoint, whose vocabulary may be another.

    A piece in both vocabularies keeps its row of the checkpoint, any other that of the model (Zoph et al. 2016; Kocmi
    and Bojar 2018). A classifier takes only the encoder, unless the checkpoint has the same labels.

    Raises:
        CheckpointError: the checkpoint has other layers, or a vocabulary that cannot be transferred.
    """
    _refuse_other_layers(model.config, checkpoint)
    weights, old, new = checkpoint.model.state_dict(), checkpoint.tokenizer.get_vocab(), tokenizer.get_vocab()
    if isinstance(model, TransformerClassifier) and not _tells_labels(checkpoint.config, model.config.labels):
        head = {name: weight for name, weight in model.state_dict().items() if not name.startswith(ENCODER_PREFIXES)}
        weights = {name: weight for name, weight in weights.items() if name.startswith(ENCODER_PREFIXES)} | head
        if model.config.pairs != "segments":
            weights.pop(SECOND, None)
    shared = new.keys() & old.keys()
    if not shared:
        raise CheckpointError(f"{checkpoint.config.name} shares no piece with this vocabulary")
    into, of = [new[piece] for piece in shared], [old[piece] for piece in shared]
    try:
        for name, rows in model.state_dict().items():
            if name.endswith(TOKEN_SUFFIXES):
                rows[into] = weights[name][of]
                weights[name] = rows
        model.load_state_dict(weights)
    except (IndexError, KeyError, RuntimeError) as error:
        raise CheckpointError(f"{checkpoint.config.name} does not hold the weights of this model: {error}") from error


def _refuse_other_layers(config: ModelConfig, checkpoint: Checkpoint) -> None:
    start, name = checkpoint.config.model, checkpoint.config.name
    if checkpoint.vocabulary is not None:
        raise CheckpointError(f"{name} cannot be trained further: its vocabulary is not that of its tokenizer")
    if isinstance(config, ClassifierConfig) and isinstance(start, TransformerConfig) and start.has_source_embedding:
        raise CheckpointError(f"a classifier cannot start with {name}: it has a separate source embedding")
    if not isinstance(start, LayerConfig) or not isinstance(config, (ClassifierConfig, type(start))):
        return  # then the names of weights differ
    for setting in LayerConfig.model_fields.keys() - FREE_SETTINGS:
        here, there = getattr(config, setting), getattr(start, setting)
        if here != there:
            raise CheckpointError(f"`{setting}` is {here}, but {name} has {there}; they must be equal")


def _tells_labels(config: Config, labels: Sequence[str]) -> bool:
    return isinstance(config.model, ClassifierConfig) and config.model.labels == labels


def load_training(directory: Path) -> dict[str, Any]:
    """Read training.json: how long training took. Raises CheckpointError: there is no such file."""
    _refuse_without(directory, [TRAINING])
    facts: dict[str, Any] = json.loads((directory / TRAINING).read_text(encoding="utf-8"))
    return facts


def copy_trained(directory: Path, copy: Path) -> None:
    """Copy the files that training starts with; they replace files of the same names. Raises CheckpointError: a file is
    missing."""
    _refuse_without(directory, REQUIRED_FILES)
    copy.mkdir(exist_ok=True)
    for name in (*REQUIRED_FILES, TRAINING):
        if (directory / name).is_file():
            shutil.copyfile(directory / name, copy / name)


def _refuse_without(directory: Path, names: Iterable[str]) -> None:
    for name in names:
        if not (directory / name).is_file():
            raise CheckpointError(f"{directory} is not a checkpoint: {name} is missing")


def _refuse_damaged(directory: Path) -> None:
    path = directory / MANIFEST
    if not path.is_file():
        return
    try:
        files = json.loads(path.read_text(encoding="utf-8"))["files"]
        read = [WEIGHTS, TOKENIZER, *({VOCABULARY} & files.keys())]
        sums = {name: FileSum.model_validate(files[name]) for name in read}
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path} has no checksums of {WEIGHTS} and {TOKENIZER}: {error!r}") from error
    for name, expected in sums.items():
        if sum_of_file(directory / name) != expected:
            raise CheckpointError(f"{directory / name} is damaged: its sha256 is not what {MANIFEST} says")


def load_alignment(path: Path, config: Config) -> AlignmentChoice:
    """Read the choice of heads from an alignment.json. Raises CheckpointError: the file is damaged, or the model has no
    such layer or head."""
    model = config.model
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        alignment = AlignmentChoice.model_validate(content["choice"])
    except (json.JSONDecodeError, KeyError, TypeError, ValidationError) as error:
        raise CheckpointError(f"{path} must have `choice` with `layer`, `heads` and `next_row`: {error}") from error
    n_layers, n_heads = (model.n_decoder_layers, model.n_heads) if isinstance(model, TransformerConfig) else (0, 0)
    heads = set(alignment.heads)
    if not (0 <= alignment.layer < n_layers and heads and heads <= set(range(n_heads))):
        raise CheckpointError(
            f"{path}: layer {alignment.layer}, heads {sorted(heads)} are not among the model's "
            f"{n_layers} decoder layers of {n_heads} heads"
        )
    return alignment


def average_weights(paths: list[Path], prefix: str) -> dict[str, Tensor]:
    """Return the mean of weights `prefix`* of Lightning checkpoints, without the prefix (Vaswani et al. 2017, 6.1)."""
    total: dict[str, Tensor] = {}
    for path in paths:
        state: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)["state_dict"]
        for name, tensor in state.items():
            if name.startswith(prefix):
                key = name.removeprefix(prefix)
                total[key] = total[key] + tensor.double() if key in total else tensor.double()
    return {name: (tensor / len(paths)).float() for name, tensor in total.items()}
