from dataclasses import replace
from typing import get_args

import pytest

from model.data import Row
from model.evaluation import scoring
from model.evaluation.card import REWRITES, model_card
from model.evaluation.cases import CaseResult
from model.recipe import Rewrite
from tests.model import tiny_configs
from tests.model.tiny_configs import CLASSIFIER, TRANSLATOR, configured

TRAINING = {"steps": 20, "tokens": 2e6, "hours": 0.1, "threads": 2, "precision": "32-true", "averaged_checkpoints": 1}

TRANSLATED = scoring.TestResult(
    "ours",
    {"bleu": 30.0, "chrf": 50.0},
    {"bleu": "signature"},
    ["Un chien.", "Rien du tout", "Un chat | noir."],
    [Row("A dog.", "Un chien."), Row("Two cats.", "Deux chats."), Row("A black cat.", "Un chat noir.")],
)
LABELLED = scoring.TestResult(
    "reviews",
    {"accuracy": 50.0, "calibration_error": 12.34, "negative_log_likelihood": 0.4321},
    {},
    ["positive", "negative"],
    [Row("positive", "Good."), Row("positive", "Not bad.")],
)
CASES = [
    *(CaseResult("single_words", f"word {i}", f"answer {i}", f"right {i}", ["mot"]) for i in range(4)),
    CaseResult("single_words", "passed", "juste", "juste", []),
    CaseResult("names", "Ngozi|Oduya", "Ngo", "Ngozi|Oduya", ["Ngozi kept"]),
]


def test_the_card_says_what_the_model_is_bad_at_with_examples() -> None:
    card = model_card(configured(TRANSLATOR), TRAINING, [TRANSLATED], 1000, CASES)
    assert "## What it is bad at" in card
    assert "| single words | 5 | 20 |\n| names | 1 | 0 |\n| all | 6 | 17 |" in card
    assert "| single words | word 2 | answer 2 | right 2 |" in card
    assert "word 3" not in card, "three of a category"
    assert r"| names | Ngozi\|Oduya | Ngo | Ngozi\|Oduya |" in card, "a bar ends no cell"
    errors = card.split("## Errors")[1].split("## Examples")[0]
    assert "| Two cats. | Rien du tout | Deux chats. |" in errors
    assert "greedy search" in card


def test_the_card_says_what_the_model_began_with() -> None:
    further = TRAINING | {"runs": 2, "began_with": "another", "new_vocabulary": True}
    card = model_card(configured(TRANSLATOR), further, [TRANSLATED], 1000)
    assert "--data DATA --start checkpoints/another --new-vocabulary`: 20 steps in 2 runs" in card
    assert "It began with the weights of another: " in card
    assert "--start" not in model_card(configured(TRANSLATOR), TRAINING, [TRANSLATED], 1000)


def test_the_card_names_the_licences_of_earlier_runs_too() -> None:
    config = configured(TRANSLATOR)
    licences = config.licences() | {"laws.tsv": "by attribution"}
    card = model_card(config, TRAINING | {"licences": licences}, [TRANSLATED], 1000)
    assert "| laws.tsv, in an earlier run | | by attribution |" in card
    assert card.count("in an earlier run") == 1


def test_the_card_says_what_was_made_of_a_corpus() -> None:
    ours = {"file": "ours.tsv", "licence": "ours"}
    sources = [
        ours,
        ours | {"rewrite": "no_capitals", "sample": 5},
        ours | {"merge_dropout": 0.1},
        ours | {"prefix": "FR "},
    ]
    card = model_card(configured(TRANSLATOR, data={"train": sources}), TRAINING, [TRANSLATED], 1000)
    rows = [line for line in card.splitlines() if line.startswith("| ours.tsv")]
    assert len(set(rows)) == 4
    assert rows[0] == "| ours.tsv | all | ours |"
    assert rows[2] == "| ours.tsv, sources cut into smaller pieces at random | all | ours |"
    assert rows[3] == "| ours.tsv, behind `FR ` | all | ours |"


def test_the_card_says_what_is_left_of_the_weights_before() -> None:
    card = model_card(configured(TRANSLATOR), TRAINING | {"start_share": 0.25}, [TRANSLATED], 1000)
    assert "Of the final weights 25% are those that the last run began with (`--start-share`)." in card


def test_the_card_tells_of_regions_and_that_they_alone_were_trained() -> None:
    training = {"unlabelled": [{"file": "texts.tsv", "licence": "free"}]}
    training |= {"pretraining": tiny_configs.TRAINING, "training": tiny_configs.TRAINING}
    model = CLASSIFIER | {"pooling": "mean", "regions": {"width": 8, "detectors": 13, "radius": 3}}
    card = model_card(configured(model, region_training=training), TRAINING | {"only": "regions"}, [LABELLED], 1000)
    assert "13 detectors over regions of 7 tokens" in card
    assert "| texts.tsv, without labels, for the vectors of regions | all | free |" in card
    assert "The last run trained the model's regions alone (`--only regions`)." in card


def test_the_card_has_words_for_every_rewriting() -> None:
    assert set(REWRITES) == {None, *get_args(Rewrite)}


def test_the_card_says_how_weights_are_kept() -> None:
    config = configured(TRANSLATOR)
    assert "Weights are safetensors, float16." in model_card(config, TRAINING, [TRANSLATED], 1000)
    card = model_card(config, TRAINING, [TRANSLATED], 1000, is_compressed=True)
    assert "Weights are safetensors, in int8, with a float16 scale for every 64 of a row." in card


def test_without_a_suite_there_are_no_cases() -> None:
    assert "What it is bad at" not in model_card(configured(TRANSLATOR), TRAINING, [TRANSLATED], 1000)


def test_a_model_that_passes_all_says_so() -> None:
    assert "All of them passed." in model_card(configured(TRANSLATOR), TRAINING, [TRANSLATED], 1000, CASES[4:5])


def test_the_card_says_what_bleu_is_of() -> None:
    into_japanese = replace(TRANSLATED, scores={"bleu_of_characters": 20.04, "chrf": 50.0})
    assert "| sentences | BLEU | chrF |" in model_card(configured(TRANSLATOR), TRAINING, [TRANSLATED], 1000)
    card = model_card(configured(TRANSLATOR), TRAINING, [into_japanese], 1000)
    assert (
        "| test set | sentences | BLEU of characters | chrF |\n|---|---:|---:|---:|\n| ours | 3 | 20.0 | 50.0 |" in card
    )


def test_the_card_of_a_classifier_has_its_calibration() -> None:
    card = model_card(configured(CLASSIFIER), TRAINING, [LABELLED], 1000, [])
    assert "| reviews | 2 | 50.00 | 12.34 | 0.432 |" in card
    assert "- positive, called negative: Not bad." in card


@pytest.mark.parametrize(("among", "expected"), [(3, [1, 2]), (1, [0])])
def test_the_worst_sentences_are_those_least_like_their_references(among: int, expected: list[int]) -> None:
    assert scoring.worst_sentences(TRANSLATED, 2, among) == expected
