"""Classifiers like BERT compute what transformers does, tokens included, or are refused in a sentence."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from model.checkpoint import build_model
from model.importing import bert
from model.importing.imported import ImportedModel, ModelImportError, Options
from model.weights import assign_weights
from tests.model.importing.encoder_checkpoints import (
    FAMILIES,
    N_POSITIONS,
    TEXTS,
    original_ids,
    original_logits,
    original_tokenizer,
    write_encoder,
)

HEAD = "ForSequenceClassification"
NAMES = {"id2label": {0: "bad", 1: "so so", 2: "good"}}


def logits_of(imported: ImportedModel, ids: list[int]) -> torch.Tensor:
    model = build_model(imported.config)
    assign_weights(model, imported.weights)
    with torch.inference_mode():
        found: torch.Tensor = model.eval()(torch.tensor([ids]), torch.tensor([len(ids)]))[0][0]
    return found


def ids_of(imported: ImportedModel, text: str) -> list[int]:
    ids: list[int] = imported.tokenizer.encode(text).ids
    return ids


@pytest.mark.parametrize("family", FAMILIES)
def test_tokens_and_logits_are_those_of_transformers(tmp_path: Path, family: str) -> None:
    original = write_encoder(tmp_path, family, HEAD, **NAMES)
    assert bert.recognizes(tmp_path)
    imported = bert.import_directory(tmp_path, Options(name="mine"))
    assert imported.config.name == "mine"
    assert imported.config.max_tokens == N_POSITIONS
    assert imported.config.model.labels == ("bad", "so so", "good")  # type: ignore[union-attr]
    found = []
    for text in TEXTS:
        ids = ids_of(imported, text)
        assert ids == original_ids(tmp_path, text), text
        expected = original_logits(original, ids[:N_POSITIONS])
        found.append(logits_of(imported, ids[:N_POSITIONS]))
        assert found[-1].tolist() == pytest.approx(expected.tolist(), abs=1e-5)
    assert torch.stack(found).std(dim=0).min() > 0.05, "texts make a difference"


def test_the_id_of_every_special_token_is_known(tmp_path: Path) -> None:
    for family, expected in (
        ("bert", (0, 1, 2, 3)),
        ("roberta", (1, 3, 0, 2)),
        ("xlm-roberta", (1, 3, 0, 2)),
        ("camembert", (1, 3, 5, 6)),
    ):
        write_encoder(tmp_path / family, family, HEAD)
        tokens = bert.import_directory(tmp_path / family, Options()).config.model.special_tokens
        assert (tokens.pad, tokens.unk, tokens.bos, tokens.eos) == expected


def test_weights_stay_as_precise_as_they_are_stored(tmp_path: Path) -> None:
    write_encoder(tmp_path, "bert", HEAD).to(torch.float16).save_pretrained(tmp_path)
    weights = dict(bert.import_directory(tmp_path, Options()).weights)
    assert weights.pop("embedding.encoding").dtype == torch.float32, "which is a sum of two"
    assert weights.pop("embedding.second").dtype == torch.float32, "which is a difference of two"
    assert {tensor.dtype for tensor in weights.values()} == {torch.float16}


def test_older_names_of_norms_are_read(tmp_path: Path) -> None:
    model = write_encoder(tmp_path, "bert", HEAD)
    (tmp_path / "model.safetensors").unlink()
    older = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
        for name, tensor in model.state_dict().items()
    }
    torch.save(
        {**older, "bert.embeddings.position_ids": torch.arange(N_POSITIONS)[None]}, tmp_path / "pytorch_model.bin"
    )
    imported = bert.import_directory(tmp_path, Options())
    ids = ids_of(imported, TEXTS[0])
    assert logits_of(imported, ids).tolist() == pytest.approx(original_logits(model, ids).tolist(), abs=1e-5)


def test_what_the_tokenizer_was_made_for_limits_a_text(tmp_path: Path) -> None:
    write_encoder(tmp_path, "bert", HEAD)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True, "model_max_length": 20}))
    assert bert.import_directory(tmp_path, Options()).config.max_tokens == 20


def test_labels_are_each_by_itself_where_the_model_says_so(tmp_path: Path) -> None:
    write_encoder(tmp_path, "bert", HEAD, problem_type="multi_label_classification", num_labels=1)
    model = bert.import_directory(tmp_path, Options()).config.model
    assert (model.label_activation, model.labels) == ("sigmoid", ("LABEL_0",))  # type: ignore[union-attr]


def change(directory: Path, **changes: Any) -> None:
    config = json.loads((directory / "config.json").read_text())
    (directory / "config.json").write_text(json.dumps(config | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"problem_type": "regression"}, "the model has 3 outputs and `problem_type` regression"),
        ({"hidden_act": "gelu_fast"}, "activation gelu_fast is not supported; relu, gelu,"),
        ({"position_embedding_type": "relative_key"}, "`position_embedding_type` is relative_key; it must be absolute"),
        ({"is_decoder": True}, "the model is a decoder"),
        ({"id2label": {"0": "a", "1": "b"}}, "2 labels in `id2label`, but the weights have 3"),
        ({"id2label": {"0": "a", "1": "b", "2": "a"}}, "`id2label` gives two labels the same name"),
        ({"num_attention_heads": 5}, "`d_model` is 24; it must be a multiple of `n_heads`, 5"),
        ({"num_hidden_layers": 3}, "the weights have no encoder.layer.2"),
        ({"num_hidden_layers": 1}, "which no BERT has"),
        ({"hidden_size": None}, "config.json has no `hidden_size`"),
        ({"hidden_size": "big"}, 'config.json: `hidden_size` is "big"; it must be an integer'),
    ],
)
def test_what_is_not_read_is_refused_in_a_sentence(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    write_encoder(tmp_path, "bert", HEAD, **NAMES)
    change(tmp_path, **changes)
    with pytest.raises(ModelImportError) as told:
        bert.import_directory(tmp_path, Options())
    assert message in str(told.value)


@pytest.mark.parametrize(
    ("family", "settings"),
    [
        ("bert", {"do_lower_case": False}),
        ("bert", {"do_lower_case": False, "tokenizer_class": "PreTrainedTokenizerFast"}),
        ("bert", {"strip_accents": False}),
        ("distilbert", {"strip_accents": None}),
        ("bert", {"tokenize_chinese_chars": False}),
        ("roberta", {"add_prefix_space": True}),
    ],
)
def test_settings_of_a_tokenizer_go_before_its_file(tmp_path: Path, family: str, settings: dict[str, Any]) -> None:
    write_encoder(tmp_path, family, HEAD)
    original = original_tokenizer(tmp_path)
    original.save_pretrained(tmp_path)
    for name in ("vocab.txt", "vocab.json", "merges.txt"):
        (tmp_path / name).unlink(missing_ok=True)
    path = tmp_path / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | settings))
    imported = bert.import_directory(tmp_path, Options())
    for text in TEXTS:
        assert ids_of(imported, text) == original_ids(tmp_path, text), text


@pytest.mark.parametrize("says_how", [False, True])
@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta"])
def test_added_tokens_are_found_in_texts_as_in_transformers(tmp_path: Path, family: str, says_how: bool) -> None:
    n = write_encoder(tmp_path, family, HEAD).config.vocab_size
    write_encoder(tmp_path, family, HEAD, vocab_size=n + 2)
    added = {"covid": n, "Masterpiece": n + 1}
    (tmp_path / "added_tokens.json").write_text(json.dumps(added))
    if says_how:
        path = tmp_path / "tokenizer_config.json"
        settings = json.loads(path.read_text()) if path.is_file() else {}
        flags = {"lstrip": True, "rstrip": False, "single_word": True, "normalized": True, "special": False}
        decoder = {str(i): {"content": token, **flags} for token, i in added.items()}
        path.write_text(json.dumps(settings | {"added_tokens_decoder": decoder}))
    imported = bert.import_directory(tmp_path, Options())
    for text in ["covid is COVID", "a masterpiece, Masterpiece", "a covidcovid"]:
        assert ids_of(imported, text) == original_ids(tmp_path, text), text


@pytest.mark.parametrize(
    ("family", "kind", "files"),
    [
        ("bert", "BertJapaneseTokenizer", "vocab.txt"),
        ("bert", "TokenizersBackend", "vocab.txt"),
        ("roberta", "HerbertTokenizerFast", "vocab.json with merges.txt"),
        ("xlm-roberta", "XLMTokenizer", "sentencepiece.bpe.model"),
    ],
)
@pytest.mark.parametrize("file", ["tokenizer_config.json", "config.json"])
def test_a_tokenizer_of_another_class_is_refused_by_its_name(
    tmp_path: Path, family: str, kind: str, files: str, file: str
) -> None:
    write_encoder(tmp_path, family, HEAD)
    path = tmp_path / file
    path.write_text(json.dumps((json.loads(path.read_text()) if path.is_file() else {}) | {"tokenizer_class": kind}))
    with pytest.raises(
        ModelImportError, match=f"the tokenizer is a {kind.removesuffix('Fast')}, .* be built from {files}"
    ):
        bert.import_directory(tmp_path, Options())


def test_a_missing_or_foreign_tokenizer_is_told(tmp_path: Path) -> None:
    write_encoder(tmp_path, "bert", HEAD)
    words = (tmp_path / "vocab.txt").read_text()
    (tmp_path / "vocab.txt").write_text(words + "more\n")
    with pytest.raises(ModelImportError, match=r"has a token with id \d+, but the model has only \d+ tokens"):
        bert.import_directory(tmp_path, Options())
    (tmp_path / "vocab.txt").unlink()
    with pytest.raises(ModelImportError, match=r"no tokenizer: tokenizer.json, .* is needed"):
        bert.import_directory(tmp_path, Options())
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelImportError, match=r"tokenizer\.json is damaged"):
        bert.import_directory(tmp_path, Options())


def test_an_architecture_may_be_named_without_a_list(tmp_path: Path) -> None:
    write_encoder(tmp_path, "bert", HEAD)
    change(tmp_path, architectures=f"Bert{HEAD}")
    assert bert.recognizes(tmp_path)


def test_other_models_are_not_recognized(tmp_path: Path) -> None:
    assert not bert.recognizes(tmp_path)
    write_encoder(tmp_path, "bert", "Model")
    assert not bert.recognizes(tmp_path)
    change(tmp_path, model_type="electra", architectures=["ElectraForSequenceClassification"])
    assert not bert.recognizes(tmp_path)
