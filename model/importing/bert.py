"""Sequence classifiers with a BERT-like encoder, as transformers saves them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError
from torch import Tensor

from manifest.schema import Pooling
from model.config import ClassifierConfig
from model.importing.bert_encoder import ImportedEncoder, max_input_tokens, read_encoder, second_segment
from model.importing.encoder_decoder import tensor_of
from model.importing.encoder_namings import NAMINGS
from model.importing.hugging_face import CONFIG, architectures, licence_of, read_json_if_there
from model.importing.imported import ImportedModel, ModelImportError, Options, config_of, in_words
from model.importing.tokenizer_files import length_limits, pair_reading, read_tokenizer, special_tokens
from model.importing.weights_files import tensor_names

HEAD = "ForSequenceClassification"
SENTENCE_TRANSFORMERS = "config_sentence_transformers.json"
SCORE_ACTIVATIONS = ("Sigmoid", "Identity")


@dataclass(frozen=True)
class Head:
    """The layers over one state of a text.

    Attributes:
        pooler, output: names of two dense layers.
        activation: that between them.
        norm: name of a normalization after the activation.
        activation_key, pooling_key: keys of config.json for the activation and for the state: `cls` or `mean`.
    """

    pooler: str
    output: str
    activation: str
    norm: str | None = None
    activation_key: str = ""
    pooling_key: str = ""


HEAD_OF_ROBERTA = Head("classifier.dense", "classifier.out_proj", "tanh")
HEADS: Mapping[str, Head] = {
    "bert": Head("bert.pooler.dense", "classifier", "tanh"),
    "distilbert": Head("pre_classifier", "classifier", "relu"),
    "roberta": HEAD_OF_ROBERTA,
    "mpnet": HEAD_OF_ROBERTA,
    "deberta": Head("pooler.dense", "classifier", "gelu", activation_key="pooler_hidden_act"),
    "model": Head("head.dense", "classifier", "gelu", "head.norm", "classifier_activation", "classifier_pooling"),
}
"""Heads by the prefix of the encoder."""
POOLINGS: Mapping[str, Pooling] = {"cls": "first", "mean": "mean_states"}
"""States that decide, by their names in transformers."""


def recognizes(directory: Path) -> bool:
    """Whether a directory has a sequence classifier with a supported encoder, by its config.json or its tensors."""
    config = read_json_if_there(directory, CONFIG)
    naming = NAMINGS.get(str(config.get("model_type")))
    if naming is None:
        return False
    if named := architectures(config):
        return any(name.endswith(HEAD) for name in named)
    head = HEADS[naming.prefix.rstrip(".")]
    try:
        return {f"{head.pooler}.weight", f"{head.output}.weight"} <= tensor_names(directory)
    except ModelImportError:
        return False  # reading it says what is wrong


def import_directory(directory: Path, options: Options) -> ImportedModel:
    """Import the classifier of a directory. Raises ModelImportError: a file is missing or damaged, or the model is not
    supported."""
    encoder = read_encoder(directory)
    tokenizer = read_tokenizer(directory, encoder.fields["vocab_size"])
    kind = HEADS[encoder.naming.prefix.rstrip(".")]
    head = dict(_head(encoder, kind))
    pooling = encoder.config.get(kind.pooling_key, "cls")
    if pooling not in POOLINGS:
        raise ModelImportError(f"{CONFIG}: `{kind.pooling_key}` is {pooling}; {' and '.join(POOLINGS)} are supported")
    labels = _labels(encoder.config, len(head["output.bias"]))
    max_tokens = max_input_tokens(length_limits(directory), encoder.n_positions)
    pairs = pair_reading(directory, tokenizer, max_tokens)
    if pairs == "segments":
        if (second := second_segment(encoder)) is not None:
            head["embedding.second"] = second
        else:
            pairs = "separated"
    try:
        classifier = ClassifierConfig(
            **encoder.fields,
            special_tokens=special_tokens(tokenizer, encoder.config),
            labels=labels,
            label_activation=_label_activation(directory, encoder.config, len(labels)),
            pairs=pairs,
            pooling=POOLINGS[pooling],
            pooler=encoder.config.get(kind.activation_key, kind.activation),
            pooler_norm=kind.norm is not None,
        )
        does = f"a classifier of {len(labels)} labels"
        config = config_of(
            directory, options, encoder.naming.family, does, classifier, licence_of(directory), max_tokens=max_tokens
        )
    except ValidationError as error:
        raise ModelImportError(f"{CONFIG}: {in_words(error)}") from error
    return ImportedModel(config, {**encoder.weights, **head}, tokenizer)


def _head(encoder: ImportedEncoder, kind: Head) -> Iterator[tuple[str, Tensor]]:
    with_biases = encoder.fields.get("bias", True)
    for ours, theirs, has_bias in (
        ("pooler", kind.pooler, with_biases),
        ("pooler_norm", kind.norm, with_biases),
        ("output", kind.output, True),
    ):
        for end in ("weight", "bias") if has_bias else ("weight",):
            if theirs is not None:
                yield f"{ours}.{end}", tensor_of(encoder.tensors, f"{theirs}.{end}")


def _labels(config: Mapping[str, Any], n_labels: int) -> tuple[str, ...]:
    """Labels without names are numbered, as in transformers."""
    named = config.get("id2label") or {str(i): f"LABEL_{i}" for i in range(n_labels)}
    try:
        labels = tuple(str(named[key]) for key in sorted(named, key=int))
    except (TypeError, ValueError, AttributeError) as error:
        raise ModelImportError(f"{CONFIG}: `id2label` must map numbers to labels: {error}") from error
    if len(labels) != n_labels or sorted(map(int, named)) != list(range(n_labels)):
        raise ModelImportError(f"{CONFIG} has {len(labels)} labels in `id2label`, but the weights have {n_labels}")
    if len(set(labels)) < n_labels:
        raise ModelImportError(f"{CONFIG}: `id2label` gives two labels the same name")
    return labels


def _label_activation(
    directory: Path, config: Mapping[str, Any], n_labels: int
) -> Literal["softmax", "sigmoid", "identity"]:
    """Return how logits become scores. A single output is a score between 0 and 1 unless the files say otherwise, as
    in the cross-encoders of sentence-transformers."""
    kind = config.get("problem_type")
    if kind == "multi_label_classification":
        return "sigmoid"
    if n_labels == 1:
        named = _activation_of_scores(directory, config)
        if named not in SCORE_ACTIVATIONS:
            raise ModelImportError(
                f"the activation of scores {named} is not supported; {' and '.join(SCORE_ACTIVATIONS)} are"
            )
        return "identity" if named == "Identity" else "sigmoid"
    if kind in (None, "single_label_classification"):
        return "softmax"
    raise ModelImportError(
        f"the model has {n_labels} outputs and `problem_type` {kind}, which is not supported; classifiers are"
    )


def _activation_of_scores(directory: Path, config: Mapping[str, Any]) -> str:
    said = (
        read_json_if_there(directory, SENTENCE_TRANSFORMERS).get("activation_fn")
        or (config.get("sentence_transformers") or {}).get("activation_fn")
        or config.get("sbert_ce_default_activation_function")
        or ("Identity" if config.get("problem_type") == "regression" else "Sigmoid")
    )
    return str(said).rpartition(".")[2]
