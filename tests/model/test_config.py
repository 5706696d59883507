from pathlib import Path

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from model.batching import ReviewExample, collate_reviews
from model.checkpoint import build_model
from model.config import CONFIG, ClassifierConfig, Config, ConfigError, TransformerConfig, load_config
from model.recipe import RECIPE, DataConfig, load_experiment, load_recipe
from tests.model.tiny_configs import CLASSIFIER, configured

ROOT = Path(__file__).parents[2]
CONFIGS, ARTIFACTS = ROOT / "model" / "configs", ROOT / "artifacts"


EXPERIMENTS = sorted(path.parent for top in (ARTIFACTS, CONFIGS) for path in top.rglob(CONFIG))


@pytest.mark.parametrize("directory", EXPERIMENTS, ids=lambda path: path.name)
def test_every_model_in_the_tree_has_a_valid_configuration_and_recipe_and_the_name_of_its_directory(
    directory: Path,
) -> None:
    name = directory.name if directory.parent in (ARTIFACTS, CONFIGS) else f"{directory.parent.name}-{directory.name}"
    assert load_experiment(directory).name == name


def test_the_lectures_own_classifier_is_there() -> None:
    model = load_config(CONFIGS / "lecture-classifier").model
    assert isinstance(model, ClassifierConfig)
    assert (model.n_encoder_layers, model.d_model, model.n_heads, model.d_ff) == (3, 32, 2, 128)
    assert (model.pooling, model.norm) == ("max", "post")


def test_the_translator_is_deep_in_the_encoder_and_shallow_in_the_decoder() -> None:
    model = load_config(ARTIFACTS / "translate-en-fr").model
    assert isinstance(model, TransformerConfig)
    assert model.n_encoder_layers > model.n_decoder_layers


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("d_model: 32", "d_modle: 32", r"d_modle: Extra inputs are not permitted"),
        ("d_model: 32", "d_model: -32", r"d_model: Input should be greater than 0"),
        ("pooling: max", "pooling: sum", r"pooling: Input should be 'max', 'mean', 'first' or 'mean_states'"),
        ("max_steps: 3000", "max_steps: 3100", r"3100; it must be a multiple of `checkpoint_every_steps`, 500"),
        ("max_tokens: 256", "max_tokens: 513", r"`max_tokens` is 513: .* padded to 640, .* 512, `model.max_positions`"),
        ("licence: ", "merge_dropout: 0.1\n      licence: ", r"`merge_dropout` .* the task is classification"),
        ("name: ", "name: [", r"not YAML"),
    ],
)
def test_a_wrong_configuration_is_refused_with_its_key(tmp_path: Path, before: str, after: str, message: str) -> None:
    for file in (CONFIG, RECIPE):
        content = (CONFIGS / "lecture-classifier" / file).read_text(encoding="utf-8")
        (tmp_path / file).write_text(content.replace(before, after, 1))
    with pytest.raises(ConfigError, match=message):
        load_experiment(tmp_path)


@pytest.mark.parametrize("use", ["train", "validation", "test"])
def test_pairs_that_compare_heads_are_for_nothing_else(use: str) -> None:
    data = load_recipe(ARTIFACTS / "translate-ru-en").data
    assert data.aligned is not None
    aligned = data.aligned.model_copy(update={"kind": "news"})
    with pytest.raises(ValidationError, match=f"`aligned`: {aligned.file} must not be in `{use}` too"):
        DataConfig.model_validate(data.model_dump() | {use: [*getattr(data, use), aligned]})


@pytest.mark.parametrize("use", ["validation", "test"])
def test_a_text_with_several_labels_is_for_training_alone(use: str) -> None:
    unsure = {"file": "remarks.tsv", "licence": "ours", "labels": {"any": ["negative", "positive"]}}
    with pytest.raises(ValidationError, match=r"remarks\.tsv: a label with several names can only be trained on"):
        configured(CLASSIFIER, data={"train": [unsure], use: [unsure]})


def test_a_classifier_of_each_label_by_itself_is_not_trained() -> None:
    with pytest.raises(ValidationError, match="`label_activation` must be softmax"):
        configured(CLASSIFIER | {"label_activation": "sigmoid"})


def test_a_missing_configuration_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"config\.yaml: no such file"):
        load_config(tmp_path)


@pytest.mark.parametrize(("max_tokens", "padded"), [(20, 20), (33, 40), (64, 64), (65, 80)])
def test_the_longest_batch_has_positions_or_the_configuration_is_refused(max_tokens: int, padded: int) -> None:
    """Lengths are rounded up, so a model with only `max_tokens` positions once failed during training."""
    content = load_config(CONFIGS / "lecture-classifier").model_dump()
    content["max_tokens"] = max_tokens
    content["model"]["max_positions"] = padded - 1
    with pytest.raises(ValidationError, match=f"is padded to {padded}"):
        Config.model_validate(content)
    content["model"]["max_positions"] = padded
    model = build_model(Config.model_validate(content))
    batch = collate_reviews([ReviewExample(np.full(max_tokens, 5, np.int32), 0)])
    with torch.inference_mode():
        model(batch.ids, batch.lengths)
    assert batch.ids.shape == (1, padded)
