"""Sequence classifiers with a BERT-like encoder, as transformers saves them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from model.config import ClassifierConfig, Config, Provenance
from model.importing.bert_encoder import NAMINGS, max_input_tokens, read_encoder, second_segment
from model.importing.encoder_decoder import tensor_of
from model.importing.hugging_face import CONFIG, architectures, licence_of, read_json_if_there
from model.importing.imported import ImportedModel, ModelImportError, Options, in_words
from model.importing.tokenizer_files import length_limits, pair_reading, read_tokenizer, special_tokens

HEAD = "ForSequenceClassification"
SENTENCE_TRANSFORMERS = "config_sentence_transformers.json"
SCORE_ACTIVATIONS = ("Sigmoid", "Identity")

HEADS: Mapping[str, tuple[str, str, Literal["tanh", "relu"]]] = {
    "bert": ("bert.pooler.dense", "classifier", "tanh"),
    "distilbert": ("pre_classifier", "classifier", "relu"),
    "roberta": ("classifier.dense", "classifier.out_proj", "tanh"),
}
"""By encoder prefix: the two dense layers over the first token, and the activation between them."""


def recognizes(directory: Path) -> bool:
    """Whether a directory has a sequence classifier with a supported encoder."""
    config = read_json_if_there(directory, CONFIG)
    return config.get("model_type") in NAMINGS and any(name.endswith(HEAD) for name in architectures(config))


def import_directory(directory: Path, options: Options) -> ImportedModel:
    """Import the classifier of a directory.

    Raises:
        ModelImportError: a file is missing or damaged, or the model is not supported.
    """
    encoder = read_encoder(directory)
    tokenizer = read_tokenizer(directory, encoder.fields["vocab_size"])
    pooler, output, activation = HEADS[encoder.naming.prefix.rstrip(".")]
    head = {
        f"{ours}.{end}": tensor_of(encoder.tensors, f"{theirs}.{end}")
        for ours, theirs in (("pooler", pooler), ("output", output))
        for end in ("weight", "bias")
    }
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
            pooling="first",
            pooler=activation,
        )
        config = Config(
            name=options.name or directory.name,
            description=f"{encoder.naming.family}, a classifier of {len(labels)} labels.",
            max_tokens=max_tokens,
            model=classifier,
            provenance=Provenance(source=directory.name, family=encoder.naming.family, licence=licence_of(directory)),
        )
    except ValidationError as error:
        raise ModelImportError(f"{CONFIG}: {in_words(error)}") from error
    return ImportedModel(config, {**encoder.weights, **head}, tokenizer)


def _labels(config: Mapping[str, Any], n_labels: int) -> tuple[str, ...]:
    """Return the labels in the order of the logits; labels without names are numbered, as in transformers."""
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
    """Return the name of the module that turns the only logit into a score."""
    said = (
        read_json_if_there(directory, SENTENCE_TRANSFORMERS).get("activation_fn")
        or (config.get("sentence_transformers") or {}).get("activation_fn")
        or config.get("sbert_ce_default_activation_function")
        or ("Identity" if config.get("problem_type") == "regression" else "Sigmoid")
    )
    return str(said).rpartition(".")[2]
