"""Classifiers of pairs of texts read them as transformers does: the same tokens, and a vector for the second text."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from model.checkpoint import build_model
from model.config import ClassifierConfig
from model.importing import bert
from model.importing.imported import ImportedModel, ModelImportError, Options
from model.weights import assign_weights
from tests.model.importing.encoder_checkpoints import FAMILIES, TEXTS, original_tokenizer, write_encoder

HEAD = "ForSequenceClassification"
PAIRS = [(first, second) for first in TEXTS[:4] for second in (TEXTS[2], TEXTS[4], TEXTS[6])]


def imported_from(directory: Path, family: str, **changes: Any) -> tuple[Any, ImportedModel]:
    original = write_encoder(directory, family, HEAD, **{"num_labels": 1, "max_position_embeddings": 300} | changes)
    return original, bert.import_directory(directory, Options())


def config_of(imported: ImportedModel) -> ClassifierConfig:
    config = imported.config.model
    assert isinstance(config, ClassifierConfig)
    return config


@torch.inference_mode()
@pytest.mark.parametrize("family", FAMILIES)
def test_tokens_and_logits_of_pairs_are_those_of_transformers(tmp_path: Path, family: str) -> None:
    original, imported = imported_from(tmp_path, family, num_labels=3)
    assert config_of(imported).pairs == ("segments" if family == "bert" else "separated")
    model = build_model(imported.config)
    assign_weights(model, imported.weights)
    theirs = original_tokenizer(tmp_path)
    for pair in PAIRS:
        expected = theirs(*pair, split_special_tokens=True, return_tensors="pt")
        ids = imported.tokenizer.encode(*pair).ids
        assert ids == expected["input_ids"][0].tolist(), pair
        found = model.eval()(torch.tensor([ids]), torch.tensor([len(ids)]))[0]
        torch.testing.assert_close(found, original(**expected).logits, atol=1e-5, rtol=1e-5)


def test_the_second_text_has_a_vector_only_where_the_model_was_given_one(tmp_path: Path) -> None:
    original = write_encoder(tmp_path, "bert", HEAD)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"model_input_names": ["input_ids", "attention_mask"]}))
    assert config_of(bert.import_directory(tmp_path, Options())).pairs == "separated"
    (tmp_path / "tokenizer_config.json").unlink()
    types = original.bert.embeddings.token_type_embeddings.weight.data
    types[1] = types[0]
    original.save_pretrained(tmp_path)
    assert config_of(bert.import_directory(tmp_path, Options())).pairs == "separated"


def test_a_model_with_no_room_for_two_texts_reads_single_ones(tmp_path: Path) -> None:
    write_encoder(tmp_path, "bert", HEAD)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 4}))
    assert config_of(bert.import_directory(tmp_path, Options())).pairs is None


IDENTITY = "torch.nn.modules.linear.Identity"


@pytest.mark.parametrize(
    ("settings", "file", "expected"),
    [
        ({}, "config.json", "sigmoid"),
        ({"problem_type": "regression"}, "config.json", "identity"),
        ({"sentence_transformers": {"activation_fn": IDENTITY, "version": "4.1.0"}}, "config.json", "identity"),
        ({"sbert_ce_default_activation_function": IDENTITY}, "config.json", "identity"),
        ({"sbert_ce_default_activation_function": None}, "config.json", "sigmoid"),
        ({"activation_fn": IDENTITY}, bert.SENTENCE_TRANSFORMERS, "identity"),
        ({"activation_fn": "torch.nn.modules.activation.Sigmoid"}, bert.SENTENCE_TRANSFORMERS, "sigmoid"),
    ],
)
def test_one_output_becomes_a_score_as_the_files_say(
    tmp_path: Path, settings: dict[str, Any], file: str, expected: str
) -> None:
    write_encoder(tmp_path, "bert", HEAD, num_labels=1)
    path = tmp_path / file
    path.write_text(json.dumps((json.loads(path.read_text()) if path.is_file() else {}) | settings))
    config = config_of(bert.import_directory(tmp_path, Options()))
    assert (config.label_activation, config.labels) == (expected, ("LABEL_0",))


def test_an_unknown_activation_of_scores_is_refused(tmp_path: Path) -> None:
    write_encoder(tmp_path, "bert", HEAD, num_labels=1)
    (tmp_path / bert.SENTENCE_TRANSFORMERS).write_text(json.dumps({"activation_fn": "mine.Special"}))
    with pytest.raises(ModelImportError, match="scores Special is not supported; Sigmoid and Identity are"):
        bert.import_directory(tmp_path, Options())
