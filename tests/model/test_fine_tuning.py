"""Training of a classifier that starts with an imported encoder."""

from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from model.checkpoint import CheckpointError, initialize_from, load_checkpoint, load_training
from model.config import ClassifierConfig, ConfigError, EmbedderConfig, load_config
from model.evaluation.scoring import classify
from model.importing.families import import_model
from model.importing.imported import Options
from model.recipe import Experiment
from model.training.train import train
from tests.model.importing.encoder_checkpoints import write_encoder
from tests.model.tiny_configs import configured
from tests.model.tiny_training import REVIEWS, SCHEDULE, WARNINGS, lines

pytestmark = WARNINGS

ONE_STEP = {"max_steps": 1, "checkpoint_every_steps": 1, "learning_rate": 1e-6}


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("encoder")
    write_encoder(directory / "bert", "bert", "Model")
    import_model(str(directory / "bert"), directory / "imported", Options(name="bert"))
    return directory / "imported"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "reviews.tsv").write_text(lines(REVIEWS * 4))
    return tmp_path


def experiment_from(encoder: Path, training: dict[str, Any], **model: Any) -> Experiment:
    config = load_config(encoder).model
    assert isinstance(config, EmbedderConfig)
    shared = (EmbedderConfig.model_fields.keys() & ClassifierConfig.model_fields.keys()) - {"task", "pooling"}
    layers = {name: value for name, value in config.model_dump(exclude_unset=True).items() if name in shared}
    labels = ["negative", "positive"]
    head = {"task": "classification", "labels": labels, "pooling": "mean", "one_form": True, "dropout": 0.0}
    source = {"file": "reviews.tsv", "licence": "ours", "labels": {"neg": "negative", "pos": "positive"}}
    data = {"train": [source], "validation_fraction": 0.25}
    return configured(layers | head | model, name="reviews", data=data, training=SCHEDULE | training)


def test_it_has_the_encoder_the_tokenizer_and_the_licence_of_its_start(encoder: Path, data: Path) -> None:
    train(experiment_from(encoder, ONE_STEP), data, data / "run", data / "out", start=encoder)
    before, after = load_checkpoint(encoder), load_checkpoint(data / "out")
    weights = after.model.state_dict()
    for name, weight in before.model.state_dict().items():
        torch.testing.assert_close(weights[name], weight, rtol=0, atol=3e-3)
    assert after.tokenizer.get_vocab() == before.tokenizer.get_vocab()
    facts = load_training(data / "out")
    assert (facts["began_with"], facts["runs"]) == ("bert", 1)
    assert facts["licences"] == {"bert": "not known", "reviews.tsv": "ours"}


def test_it_reads_marks_in_one_form_however_often_it_is_trained_further(encoder: Path, data: Path) -> None:
    once = experiment_from(encoder, ONE_STEP)
    train(once, data, data / "run", data / "first", start=encoder)
    train(once, data, data / "run 2", data / "second", start=data / "first")
    own, first, second = (load_checkpoint(path).tokenizer for path in (encoder, data / "first", data / "second"))
    typed, printed = '"I\'d say"', "\u201cI\u2019d\u3000\uff33\uff21\uff39\u201d"
    assert own.encode(typed).ids != own.encode(printed).ids
    assert own.encode(typed).ids == first.encode(typed).ids == first.encode(printed).ids
    assert first.to_str() == second.to_str()


def test_it_learns_what_its_start_did_not_know(encoder: Path, data: Path) -> None:
    train(experiment_from(encoder, {"learning_rate": 3e-3}), data, data / "run", data / "out", start=encoder)
    scores = classify(load_checkpoint(data / "out"), [text for _, text in REVIEWS])
    assert [max(score, key=score.__getitem__) for score in scores] == ["negative", "positive"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"activation": "relu"}, "`activation` is relu, but bert has gelu"),
        ({"n_heads": 1}, r"`n_heads` is 1, but bert has \d"),
        ({"n_encoder_layers": 3}, "bert does not hold the weights of this model"),
        ({"vocab_size": 5}, "bert does not hold the weights of this model"),
    ],
)
def test_other_layers_than_its_start_has_are_refused(
    encoder: Path, data: Path, changed: dict[str, Any], message: str
) -> None:
    with pytest.raises(CheckpointError, match=message):
        train(experiment_from(encoder, ONE_STEP, **changed), data, data / "run", data / "out", start=encoder)


def test_a_tokenizer_stays_in_one_form(encoder: Path, data: Path) -> None:
    train(experiment_from(encoder, ONE_STEP), data, data / "run", data / "out", start=encoder)
    other = experiment_from(encoder, ONE_STEP, one_form=False)
    with pytest.raises(ConfigError, match="`one_form` must be true, as in reviews"):
        train(other, data, data / "run 2", data / "again", start=data / "out")


def test_a_piece_in_common_is_needed(encoder: Path, data: Path) -> None:
    start = load_checkpoint(encoder)
    with pytest.raises(CheckpointError, match="bert shares no piece with this vocabulary"):
        initialize_from(start.model, start, Tokenizer(WordLevel({"other": 0})))
