"""Training of tiny models on a few sentences of our own, through the public `train`."""

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from manifest.layout import WEIGHTS
from model.checkpoint import TOKEN_SUFFIXES, CheckpointError, load_checkpoint, load_training
from model.config import ConfigError
from model.data import DataError
from model.evaluation.scoring import classify, translate
from model.networks.transformer import Transformer
from model.recipe import DataSource, Experiment, load_recipe
from model.training import precision
from model.training.precision import usable_precision
from model.training.schedule import learning_rate_factor
from model.training.train import free_cores, train
from tests.model.tiny_configs import TRANSLATOR, configured
from tests.model.tiny_training import (
    PAIRS,
    REVIEWS,
    SCHEDULE,
    WARNINGS,
    classifier_experiment,
    lines,
    train_until_killed,
)

pytestmark = WARNINGS


def translation_experiment(**training: Any) -> Experiment:
    model = {"vocab_size": 300, "n_encoder_layers": 2, "n_decoder_layers": 1, "dropout": 0.0, "norm": "pre"}
    data = {"train": [{"file": "pairs.tsv", "licence": "ours"}]}
    muon = {"optimizer": "muon", "muon_learning_rate": 0.02}
    return configured(TRANSLATOR | model, data=data, training=SCHEDULE | muon | training)


def write_data(directory: Path) -> Path:
    (directory / "pairs.tsv").write_text(lines(PAIRS))
    (directory / "reviews.tsv").write_text(lines(REVIEWS * 4))
    return directory


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_data(tmp_path)


@pytest.fixture(scope="module")
def trained_translator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = write_data(tmp_path_factory.mktemp("translator"))
    train(translation_experiment(), directory, directory / "run", directory / "out")
    return directory / "out"


@pytest.fixture(scope="module")
def trained_classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = write_data(tmp_path_factory.mktemp("classifier"))
    train(classifier_experiment(), directory, directory / "run", directory / "out")
    return directory / "out"


def test_a_tiny_translator_learns_its_sentences(trained_translator: Path) -> None:
    checkpoint = load_checkpoint(trained_translator)
    translations = translate(checkpoint, [source for source, _ in PAIRS])
    assert [text for text, _ in translations] == [target for _, target in PAIRS]
    assert json.loads((trained_translator / "training.json").read_text())["steps"] == 60
    assert isinstance(checkpoint.model, Transformer)
    can_be_written = checkpoint.model.is_target_token
    assert len(can_be_written) > 64 == can_be_written.sum(), "those of the targets, rounded up"
    for _, target in PAIRS:
        assert can_be_written[checkpoint.tokenizer.encode(target).ids].all()


def test_progress_is_printed_where_there_is_no_terminal(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(translation_experiment(max_steps=2, checkpoint_every_steps=1), data, data / "run", data / "out")
    progress = [line for line in capsys.readouterr().out.splitlines() if line.startswith("step ")]
    assert len(progress) == 2, "the first step, and the last"
    assert re.fullmatch(r"step 2 of 2: loss \d+\.\d{3}, [\d,]+ tokens/s, 0 minutes left", progress[-1])


@pytest.mark.parametrize(
    ("n_cores", "load", "expected"), [(8, 0.2, 8), (8, 3.1, 5), (2, 1.9, 1), (2, 30.0, 1), (1, 0.0, 1)]
)
def test_a_run_uses_the_cores_that_have_nothing_to_do(
    monkeypatch: pytest.MonkeyPatch, n_cores: int, load: float, expected: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(n_cores)), raising=False)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    assert free_cores() == expected


LICENCES = {"pairs": "MIT", "captions": "CC BY-NC-SA 4.0", "news": "free for research use", "blog": "no formal licence"}


def test_corpora_that_are_not_for_commercial_use_can_be_left_out(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in LICENCES:
        (data / f"{name}.tsv").write_text(lines(PAIRS))
    sources = [DataSource(file=f"{name}.tsv", licence=licence) for name, licence in LICENCES.items()]
    experiment = translation_experiment(max_steps=1, checkpoint_every_steps=1)

    def of(*chosen: DataSource) -> Experiment:
        return experiment.model_copy(update={"data": experiment.data.model_copy(update={"train": chosen})})

    train(of(*sources), data, tmp_path / "run", tmp_path / "out", commercial=True)
    assert "not for commercial use: captions.tsv, news.tsv, blog.tsv." in capsys.readouterr().out
    assert load_training(tmp_path / "out")["licences"] == {"pairs.tsv": "MIT"}
    assert [source.file for source in load_recipe(tmp_path / "out").data.train] == ["pairs.tsv"]
    with pytest.raises(DataError, match="no corpus of the recipe is for commercial use"):
        train(of(*sources[1:]), data, tmp_path / "none", tmp_path / "none", commercial=True)

    train(of(*sources), data, tmp_path / "all", tmp_path / "all-out")
    with pytest.raises(ConfigError, match=r"unlike captions\.tsv, news\.tsv, blog\.tsv"):
        train(of(*sources), data, tmp_path / "more", tmp_path / "more", tmp_path / "all-out", commercial=True)


@pytest.mark.parametrize(("bf16_seconds", "used"), [(1.0, "bf16-mixed"), (3.0, "32-true")])
def test_bf16_is_for_processors_on_which_it_is_faster(
    data: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, bf16_seconds: float, used: str
) -> None:
    seconds = {torch.bfloat16: bf16_seconds, torch.float32: 2.0}
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    monkeypatch.setattr(precision, "_product_seconds", seconds.__getitem__)
    monkeypatch.setattr(precision, "bf16_is_faster", precision.bf16_is_faster.__wrapped__)
    experiment = translation_experiment(max_steps=1, checkpoint_every_steps=1, precision="bf16-mixed")
    train(experiment, data, data / "run", data / "out")
    assert load_training(data / "out")["precision"] == used
    assert caplog.text.count("not faster on this machine") == (used == "32-true")
    assert usable_precision("32-true") == "32-true"


def test_a_share_of_the_final_weights_may_be_that_of_the_first(
    trained_translator: Path, data: Path, tmp_path: Path
) -> None:
    for share in (0.0, 0.75):
        experiment = translation_experiment(max_steps=5, checkpoint_every_steps=5)
        train(experiment, data, tmp_path / f"run {share}", tmp_path / f"{share}", trained_translator, start_share=share)
    paths = (trained_translator, tmp_path / "0.0", tmp_path / "0.75")
    first, last, mixed = (load_checkpoint(path).model.state_dict() for path in paths)
    n_pieces = load_checkpoint(trained_translator).tokenizer.get_vocab_size()
    for name, weight in first.items():
        expected = 0.75 * weight + 0.25 * last[name] if weight.is_floating_point() else last[name]
        rows = slice(n_pieces if name.endswith(TOKEN_SUFFIXES) else None)  # what is beyond them is random
        torch.testing.assert_close(mixed[name][rows], expected[rows], rtol=0, atol=2e-3)
    assert any((mixed[name] != last[name]).any() for name in first)


def test_training_goes_on_with_the_weights_and_the_tokenizer_of_a_checkpoint(
    trained_translator: Path, data: Path, tmp_path: Path
) -> None:
    more = tmp_path / "more"
    (data / "pairs.tsv").write_text(lines(PAIRS[:2]))
    gently = translation_experiment(max_steps=1, checkpoint_every_steps=1, learning_rate=1e-6, muon_learning_rate=1e-6)
    train(gently, data, tmp_path / "further", more, start=trained_translator)
    translations = translate(load_checkpoint(more), [source for source, _ in PAIRS])
    assert [text for text, _ in translations] == [target for _, target in PAIRS], "it can still write them all"
    facts = json.loads((more / "training.json").read_text())
    assert (facts["steps"], facts["runs"]) == (61, 2)
    assert "began_with" not in facts, "it is the same model, trained further"


def test_a_run_that_is_resumed_where_it_began_does_nothing_twice(data: Path, tmp_path: Path) -> None:
    (data / "other.tsv").write_text(lines(PAIRS))
    out, once = tmp_path / "out", translation_experiment(max_steps=1, checkpoint_every_steps=1)
    train(once, data, tmp_path / "run", out)
    source = DataSource(file="other.tsv", licence="another")
    further = once.model_copy(update={"data": once.data.model_copy(update={"train": (source,)})})
    with pytest.raises(CheckpointError):
        train(further, data, tmp_path / "further", out, start=tmp_path)  # leaves no checkpoint
    weights = []
    for _ in range(2):
        train(further, data, tmp_path / "further", out, start=out, start_share=0.5)
        facts = load_training(out)
        assert (facts["steps"], facts["runs"]) == (2, 2)
        assert facts["licences"] == once.licences() | {"other.tsv": "another"}
        weights.append(load_checkpoint(out).model.state_dict())
    torch.testing.assert_close(*weights, rtol=0, atol=0)


def test_a_run_that_began_without_another_model_does_not_go_on_with_one(data: Path, tmp_path: Path) -> None:
    """It would train nothing more, and not say so."""
    once = translation_experiment(max_steps=1, checkpoint_every_steps=1)
    train(once, data, tmp_path / "run", tmp_path / "run" / "checkpoint")
    with pytest.raises(
        ConfigError, match="holds a run that began without `--start`; name another directory with `--run`"
    ):
        train(once, data, tmp_path / "run", tmp_path / "run" / "checkpoint", start=tmp_path / "run" / "checkpoint")


def test_rewritings_that_apply_to_no_row_are_left_out(data: Path, tmp_path: Path) -> None:
    experiment = translation_experiment(max_steps=1, checkpoint_every_steps=1)
    (source,) = experiment.data.train
    no_numbers = source.model_copy(update={"rewrite": "other_numbers"})
    with_both = experiment.data.model_copy(update={"train": (source, no_numbers)})
    train(experiment.model_copy(update={"data": with_both}), data, tmp_path / "run", tmp_path / "out")
    assert load_training(tmp_path / "out")["steps"] == 1


def test_where_all_rows_are_too_long_it_is_told(data: Path, tmp_path: Path) -> None:
    experiment = translation_experiment()
    short = experiment.model_copy(update={"max_tokens": 1})
    with pytest.raises(DataError, match=r"pairs\.tsv: no training row has at most `max_tokens`, 1, tokens"):
        train(short, data, tmp_path / "run", tmp_path / "out")


def test_training_with_a_new_vocabulary_keeps_the_embeddings_of_pieces_that_both_have(
    trained_translator: Path, data: Path, tmp_path: Path
) -> None:
    more = tmp_path / "more"
    others = [(source.replace("a", "ö"), target.replace("e", "ß")) for source, target in PAIRS]
    (data / "pairs.tsv").write_text(lines(others))
    barely = translation_experiment(max_steps=1, checkpoint_every_steps=1, learning_rate=1e-9, muon_learning_rate=1e-9)
    train(barely, data, tmp_path / "further", more, start=trained_translator, new_vocabulary=True)
    assert "began_with" not in load_training(more)
    before, after = load_checkpoint(trained_translator), load_checkpoint(more)
    old, new = before.tokenizer.get_vocab(), after.tokenizer.get_vocab()
    shared = sorted(old.keys() & new.keys())
    assert 200 < len(shared) < len(new), "bytes, at least, but not everything"
    assert isinstance(after.model, Transformer)
    assert int(after.model.is_target_token.sum()) == 64, "what the other language wrote can no longer be written"
    vectors = [
        checkpoint.model.state_dict()["embedding.tokens.weight"][[vocabulary[piece] for piece in shared]]
        for checkpoint, vocabulary in ((before, old), (after, new))
    ]
    torch.testing.assert_close(*vectors, atol=1e-3, rtol=0)


def test_training_does_not_begin_with_the_weights_of_another_model(
    trained_classifier: Path, data: Path, tmp_path: Path
) -> None:
    with pytest.raises(CheckpointError, match="does not hold the weights of this model"):
        train(translation_experiment(), data, tmp_path / "further", tmp_path / "more", start=trained_classifier)


def test_a_model_tells_which_other_it_began_with_however_often_it_is_trained_further(
    data: Path, tmp_path: Path
) -> None:
    once = translation_experiment(max_steps=1, checkpoint_every_steps=1)
    another = once.model_copy(update={"name": "another"})
    train(once, data, tmp_path / "run", tmp_path / "first")
    train(another, data, tmp_path / "run 2", tmp_path / "second", start=tmp_path / "first", new_vocabulary=True)
    train(another, data, tmp_path / "run 3", tmp_path / "third", start=tmp_path / "second")
    facts = load_training(tmp_path / "third")
    assert (facts["began_with"], facts["new_vocabulary"], facts["runs"]) == (once.name, True, 3)


def test_training_does_not_begin_with_what_training_has_not_left(
    trained_translator: Path, data: Path, tmp_path: Path
) -> None:
    start = shutil.copytree(trained_translator, tmp_path / "start")
    (start / "training.json").unlink()
    with pytest.raises(CheckpointError, match=r"is not a checkpoint: training\.json is missing"):
        train(translation_experiment(), data, tmp_path / "run", tmp_path / "out", start=start)


def test_a_run_that_is_resumed_need_not_be_told_of_its_start_again(
    trained_translator: Path, data: Path, tmp_path: Path
) -> None:
    once = translation_experiment(max_steps=1, checkpoint_every_steps=1)
    for start in (trained_translator, None):
        train(once, data, tmp_path / "run", tmp_path / "out", start=start, start_share=0.5)
        assert load_training(tmp_path / "out")["runs"] == 2


@pytest.mark.parametrize(("new_vocabulary", "told"), [(False, False), (True, True)])
def test_a_share_of_no_weights_is_refused(
    trained_translator: Path, data: Path, tmp_path: Path, new_vocabulary: bool, told: bool
) -> None:
    start = trained_translator if told else None
    with pytest.raises(ConfigError, match="`--start-share` requires `--start`"):
        train(
            translation_experiment(), data, tmp_path / "run", tmp_path / "out", start, new_vocabulary, start_share=0.5
        )


def test_a_classifier_shares_nothing_with_its_start(trained_classifier: Path, data: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="`--start-share` cannot be used for classifiers"):
        train(classifier_experiment(), data, tmp_path / "run", tmp_path / "out", trained_classifier, start_share=0.5)


def test_a_tiny_classifier_learns_its_reviews_and_reads_long_texts_in_windows(trained_classifier: Path) -> None:
    checkpoint = load_checkpoint(trained_classifier)
    bad, good = (text for _, text in REVIEWS)
    scores = classify(checkpoint, [bad, good, " ".join([good] * 40)])
    with pytest.raises(DataError, match="text 2 is empty"):
        classify(checkpoint, [good, ""])
    assert [max(score, key=score.__getitem__) for score in scores] == ["negative", "positive", "positive"]


def test_a_classifier_that_reads_one_form_tells_no_capitals(data: Path, tmp_path: Path) -> None:
    experiment = classifier_experiment().model_dump()
    experiment["model"]["one_form"] = True
    experiment["data"]["validation_fraction"] = 0.25
    train(Experiment.model_validate(experiment), data, tmp_path / "run", tmp_path / "out")
    bad, good = (text for _, text in REVIEWS)
    scores = classify(load_checkpoint(tmp_path / "out"), [bad, good, good.upper()])
    assert [max(score, key=score.__getitem__) for score in scores] == ["negative", "positive", "positive"]
    assert scores[1] == scores[2]


@pytest.mark.slow
def test_a_killed_run_resumed_ends_where_an_unbroken_one_ends(
    trained_translator: Path, data: Path, tmp_path: Path
) -> None:
    train_until_killed(30, translation_experiment(), data, tmp_path / "run", tmp_path / "out")
    train(translation_experiment(), data, tmp_path / "run", tmp_path / "out")
    unbroken, resumed = (load_checkpoint(path).model.state_dict() for path in (trained_translator, tmp_path / "out"))
    for name, tensor in unbroken.items():
        torch.testing.assert_close(resumed[name], tensor)


def test_what_is_tested_on_is_never_trained_on(data: Path, tmp_path: Path) -> None:
    experiment = translation_experiment().model_dump()
    experiment["data"]["test"] = experiment["data"]["train"]
    with pytest.raises(DataError, match="no training rows are left"):
        train(Experiment.model_validate(experiment), data, tmp_path / "run", tmp_path / "out")


def test_weights_that_do_not_fit_are_refused(trained_translator: Path, tmp_path: Path) -> None:
    shutil.copytree(trained_translator, tmp_path / "out")
    weights = (tmp_path / "out" / WEIGHTS).read_bytes()
    (tmp_path / "out" / WEIGHTS).write_bytes(weights[:-100])
    with pytest.raises(CheckpointError, match=r"weights\.safetensors does not hold the weights"):
        load_checkpoint(tmp_path / "out")
    with pytest.raises(CheckpointError, match=r"is not a checkpoint: config\.yaml is missing"):
        load_checkpoint(tmp_path / "absent")


def test_the_rate_rises_holds_and_falls_to_zero() -> None:
    factors = [learning_rate_factor(step, warmup_steps=4, decay_steps=5, max_steps=20) for step in range(21)]
    assert factors[:4] == [0.25, 0.5, 0.75, 1.0]
    assert set(factors[4:16]) == {1.0}
    assert factors[16:] == pytest.approx([0.8, 0.6, 0.4, 0.2, 0.0])
