"""Recurrent translators and language models through the commands: train, evaluate, generate, and refusals."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from typer.testing import CliRunner

from model.__main__ import app
from model.alignment.heads import compare_heads
from model.checkpoint import CheckpointError, load_checkpoint
from model.config import CONFIG, ConfigError, load_config, save_config
from model.evaluation.scoring import classify, translate
from model.recipe import Experiment, load_recipe
from model.training.train import train
from tests.model.tiny_configs import LANGUAGE_MODEL, RECURRENT, configured
from tests.model.tiny_training import PAIRS, WARNINGS, lines, train_until_killed

SMALL = {"vocab_size": 300, "n_decoder_layers": 2, "dropout": 0.0}
ANCESTOR = RECURRENT | SMALL | {"n_encoder_layers": 1}
MODELS: dict[str, dict[str, Any]] = {
    "rnn-before": ANCESTOR | {"cell": "rnn", "attention": "before_cell"},
    "gru-after": ANCESTOR,
    "gru-none": ANCESTOR | {"attention": "none"},
    "lstm-after": ANCESTOR | {"cell": "lstm"},
    "lstm-none": ANCESTOR | {"cell": "lstm", "attention": "none"},
    "language-model": LANGUAGE_MODEL | SMALL | {"norm": "pre"},
}
pytestmark = [pytest.mark.slow, *WARNINGS]


def experiment_of(name: str) -> Experiment:
    data = {"train": [{"file": "pairs.tsv", "licence": "ours"}], "test": [{"file": "test.tsv", "licence": "ours"}]}
    schedule = {"max_steps": 150, "checkpoint_every_steps": 50, "warmup_steps": 5, "decay_steps": 50}
    return configured(MODELS[name], name, data, schedule)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("data")
    (directory / "pairs.tsv").write_text(lines(PAIRS))
    (directory / "test.tsv").write_text("a dog runs\tun chien dort mal\na cat\tun chat court mal\n")
    return directory


@pytest.fixture(scope="module")
def trained(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with a run and a checkpoint of each model."""
    directory = tmp_path_factory.mktemp("trained")
    for name in MODELS:
        train(experiment_of(name), data, directory / "runs" / name, directory / name)
    return directory


@pytest.mark.parametrize("name", MODELS)
def test_training_brings_the_loss_down(trained: Path, name: str) -> None:
    events = EventAccumulator(str(trained / "runs" / name))
    events.Reload()
    [*_, loss] = (event.value for event in events.Scalars("train_loss"))
    if name == "language-model":
        # Two of a sentence's four tokens are one of two words, the others are certain.
        assert loss == pytest.approx(math.log(2) / 2, abs=0.02)
    else:
        assert loss < 0.1 * math.log(MODELS[name]["vocab_size"])


@pytest.mark.parametrize("name", ["rnn-before", "gru-after", "lstm-after"])
def test_a_tiny_recurrent_translator_learns_its_sentences(trained: Path, name: str) -> None:
    translations = translate(load_checkpoint(trained / name), [source for source, _ in PAIRS])
    assert [text for text, _ in translations] == [target for _, target in PAIRS]


def test_a_killed_run_resumed_ends_where_an_unbroken_one_ends(data: Path, trained: Path, tmp_path: Path) -> None:
    experiment = experiment_of("language-model")
    train_until_killed(60, experiment, data, tmp_path / "run", tmp_path / "out")
    train(experiment, data, tmp_path / "run", tmp_path / "out")
    paths = (trained / experiment.name, tmp_path / "out")
    unbroken, resumed = (load_checkpoint(path).model.state_dict() for path in paths)
    for key, tensor in unbroken.items():
        torch.testing.assert_close(resumed[key], tensor)


def test_a_language_model_goes_on_as_its_corpus_does(trained: Path) -> None:
    for text in ("un chat", "un chien"):
        shown = CliRunner().invoke(app, ["generate", str(trained / "language-model"), text, "--max-tokens", "12"])
        assert shown.exit_code == 0
        assert shown.stdout.strip() in {target for _, target in PAIRS if target.startswith(text)}


def test_sampling_on_the_command_line_is_repeated_by_its_seed(trained: Path) -> None:
    def sampled(seed: int) -> str:
        options = ["--max-tokens", "12", "--temperature", "3", "--top-k", "50", "--seed", str(seed)]
        return CliRunner().invoke(app, ["generate", str(trained / "language-model"), "un", *options]).stdout

    assert sampled(1) == sampled(1)
    assert len({sampled(seed) for seed in range(5)}) > 1


@pytest.mark.parametrize(
    ("name", "metrics", "of_card"),
    [
        ("rnn-before", ["bleu", "chrf"], "2 decoder layers of RNN cells with additive attention before the cell"),
        ("gru-after", ["bleu", "chrf"], "2 decoder layers of GRU cells with additive attention after the cell"),
        ("lstm-none", ["bleu", "chrf"], "2 decoder layers of LSTM cells without attention"),
        ("language-model", ["perplexity", "bits_per_byte"], "2 decoder layers without an encoder"),
    ],
)
def test_evaluation_scores_them_and_writes_their_cards(
    trained: Path, data: Path, name: str, metrics: list[str], of_card: str
) -> None:
    done = CliRunner().invoke(app, ["evaluate", str(trained / name), "--data", str(data)], catch_exceptions=False)
    assert done.exit_code == 0
    scores = json.loads((trained / name / "evaluation.json").read_text())
    # The suite of failure cases is of translations from English to French.
    assert list(scores) == (["test"] if name == "language-model" else ["test", "cases", "confidence"])
    assert list(scores["test"]) == metrics
    card = (trained / name / "README.md").read_text()
    assert of_card in card
    assert "## Limits" in card
    (trained / name / "README.md").unlink()
    assert CliRunner().invoke(app, ["card", str(trained / name)]).exit_code == 0
    assert (trained / name / "README.md").read_text() == card, "written anew from the files beside it"


@pytest.mark.parametrize("name", ["gru-after", "language-model"])
def test_what_they_cannot_do_is_refused_in_a_sentence(trained: Path, data: Path, name: str) -> None:
    loaded, task = load_checkpoint(trained / name), MODELS[name]["task"]
    with pytest.raises(CheckpointError, match=f"{name} is no Transformer for translation: its task is {task}"):
        compare_heads(loaded, load_recipe(trained / name).data, data, 2)
    with pytest.raises(CheckpointError, match=f"{name} does not classify: its task is {task}"):
        classify(loaded, ["a dog"])


def test_a_language_model_does_not_translate(trained: Path) -> None:
    with pytest.raises(CheckpointError, match="language-model does not translate: its task is language_model"):
        translate(load_checkpoint(trained / "language-model"), ["a dog"])


@pytest.mark.parametrize(("key", "value"), [("cell", "elman"), ("attention", "dot"), ("n_heads", 3), ("d_model", 25)])
def test_a_wrong_recurrent_configuration_is_refused_with_its_key(tmp_path: Path, key: str, value: object) -> None:
    save_config(tmp_path, experiment_of("gru-after"))
    config = yaml.safe_load((tmp_path / CONFIG).read_text())
    config["model"][key] = value
    (tmp_path / CONFIG).write_text(yaml.safe_dump(config))
    with pytest.raises(ConfigError, match=key):
        load_config(tmp_path)
