"""Training of tiny models on a few sentences of our own, through the public `train`."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from model.batching import ReviewExample, collate_masked
from model.checkpoint import (
    OF_TOKENS,
    WEIGHTS,
    CheckpointError,
    average_weights,
    build_model,
    load_checkpoint,
    load_training,
)
from model.config import ClassifierConfig, Config, ConfigError, DataSource, NGramConfig, Part
from model.data import DataError
from model.evaluation.scoring import classify, translate
from model.networks.ngrams import NGramLogits
from model.networks.transformer import Transformer, TransformerClassifier
from model.training import parts, precision
from model.training.examples import prepare, prepare_pretraining, prepare_unlabelled
from model.training.parts import sure_labels
from model.training.precision import usable_precision
from model.training.schedule import learning_rate_factor
from model.training.train import train
from tests.model.tiny_configs import CLASSIFIER, TRANSLATOR, configured
from tests.model.tiny_training import PAIRS, WARNINGS, lines, train_until_killed

REVIEWS = [("neg", "a bad and boring film"), ("pos", "a good and funny film")]
SCHEDULE = {"max_steps": 60, "checkpoint_every_steps": 20, "warmup_steps": 5, "decay_steps": 20}
pytestmark = WARNINGS


def translation_config(**training: Any) -> Config:
    model = {"vocab_size": 300, "n_encoder_layers": 2, "n_decoder_layers": 1, "dropout": 0.0, "norm": "pre"}
    data = {"train": [{"file": "pairs.tsv", "licence": "ours"}]}
    muon = {"optimizer": "muon", "muon_learning_rate": 0.02}
    return configured(TRANSLATOR | model, data=data, training=SCHEDULE | muon | training)


def classifier_config() -> Config:
    model = {"vocab_size": 300, "n_encoder_layers": 1, "labels": ["negative", "positive"], "pooling": "mean"}
    labels = {"neg": "negative", "pos": "positive"}
    data = {"train": [{"file": "reviews.tsv", "licence": "ours", "labels": labels}]}
    return configured(CLASSIFIER | model, data=data, training=SCHEDULE | {"token_dropout": 0.1})


def write_data(directory: Path) -> Path:
    (directory / "pairs.tsv").write_text(lines(PAIRS))
    (directory / "reviews.tsv").write_text(lines(REVIEWS * 4))
    return directory


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_data(tmp_path)


@pytest.fixture(scope="module")
def trained_translator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint that training leaves."""
    directory = write_data(tmp_path_factory.mktemp("translator"))
    train(translation_config(), directory, directory / "run", directory / "out")
    return directory / "out"


@pytest.fixture(scope="module")
def trained_classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint that training leaves."""
    directory = write_data(tmp_path_factory.mktemp("classifier"))
    train(classifier_config(), directory, directory / "run", directory / "out")
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


@pytest.mark.parametrize(("bf16_seconds", "used"), [(1.0, "bf16-mixed"), (3.0, "32-true")])
def test_bf16_is_for_processors_on_which_it_is_faster(
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    bf16_seconds: float,
    used: str,
) -> None:
    seconds = {torch.bfloat16: bf16_seconds, torch.float32: 2.0}
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    monkeypatch.setattr(precision, "_product_seconds", seconds.__getitem__)
    monkeypatch.setattr(precision, "bf16_is_faster", precision.bf16_is_faster.__wrapped__)
    config = translation_config(max_steps=1, checkpoint_every_steps=1, precision="bf16-mixed")
    train(config, data, tmp_path / "run", tmp_path / "out")
    assert load_training(tmp_path / "out")["precision"] == used
    assert caplog.text.count("not faster here") == (used == "32-true")
    assert usable_precision("32-true") == "32-true"


def test_a_share_of_the_final_weights_may_be_that_of_the_first(
    trained_translator: Path, data: Path, tmp_path: Path
) -> None:
    for share in (0.0, 0.75):
        config = translation_config(max_steps=5, checkpoint_every_steps=5)
        train(config, data, tmp_path / f"run {share}", tmp_path / f"{share}", trained_translator, start_share=share)
    paths = (trained_translator, tmp_path / "0.0", tmp_path / "0.75")
    first, last, mixed = (load_checkpoint(path).model.state_dict() for path in paths)
    n_pieces = load_checkpoint(trained_translator).tokenizer.get_vocab_size()
    for name, weight in first.items():
        expected = 0.75 * weight + 0.25 * last[name] if weight.is_floating_point() else last[name]
        rows = slice(n_pieces if name.endswith(OF_TOKENS) else None)  # what is beyond them is random
        torch.testing.assert_close(mixed[name][rows], expected[rows], rtol=0, atol=2e-3)
    assert any((mixed[name] != last[name]).any() for name in first)


def test_training_goes_on_with_the_weights_and_the_tokenizer_of_a_checkpoint(
    trained_translator: Path, data: Path, tmp_path: Path
) -> None:
    more = tmp_path / "more"
    (data / "pairs.tsv").write_text(lines(PAIRS[:2]))
    gently = translation_config(max_steps=1, checkpoint_every_steps=1, learning_rate=1e-6, muon_learning_rate=1e-6)
    train(gently, data, tmp_path / "further", more, start=trained_translator)
    translations = translate(load_checkpoint(more), [source for source, _ in PAIRS])
    assert [text for text, _ in translations] == [target for _, target in PAIRS], "it can still write them all"
    facts = json.loads((more / "training.json").read_text())
    assert (facts["steps"], facts["runs"]) == (61, 2)
    assert "began_with" not in facts, "it is the same model, trained further"


def test_a_run_that_is_resumed_where_it_began_does_nothing_twice(data: Path, tmp_path: Path) -> None:
    (data / "other.tsv").write_text(lines(PAIRS))
    out, once = tmp_path / "out", translation_config(max_steps=1, checkpoint_every_steps=1)
    train(once, data, tmp_path / "run", out)
    source = DataSource(file="other.tsv", licence="another")
    further = once.model_copy(update={"data": once.data.model_copy(update={"train": (source,)})})
    with pytest.raises(CheckpointError):
        train(further, data, tmp_path / "further", out, start=tmp_path)  # which leaves nothing of it
    weights = []
    for _ in range(2):
        train(further, data, tmp_path / "further", out, start=out, start_share=0.5)
        facts = load_training(out)
        assert (facts["steps"], facts["runs"]) == (2, 2)
        assert facts["licences"] == once.licences() | {"other.tsv": "another"}
        weights.append(load_checkpoint(out).model.state_dict())
    torch.testing.assert_close(*weights, rtol=0, atol=0)


def test_rewritings_that_apply_to_no_row_are_left_out(data: Path, tmp_path: Path) -> None:
    config = translation_config(max_steps=1, checkpoint_every_steps=1)
    (source,) = config.data.train
    no_numbers = source.model_copy(update={"rewrite": "other_numbers"})
    with_both = config.data.model_copy(update={"train": (source, no_numbers)})
    train(config.model_copy(update={"data": with_both}), data, tmp_path / "run", tmp_path / "out")
    assert load_training(tmp_path / "out")["steps"] == 1


def test_where_all_rows_are_too_long_it_is_told(data: Path, tmp_path: Path) -> None:
    config = translation_config()
    short = config.model_copy(update={"data": config.data.model_copy(update={"max_tokens": 1})})
    with pytest.raises(DataError, match=r"pairs\.tsv: no row is left to train on of 1 tokens or fewer"):
        train(short, data, tmp_path / "run", tmp_path / "out")


def test_training_with_a_new_vocabulary_keeps_the_embeddings_of_pieces_that_both_have(
    trained_translator: Path, data: Path, tmp_path: Path
) -> None:
    more = tmp_path / "more"
    others = [(source.replace("a", "ö"), target.replace("e", "ß")) for source, target in PAIRS]
    (data / "pairs.tsv").write_text(lines(others))
    barely = translation_config(max_steps=1, checkpoint_every_steps=1, learning_rate=1e-9, muon_learning_rate=1e-9)
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
        train(translation_config(), data, tmp_path / "further", tmp_path / "more", start=trained_classifier)


def test_a_model_tells_which_other_it_began_with_however_often_it_is_trained_further(
    data: Path, tmp_path: Path
) -> None:
    once = translation_config(max_steps=1, checkpoint_every_steps=1)
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
        train(translation_config(), data, tmp_path / "run", tmp_path / "out", start=start)


def test_a_run_that_is_resumed_need_not_be_told_of_its_start_again(
    trained_translator: Path, data: Path, tmp_path: Path
) -> None:
    once = translation_config(max_steps=1, checkpoint_every_steps=1)
    for start in (trained_translator, None):
        train(once, data, tmp_path / "run", tmp_path / "out", start=start, start_share=0.5)
        assert load_training(tmp_path / "out")["runs"] == 2


@pytest.mark.parametrize(("new_vocabulary", "told"), [(False, False), (True, True)])
def test_a_share_of_no_weights_is_refused(
    trained_translator: Path, data: Path, tmp_path: Path, new_vocabulary: bool, told: bool
) -> None:
    start = trained_translator if told else None
    with pytest.raises(ConfigError, match="--start-share is of the weights and the vocabulary of --start"):
        train(translation_config(), data, tmp_path / "run", tmp_path / "out", start, new_vocabulary, start_share=0.5)


def test_a_classifier_shares_nothing_with_its_start(trained_classifier: Path, data: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--start-share is not for classifiers"):
        train(classifier_config(), data, tmp_path / "run", tmp_path / "out", trained_classifier, start_share=0.5)


def test_a_tiny_classifier_learns_its_reviews_and_reads_long_texts_in_windows(trained_classifier: Path) -> None:
    checkpoint = load_checkpoint(trained_classifier)
    bad, good = (text for _, text in REVIEWS)
    scores = classify(checkpoint, [bad, good, " ".join([good] * 40)])
    with pytest.raises(DataError, match="text 2 has nothing in it"):
        classify(checkpoint, [good, ""])
    assert [max(score, key=score.__getitem__) for score in scores] == ["negative", "positive", "positive"]


def test_n_grams_are_trained_beside_the_encoder_and_weighed_on_what_was_held_out(data: Path, tmp_path: Path) -> None:
    config = classifier_config().model_dump()
    config["model"] |= {"n_grams": {"buckets": 97, "longest": 3}, "lower_case": True}
    config["data"]["validation_fraction"] = 0.25
    (data / "unlabelled.tsv").write_text(lines([("-", text) for _, text in REVIEWS * 4]))
    config["n_gram_training"] = {
        "training": config["training"],
        "unlabelled": [{"file": "unlabelled.tsv", "licence": "ours"}],
    }
    train(Config.model_validate(config), data, tmp_path / "run", tmp_path / "out")
    checkpoint = load_checkpoint(tmp_path / "out")
    assert isinstance(checkpoint.model, TransformerClassifier)
    assert checkpoint.model.n_grams is not None
    assert checkpoint.model.n_grams.weight.abs().max() > 0
    bad, good = (text for _, text in REVIEWS)
    scores = classify(checkpoint, [bad, good, good.upper()])
    assert [max(score, key=score.__getitem__) for score in scores] == ["negative", "positive", "positive"]
    assert scores[1] == scores[2]


N_GRAMS = {"buckets": 97, "longest": 3}
REGIONS = {"width": 12, "detectors": 17, "dropout": 0.0}


def with_regions(data: Path) -> dict[str, Any]:
    """The classifier's configuration with regions beside its encoder, and texts for them."""
    config = classifier_config().model_dump()
    config["model"]["regions"] = REGIONS
    config["data"]["validation_fraction"] = 0.25
    (data / "near.tsv").write_text(lines([("-", text) for _, text in REVIEWS * 60]))
    config["region_training"] = {
        "unlabelled": [{"file": "near.tsv", "licence": "free"}],
        "pretraining": config["training"],
        "training": config["training"],
    }
    return config


def test_regions_are_trained_beside_the_encoder(data: Path, tmp_path: Path) -> None:
    config = Config.model_validate(with_regions(data))
    train(config, data, tmp_path / "run", tmp_path / "out")
    checkpoint = load_checkpoint(tmp_path / "out")
    assert isinstance(checkpoint.model, TransformerClassifier)
    assert checkpoint.model.regions is not None
    labels = []
    for _, text in REVIEWS:
        ids = torch.tensor([checkpoint.tokenizer.encode(text).ids])
        labels.append(checkpoint.model.regions.pooled(ids, torch.tensor([ids.shape[1]])).argmax().item())
    assert labels == [0, 1]
    facts = load_training(tmp_path / "out")
    assert facts["steps"] == 3 * config.training.max_steps
    assert facts["licences"]["near.tsv"] == "free"
    assert "only" not in facts


def test_vectors_of_regions_are_learnt_before_the_labels_alone(data: Path, tmp_path: Path) -> None:
    train(Config.model_validate(with_regions(data)), data, tmp_path / "run", tmp_path / "out")
    last = tmp_path / "run" / "regions" / "pretraining" / "steps" / "last.ckpt"
    learnt = average_weights([last], "model.region_embedding.")["tokens.weight"]
    kept = load_checkpoint(tmp_path / "out").model.state_dict()["regions.embedding.tokens.weight"]
    ratio = (kept * learnt).sum() / (learnt * learnt).sum()
    assert ratio > 1.1  # they were made longer
    torch.testing.assert_close(kept, ratio * learnt, rtol=2e-3, atol=1e-4)


@pytest.fixture
def start_with_parts(data: Path, tmp_path: Path) -> Path:
    """A classifier with n-grams and no regions."""
    config = classifier_config().model_dump()
    config["model"]["n_grams"] = N_GRAMS
    config["n_gram_training"] = {"training": config["training"]}
    train(Config.model_validate(config), data, tmp_path / "start-run", tmp_path / "start")
    return tmp_path / "start"


def only_regions(data: Path) -> Config:
    config = with_regions(data)
    config["model"]["n_grams"] = N_GRAMS
    config["n_gram_training"] = {"training": config["training"]}
    return Config.model_validate(config)


def test_one_part_is_trained_and_the_others_stay(start_with_parts: Path, data: Path, tmp_path: Path) -> None:
    config = only_regions(data)
    train(config, data, tmp_path / "run", tmp_path / "out", start_with_parts, only="regions")
    old, new = (load_checkpoint(path) for path in (start_with_parts, tmp_path / "out"))
    before, after = old.model.state_dict(), new.model.state_dict()
    assert {name for name in after if not name.startswith("regions.")} == before.keys()
    calibrated = ("output.weight", "output.bias", "n_grams.weight", "n_grams.prior")
    for name in before.keys() - set(calibrated):
        n_rows = len(old.tokenizer.get_vocab()) if name.endswith(OF_TOKENS) else len(before[name])
        torch.testing.assert_close(after[name][:n_rows], before[name][:n_rows])
    for name in ("output.weight", "n_grams.weight"):  # but for a factor
        factor = (after[name] * before[name]).sum() / (before[name] * before[name]).sum()
        torch.testing.assert_close(after[name], factor * before[name], rtol=2e-3, atol=1e-4)
    facts = load_training(tmp_path / "out")
    assert facts["only"] == "regions"
    assert facts["steps"] == load_training(start_with_parts)["steps"] + 2 * config.training.max_steps
    train(config, data, tmp_path / "all", tmp_path / "all-out", tmp_path / "out")
    assert "only" not in load_training(tmp_path / "all-out")


def test_a_killed_run_of_one_part_goes_on_with_it_unasked(
    start_with_parts: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = only_regions(data)
    monkeypatch.setattr(parts, "PartClassifier", killed)
    with pytest.raises(KeyboardInterrupt):
        train(config, data, tmp_path / "run", tmp_path / "out", start_with_parts, only="regions")
    monkeypatch.undo()
    with pytest.raises(ConfigError, match="holds a run of regions: name another directory by --run"):
        train(config, data, tmp_path / "run", tmp_path / "out", start_with_parts, only="n_grams")
    train(config, data, tmp_path / "run", tmp_path / "out")
    facts = load_training(tmp_path / "out")
    assert facts["only"] == "regions"
    assert facts["steps"] == load_training(start_with_parts)["steps"] + 2 * config.training.max_steps


def killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_regions_of_another_size_are_trained_anew(data: Path, tmp_path: Path) -> None:
    config = with_regions(data)
    train(Config.model_validate(config), data, tmp_path / "run", tmp_path / "out")
    config["model"]["regions"] = REGIONS | {"width": 14, "detectors": 19}
    train(Config.model_validate(config), data, tmp_path / "other", tmp_path / "out", tmp_path / "out", only="regions")
    assert load_checkpoint(tmp_path / "out").model.state_dict()["regions.detectors.weight"].shape == (19, 14)


@pytest.mark.parametrize(
    ("only", "is_started", "message"),
    [
        ("regions", False, "--only trains one part of --start"),
        ("n_grams", True, "--only n_grams: tiny is no classifier that has n_grams"),
    ],
)
def test_a_part_that_there_is_not_is_refused(
    trained_classifier: Path, data: Path, tmp_path: Path, only: Part, is_started: bool, message: str
) -> None:
    config, start = Config.model_validate(with_regions(data)), trained_classifier if is_started else None
    with pytest.raises(ConfigError, match=message):
        train(config, data, tmp_path / "run", tmp_path / "out", start, only=only)


def test_texts_are_labelled_by_the_n_grams_where_they_are_sure() -> None:
    n_grams = NGramLogits(50, 3, NGramConfig(buckets=97, longest=2))
    n_grams.weight.data[10] = torch.tensor([2.0, 0.0])  # for the second class
    n_grams.weight.data[11] = torch.tensor([-3.0, -3.0])  # for the first
    texts = [np.array(ids, dtype=np.int32) for ids in ([10, 10], [11, 11, 11], [10, 20, 20, 20], [20])]
    sure = sure_labels(n_grams, texts, least_margin=1.0)
    assert {(tuple(example.ids.tolist()), example.label) for example in sure} == {((10, 10), 1), ((11, 11, 11), 0)}


@pytest.mark.parametrize(
    ("part", "section", "training"),
    [("n_grams", N_GRAMS, "n_gram_training"), ("regions", REGIONS, "region_training")],
)
def test_a_part_that_nobody_trains_is_refused(part: str, section: dict[str, Any], training: str) -> None:
    config = classifier_config().model_dump()
    config["model"][part] = section
    with pytest.raises(ValueError, match=training):
        Config.model_validate(config)


@pytest.mark.parametrize(("part", "section"), [("n_grams", N_GRAMS), ("regions", REGIONS)])
def test_a_part_beside_a_maximum_is_refused(part: str, section: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{part} need mean pooling"):
        ClassifierConfig.model_validate(CLASSIFIER | {"pooling": "max", part: section})


def test_pretraining_on_unlabelled_text_leaves_its_encoder_to_the_classifier(data: Path, tmp_path: Path) -> None:
    config = classifier_config().model_dump()
    texts = [{"file": "unlabelled.tsv", "licence": "ours"}]
    config["pretraining"] = {"train": texts, "masked": 0.3, "training": config["training"]}
    (data / "unlabelled.tsv").write_text(lines([("-", text) for _, text in REVIEWS * 60]))
    train(Config.model_validate(config), data, tmp_path / "run", tmp_path / "out")
    pretrained = average_weights([tmp_path / "run" / "pretraining" / "steps" / "last.ckpt"], "model.")
    model = build_model(Config.model_validate(config))
    model.load_state_dict(pretrained)
    assert isinstance(model, TransformerClassifier)
    batch = collate_masked(
        [
            ReviewExample(np.array(load_checkpoint(tmp_path / "out").tokenizer.encode(text).ids), 0)
            for _, text in REVIEWS
        ],
        masked=0.2,
        generator=torch.Generator().manual_seed(1),
    )
    logits = model.encode(batch.ids, batch.lengths) @ model.embedding.tokens.weight.T
    guessed = logits[batch.masked].argmax(dim=-1) == batch.targets[batch.masked]
    assert guessed.float().mean() > 0.5
    assert json.loads((tmp_path / "out" / "training.json").read_text())["steps"] == 120


def test_a_killed_run_resumed_ends_where_an_unbroken_one_ends(
    trained_translator: Path, data: Path, tmp_path: Path
) -> None:
    train_until_killed(30, translation_config(), data, tmp_path / "run", tmp_path / "out")
    train(translation_config(), data, tmp_path / "run", tmp_path / "out")
    unbroken, resumed = (load_checkpoint(path).model.state_dict() for path in (trained_translator, tmp_path / "out"))
    for name, tensor in unbroken.items():
        torch.testing.assert_close(resumed[name], tensor)


def test_what_is_tested_on_is_never_trained_on(data: Path, tmp_path: Path) -> None:
    config = translation_config().model_dump()
    config["data"]["test"] = config["data"]["train"]
    with pytest.raises(DataError, match="no training rows are left"):
        train(Config.model_validate(config), data, tmp_path / "run", tmp_path / "out")


def test_what_is_tested_on_is_never_read_without_its_labels_either(data: Path) -> None:
    config = classifier_config().model_dump()
    (data / "tested.tsv").write_text("neg\ta good and funny film\n")
    config["data"]["test"] = [{"file": "tested.tsv", "licence": "ours"}]
    config["pretraining"] = {"train": config["data"]["train"], "training": config["training"]}
    checked = Config.model_validate(config)
    assert checked.pretraining is not None
    _, tokenizer = prepare(checked, data, None)
    pretraining = prepare_pretraining(checked, checked.pretraining.train, data, tokenizer)
    unlabelled = prepare_unlabelled(checked, checked.data.train, data, tokenizer)
    pretrained_on = [example.ids for example in pretraining.pools[0].examples]  # type: ignore[union-attr]
    for texts in (pretrained_on, unlabelled):
        assert {tokenizer.decode(ids.tolist()) for ids in texts} == {"a bad and boring film"}


def test_weights_that_do_not_fit_are_refused(trained_translator: Path, tmp_path: Path) -> None:
    shutil.copytree(trained_translator, tmp_path / "out")
    weights = (tmp_path / "out" / WEIGHTS).read_bytes()
    (tmp_path / "out" / WEIGHTS).write_bytes(weights[:-100])
    with pytest.raises(CheckpointError, match=r"model\.safetensors does not hold the weights"):
        load_checkpoint(tmp_path / "out")
    with pytest.raises(CheckpointError, match=r"is not a checkpoint: config\.yaml is missing"):
        load_checkpoint(tmp_path / "absent")


def test_the_rate_rises_holds_and_falls_to_zero() -> None:
    factors = [learning_rate_factor(step, warmup_steps=4, decay_steps=5, max_steps=20) for step in range(21)]
    assert factors[:4] == [0.25, 0.5, 0.75, 1.0]
    assert set(factors[4:16]) == {1.0}
    assert factors[16:] == pytest.approx([0.8, 0.6, 0.4, 0.2, 0.0])
