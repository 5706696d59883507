"""Sentence encoders are imported from the newer and older form of sentence-transformers, or refused."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

from model import __main__
from model.checkpoint import build_model
from model.config import EmbedderConfig, load_config
from model.importing import sentence_encoder
from model.importing.families import import_directory
from model.importing.imported import ImportedModel, ModelImportError, Options
from model.networks.transformer import TransformerEncoder
from model.weights import assign_weights
from tests.model.importing.encoder_checkpoints import (
    FAMILIES,
    N_POSITIONS,
    TEXTS,
    original_ids,
    original_states,
    write_encoder,
    write_modules,
)


def model_of(imported: ImportedModel) -> TransformerEncoder:
    model = build_model(imported.config)
    assign_weights(model, imported.weights)
    assert isinstance(model, TransformerEncoder)
    return model.eval()


def config_of(directory: Path, **options: Any) -> EmbedderConfig:
    config = sentence_encoder.import_directory(directory, Options(**options)).config.model
    assert isinstance(config, EmbedderConfig)
    return config


@pytest.mark.parametrize("family", FAMILIES)
def test_tokens_and_states_are_those_of_transformers(tmp_path: Path, family: str) -> None:
    original = write_encoder(tmp_path, family, "Model")
    assert sentence_encoder.recognizes(tmp_path)
    imported = sentence_encoder.import_directory(tmp_path, Options())
    model = model_of(imported)
    for text in TEXTS:
        ids = imported.tokenizer.encode(text).ids
        assert ids == original_ids(tmp_path, text), text
        ids = ids[:N_POSITIONS]
        with torch.inference_mode():
            states = model.encode(torch.tensor([ids]), torch.tensor([len(ids)]))[0]
        torch.testing.assert_close(states, original_states(original, ids), atol=1e-5, rtol=0)


TIED = {
    "bert": "cls.predictions.decoder.weight",
    "distilbert": "vocab_projector.weight",
    "roberta": "lm_head.decoder.weight",
    "xlm-roberta": "lm_head.decoder.weight",
    "camembert": "lm_head.decoder.weight",
    "mpnet": "lm_head.decoder.weight",
    "deberta-v2": "cls.predictions.decoder.weight",
    "modernbert": "decoder.weight",
}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_token_table_may_have_the_name_of_the_output_that_is_tied_to_it(tmp_path: Path, family: str) -> None:
    write_encoder(tmp_path, family, "ForMaskedLM")
    write_modules(tmp_path, {"pooling_mode": "mean"})
    expected = sentence_encoder.import_directory(tmp_path, Options()).weights
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    (name,) = [name for name in tensors if name.endswith(("word_embeddings.weight", "tok_embeddings.weight"))]
    tensors[TIED[family]] = tensors.pop(name)
    save_file(tensors, path)
    found = sentence_encoder.import_directory(tmp_path, Options()).weights
    assert torch.equal(found["embedding.tokens.weight"], expected["embedding.tokens.weight"])
    assert found.keys() == expected.keys()
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"tie_word_embeddings": False}))
    with pytest.raises(ModelImportError, match=r"the weights have no embeddings\.\w+_emb"):
        sentence_encoder.import_directory(tmp_path, Options())


def test_an_encoder_alone_has_the_mean_of_its_states(tmp_path: Path) -> None:
    write_encoder(tmp_path, "bert", "Model")
    config = config_of(tmp_path)
    assert (config.pooling, config.normalize, config.dense, config.prompts) == (("mean",), False, (), {})


OLDER = {"word_embedding_dimension": 24, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
ALL = ("first", "max", "mean", "mean_sqrt_len", "weighted_mean", "last")


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [
        ({"pooling_mode": "mean"}, ("mean",)),
        ({"pooling_mode": ["lasttoken", "max"]}, ("last", "max")),
        (OLDER, ("first",)),
        (dict.fromkeys(sentence_encoder.FLAGS, True), ALL),
        (dict.fromkeys(sentence_encoder.FLAGS, False), ("mean",)),
    ],
)
def test_pooling_is_read_in_both_forms(tmp_path: Path, pooling: dict[str, Any], expected: tuple[str, ...]) -> None:
    write_encoder(tmp_path, "bert", "Model")
    write_modules(tmp_path, pooling)
    assert config_of(tmp_path).pooling == expected
    assert config_of(tmp_path).normalize


def test_dense_layers_follow_the_pooling(tmp_path: Path) -> None:
    write_encoder(tmp_path, "bert", "Model")
    layers = write_modules(
        tmp_path, {"pooling_mode": ["mean", "cls"]}, dense=[(20, "Tanh", True), (12, "Identity", False)]
    )
    imported = sentence_encoder.import_directory(tmp_path, Options())
    pooled = torch.randn(5, 48, generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        expected = layers[1](layers[0](pooled).tanh())
        torch.testing.assert_close(model_of(imported).project(pooled), expected)


def test_an_encoder_in_its_own_folder_is_read(tmp_path: Path) -> None:
    write_encoder(tmp_path / "0_Transformer", "distilbert", "Model")
    write_modules(tmp_path, {"pooling_mode": "mean"}, transformer="0_Transformer")
    (tmp_path / "0_Transformer" / "sentence_distilbert_config.json").write_text('{"max_seq_length": 20}')
    assert sentence_encoder.recognizes(tmp_path)
    assert sentence_encoder.import_directory(tmp_path, Options()).config.max_tokens == 20


def test_texts_are_read_in_lower_case_where_the_settings_say_so(tmp_path: Path) -> None:
    write_encoder(tmp_path, "roberta", "Model")
    (tmp_path / "sentence_bert_config.json").write_text('{"max_seq_length": 32, "do_lower_case": true}')
    tokenizer = sentence_encoder.import_directory(tmp_path, Options()).tokenizer
    assert tokenizer.encode("A Dull ENDING").ids == original_ids(tmp_path, "a dull ending")


def test_prompts_are_those_of_the_model_and_those_that_are_named(tmp_path: Path) -> None:
    write_encoder(tmp_path, "bert", "Model")
    write_modules(tmp_path, {"pooling_mode": "mean", "include_prompt": False})
    said = {"prompts": {"query": "ask: ", "document": ""}, "default_prompt_name": "query"}
    (tmp_path / "config_sentence_transformers.json").write_text(json.dumps(said))
    config = config_of(tmp_path, prompts={"query": "query: ", "passage": "passage: "})
    assert config.prompts == {"query": "query: ", "document": "", "passage": "passage: "}
    assert (config.default_prompt, config.pool_prompt) == ("query", False)
    with pytest.raises(ModelImportError, match=rf"prompt 'query' has \d+ tokens, .* at most {N_POSITIONS}"):
        config_of(tmp_path, prompts={"query": "very " * N_POSITIONS})


def test_a_prompt_without_a_text_is_refused(tmp_path: Path) -> None:
    result = CliRunner().invoke(__main__.app, ["import", str(tmp_path), str(tmp_path / "c"), "--prompt", "query"])
    assert result.exit_code == 2
    assert "'query' must be NAME=TEXT" in result.output


@pytest.mark.parametrize(
    ("modules", "message"),
    [
        (["Transformer"], "has no Pooling"),
        (["Transformer", "Normalize"], "has Normalize instead of Pooling"),
        (["Transformer", "Pooling", "CNN"], "has CNN instead of Dense or Normalize"),
        (["Transformer", "Pooling", "Normalize", "Dense"], "has Dense instead of nothing"),
        (["WordEmbeddings", "Pooling"], "begins with WordEmbeddings"),
    ],
)
def test_other_modules_are_refused(tmp_path: Path, modules: list[str], message: str) -> None:
    write_encoder(tmp_path, "bert", "Model")
    write_modules(tmp_path, {"pooling_mode": "mean"})
    listed = [
        {"type": f"sentence_transformers.models.{kind}", "path": "1_Pooling" * (i > 0)}
        for i, kind in enumerate(modules)
    ]
    (tmp_path / "modules.json").write_text(json.dumps(listed))
    assert sentence_encoder.recognizes(tmp_path)
    with pytest.raises(ModelImportError, match=message):
        sentence_encoder.import_directory(tmp_path, Options())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"activation_function": "torch.nn.modules.activation.ReLU"},
            "activation ReLU is not supported; Tanh and Identity are",
        ),
        ({"use_residual": True}, "2_Dense has a residual connection"),
        ({"module_input_name": "token_embeddings"}, "2_Dense is a layer over every token"),
    ],
)
def test_other_layers_are_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    write_encoder(tmp_path, "bert", "Model")
    write_modules(tmp_path, {"pooling_mode": "mean"}, dense=[(20, "Tanh", True)])
    settings = json.loads((tmp_path / "2_Dense" / "config.json").read_text())
    (tmp_path / "2_Dense" / "config.json").write_text(json.dumps(settings | changes))
    with pytest.raises(ModelImportError, match=message):
        sentence_encoder.import_directory(tmp_path, Options())


def test_what_leads_out_of_the_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "modules.json").write_text(json.dumps([{"type": "a.Transformer", "path": "../other"}]))
    with pytest.raises(ModelImportError, match=r"outside of the directory: \.\./other"):
        sentence_encoder.import_directory(tmp_path, Options())


def without_architectures(directory: Path) -> Path:
    config = json.loads((directory / "config.json").read_text())
    (directory / "config.json").write_text(json.dumps({k: config[k] for k in config.keys() - {"architectures"}}))
    return directory


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kind", ["Model", "ForMaskedLM"])
def test_an_encoder_of_which_nothing_says_what_it_is_for_is_read(tmp_path: Path, family: str, kind: str) -> None:
    write_encoder(tmp_path, family, kind)
    imported = sentence_encoder.import_directory(without_architectures(tmp_path), Options())
    assert imported.config.model.task == "embedding"


@pytest.mark.parametrize("family", FAMILIES)
def test_a_classifier_of_which_nothing_says_so_is_known_by_its_head(tmp_path: Path, family: str) -> None:
    write_encoder(tmp_path, family, "ForSequenceClassification")
    expected = import_directory(tmp_path, Options())
    found = import_directory(without_architectures(tmp_path), Options())
    assert found.config == expected.config
    assert all(torch.equal(found.weights[name], weight) for name, weight in expected.weights.items())


def test_encoders_with_another_head_and_classifiers_are_none(tmp_path: Path) -> None:
    write_encoder(tmp_path / "tagger", "bert", "ForTokenClassification")
    with pytest.raises(ModelImportError, match="BertForTokenClassification has a head that is not supported"):
        sentence_encoder.import_directory(tmp_path / "tagger", Options())
    with pytest.raises(ModelImportError, match=r"the weights have a head \(classifier\.\w+\), .* no `architectures`"):
        sentence_encoder.import_directory(without_architectures(tmp_path / "tagger"), Options())
    write_encoder(tmp_path / "classifier", "bert", "ForSequenceClassification")
    assert not sentence_encoder.recognizes(tmp_path / "classifier")
    assert not sentence_encoder.recognizes(tmp_path)


def test_the_dimensions_to_which_embeddings_may_be_cut_are_named_by_the_files_or_by_an_option(tmp_path: Path) -> None:
    write_encoder(tmp_path, "bert", "Model")
    assert config_of(tmp_path).cut_to == ()
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"matryoshka_dimensions": [16, 8, 24]}))
    assert config_of(tmp_path).cut_to == (8, 16)
    assert config_of(tmp_path, dimensions=(12,)).cut_to == (12,)
    with pytest.raises(ModelImportError, match=r"embeddings have 24 dimensions and cannot be cut to \[25\]"):
        config_of(tmp_path, dimensions=(25,))
    path.write_text(json.dumps(json.loads(path.read_text()) | {"matryoshka_dimensions": None, "is_matryoshka": True}))
    (note,) = sentence_encoder.import_directory(tmp_path, Options()).notes
    assert note.endswith("name them with `--dimensions`")


def test_the_dimensions_of_the_command_are_numbers(tmp_path: Path) -> None:
    write_encoder(tmp_path / "theirs", "bert", "Model")
    command = ["import", str(tmp_path / "theirs"), str(tmp_path / "ours"), "--dimensions"]
    assert "numbers with commas" in CliRunner().invoke(__main__.app, [*command, "a few"]).output
    assert CliRunner().invoke(__main__.app, [*command, "8, 16"]).exit_code == 0
    assert load_config(tmp_path / "ours").model.cut_to == (8, 16)  # type: ignore[union-attr]
