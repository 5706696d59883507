from pathlib import Path

import pytest

from model.config import ClassifierConfig, ConfigError, TransformerConfig, load_config

CONFIGS = Path(__file__).parents[2] / "model" / "configs"


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
        ("name: ", "name: [", r"not YAML"),
    ],
)
def test_a_wrong_configuration_is_refused_with_its_key(tmp_path: Path, before: str, after: str, message: str) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text((CONFIGS / "lecture-classifier.yaml").read_text(encoding="utf-8").replace(before, after, 1))
    with pytest.raises(ConfigError, match=message):
        load_config(path)


def test_a_missing_configuration_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.yaml: no such configuration file"):
        load_config(tmp_path / "absent.yaml")
