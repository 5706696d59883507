from pathlib import Path

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from model.batching import ReviewExample, collate_reviews
from model.checkpoint import build_model
from model.config import ClassifierConfig, Config, ConfigError, DataConfig, TransformerConfig, load_config

ROOT = Path(__file__).parents[2]
CONFIGS, CHECKPOINTS = ROOT / "model" / "configs", ROOT / "checkpoints"


@pytest.mark.parametrize("checkpoint", sorted(CHECKPOINTS.iterdir()), ids=lambda path: path.name)
def test_a_shipped_checkpoint_has_the_configuration_of_its_name(checkpoint: Path) -> None:
    assert load_config(checkpoint / "config.yaml") == load_config(CONFIGS / f"{checkpoint.name}.yaml")


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_configuration_in_the_tree_is_valid_and_named_after_its_file(path: Path) -> None:
    assert load_config(path).name == path.stem


def test_the_lectures_own_classifier_is_there() -> None:
    model = load_config(CONFIGS / "lecture-classifier.yaml").model
    assert isinstance(model, ClassifierConfig)
    assert (model.n_encoder_layers, model.d_model, model.n_heads, model.d_ff) == (3, 32, 2, 128)
    assert (model.pooling, model.norm) == ("max", "post")


def test_the_translator_is_deep_in_the_encoder_and_shallow_in_the_decoder() -> None:
    model = load_config(CONFIGS / "translate-en-fr.yaml").model
    assert isinstance(model, TransformerConfig)
    assert model.n_encoder_layers > model.n_decoder_layers


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("d_model: 32", "d_modle: 32", r"d_modle: Extra inputs are not permitted"),
        ("d_model: 32", "d_model: -32", r"d_model: Input should be greater than 0"),
        ("pooling: max", "pooling: sum", r"pooling: Input should be 'max' or 'mean'"),
        ("max_steps: 3000", "max_steps: 3100", r"max_steps 3100 is not a multiple of checkpoint_every_steps 500"),
        ("max_tokens: 256", "max_tokens: 513", r"max_tokens 513 is more than model.max_positions 512 .* padded to 640"),
        ("licence: ", "merge_dropout: 0.1\n      licence: ", r"merge_dropout .* the model's task is classification"),
        ("licence: ", "prefix: 'FR '\n      licence: ", r"prefix .* the model's task is classification"),
        (
            "  train:",
            "  pivot: [{file: p.tsv, licence: ours}]\n  train:",
            r"pivot .* the model's task is classification",
        ),
        ("  train:", "  pivot: [{file: p.tsv, licence: ours, sample: 5}]\n  train:", r"pivot: p\.tsv is read whole"),
        ("licence: ", "prefix: a\n      rewrite: joined\n      licence: ", r"rewrite joined would change the prefix"),
        (
            "licence: ",
            "prefix: a\n      merge_dropout: 0.1\n      licence: ",
            r"merge_dropout 0.1 would change the pre",
        ),
        ("name: ", "name: [", r"not YAML"),
    ],
)
def test_a_wrong_configuration_is_refused_with_its_key(tmp_path: Path, before: str, after: str, message: str) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text((CONFIGS / "lecture-classifier.yaml").read_text(encoding="utf-8").replace(before, after, 1))
    with pytest.raises(ConfigError, match=message):
        load_config(path)


@pytest.mark.parametrize("use", ["train", "validation", "test"])
def test_pairs_that_compare_heads_are_for_nothing_else(use: str) -> None:
    data = load_config(CONFIGS / "translate-ru-en.yaml").data
    assert data.aligned is not None
    with pytest.raises(ValidationError, match=f"aligned: {data.aligned.file} is in {use} too"):
        DataConfig.model_validate(data.model_dump() | {use: [*getattr(data, use), data.aligned]})


def test_a_missing_configuration_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.yaml: no such file"):
        load_config(tmp_path / "absent.yaml")


@pytest.mark.parametrize(("max_tokens", "padded"), [(20, 20), (33, 40), (64, 64), (65, 80)])
def test_the_longest_batch_has_positions_or_the_configuration_is_refused(max_tokens: int, padded: int) -> None:
    """Lengths are rounded up, so that a model of as many positions as `max_tokens` once failed in mid-training."""
    content = load_config(CONFIGS / "lecture-classifier.yaml").model_dump()
    content["data"]["max_tokens"] = max_tokens
    content["model"]["max_positions"] = padded - 1
    with pytest.raises(ValidationError, match=f"is padded to {padded}"):
        Config.model_validate(content)
    content["model"]["max_positions"] = padded
    model = build_model(Config.model_validate(content))
    batch = collate_reviews([ReviewExample(np.full(max_tokens, 5, np.int32), 0)])
    with torch.inference_mode():
        model(batch.ids, batch.lengths)
    assert batch.ids.shape == (1, padded)
