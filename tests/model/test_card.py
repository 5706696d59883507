import json
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import ModelCard

from model.checkpoint import CARD, CONFIDENCE, EVALUATION
from model.evaluation.card import CASES as CASES_KEY
from model.evaluation.card import KINDS, model_card
from model.evaluation.cases import CaseResult
from model.recipe import Experiment, load_experiment
from tests.model.tiny_configs import CLASSIFIER, LANGUAGE_MODEL, RECURRENT, TRANSLATOR, configured

SHIPPED = sorted((Path(__file__).parents[2] / "artifacts").iterdir())

TRAINING: dict[str, Any] = {"steps": 20, "tokens": 2e6, "hours": 0.1, "threads": 2, "precision": "32-true"}
TRANSLATED = {"ours": {"bleu": 30.0, "chrf": 50.0}}
LABELLED = {"reviews": {"accuracy": 50.0, "calibration_error": 12.34, "negative_log_likelihood": 0.4321}}
CASES = [
    *(CaseResult("single_words", f"word {i}", f"answer {i}", f"right {i}", ["mot"]) for i in range(4)),
    CaseResult("single_words", "passed", "juste", "juste", []),
    CaseResult("names", "Ngozi|Oduya", "Ngo", "Ngozi|Oduya", ["Ngozi kept"]),
]
RATES = {"cases": {"single_words": 20.0, "names": 0.0, "all": 16.7}}


def card_of(
    experiment: Experiment, training: dict[str, Any] | None = None, scores: dict[str, Any] = TRANSLATED, **others: Any
) -> str:
    return model_card(experiment, experiment, TRAINING | (training or {}), scores, 1_000_000, **others)


def test_the_card_says_what_the_model_is_bad_at_with_examples() -> None:
    card = card_of(configured(TRANSLATOR), scores=TRANSLATED | RATES, cases=CASES)
    assert "## What it is bad at" in card
    assert "| single words | 20 |\n| names | 0 |\n| all | 17 |" in card
    assert "| single words | word 1 | answer 1 | right 1 |" in card
    assert "word 2" not in card, "two of a kind"
    assert r"| names | Ngozi\|Oduya | Ngo | Ngozi\|Oduya |" in card, "a bar ends no cell"
    assert "Greedy search" in card


def test_without_a_suite_there_are_no_cases() -> None:
    assert "What it is bad at" not in card_of(configured(TRANSLATOR))


def test_a_model_that_passes_all_says_so() -> None:
    card = card_of(configured(TRANSLATOR), scores=TRANSLATED | {"cases": {"all": 100.0}}, cases=CASES[4:5])
    assert "All of them passed." in card


def test_the_hub_reads_languages_licence_corpora_and_scores() -> None:
    hub = {"path": "owner/corpus", "split": "train", "columns": ["en", "fr"]}
    experiment = configured(TRANSLATOR, data={"train": [{"file": "ours.tsv", "licence": "ours", "hub": hub}]})
    data = ModelCard(card_of(experiment, scores=TRANSLATED | RATES)).data
    assert (data.language, data.license, data.pipeline_tag) == (["en", "fr"], "other", "translation")
    assert (data.datasets, data.metrics) == (["owner/corpus"], ["bleu", "chrf"])
    assert data.eval_results is not None
    assert [(result.dataset_name, result.metric_type, result.metric_value) for result in data.eval_results] == [
        ("ours", "bleu", 30.0),
        ("ours", "chrf", 50.0),
    ]


def test_the_card_says_what_the_model_began_with() -> None:
    card = card_of(configured(TRANSLATOR), {"runs": 2, "began_with": "another", "new_vocabulary": True})
    assert "--data DATA --start OTHER --new-vocabulary`\n\n20 steps in 2 runs" in card
    assert "OTHER is the directory of another, with whose weights it began: what the card there says of" in card
    assert "--start" not in card_of(configured(TRANSLATOR))


def test_the_card_says_what_is_left_of_the_weights_before() -> None:
    card = card_of(configured(TRANSLATOR), {"start_share": 0.25})
    assert "Of the final weights 25 % are those that the last run began with (`--start-share`)." in card


def test_the_card_says_what_the_recipe_notes() -> None:
    assert "Chosen on the test set." in card_of(configured(TRANSLATOR, notes="Chosen on the test set."))


def test_the_card_names_every_licence_with_its_corpora_and_what_it_asks() -> None:
    licences = {
        "translation/train/a.en-fr.tsv.xz": "CC BY 4.0",
        "translation/train/b.en-fr.tsv.xz": "CC BY 4.0",
        "laws.tsv": "by a law of its own",
    }
    card = card_of(configured(TRANSLATOR), {"licences": licences})
    assert "| CC BY 4.0 | a.en-fr, b.en-fr | name the source |" in card
    assert "| by a law of its own | laws | not known |" in card
    assert "may not be used commercially" not in card


@pytest.mark.parametrize(
    ("licence", "asked", "is_restricted"),
    [
        ("CC BY-NC-SA 4.0", "no commercial use; name the source, pass adaptations on under the same licence", True),
        ("free for research use (WMT)", "made for research: take advice before commercial use", True),
        ("CC BY-SA 3.0 (a Research Group)", "name the source, pass adaptations on under the same licence", False),
        (
            "MIT (Expat) or GPL-2+",
            "what is derived and passed on stays under the GPL, with its source; keep the notice",
            False,
        ),
        (
            "MPL-2.0 / LGPL-3+",
            "changed versions that are passed on stay under the LGPL, with their source; "
            "changed files that are passed on stay under the MPL, with their source",
            False,
        ),
        (
            "AGPL-3.0",
            "what is derived and passed on, or offered over a network, stays under the AGPL, with its source",
            False,
        ),
        (
            "GFDL-1.2+",
            "copies and changed versions stay under the GFDL, with its text and the names of the authors",
            False,
        ),
        ("CC0-1.0", "nothing is asked", False),
        ("no formal licence", "no licence was given: rights stay with the authors", True),
    ],
)
def test_the_card_says_what_a_licence_means(licence: str, asked: str, is_restricted: bool) -> None:
    card = card_of(configured(TRANSLATOR, data={"train": [{"file": "ours.tsv", "licence": licence}]}))
    assert f"| {licence} | ours | {asked} |" in card
    assert ("may not be used commercially" in card) == is_restricted


def test_the_card_says_what_bleu_is_of() -> None:
    assert "| test set | BLEU | chrF |" in card_of(configured(TRANSLATOR))
    card = card_of(configured(TRANSLATOR), scores={"ours": {"bleu_of_characters": 20.04, "chrf": 50.0}})
    assert "| test set | BLEU of characters | chrF |\n| --- | --- | --- |\n| ours | 20.04 | 50 |" in card


def test_the_card_of_a_classifier_has_its_calibration() -> None:
    card = card_of(configured(CLASSIFIER), scores=LABELLED)
    assert "| reviews | 50 | 12.34 | 0.4321 |" in card
    assert "Guo et al. 2017" in card


@pytest.mark.parametrize(
    ("model", "built", "command"),
    [
        (RECURRENT, "A recurrent network of 1.0 million parameters: 3 bidirectional", "translate DIRECTORY"),
        (LANGUAGE_MODEL, "2 decoder layers without an encoder", "generate DIRECTORY"),
    ],
)
def test_every_kind_of_model_has_a_card(model: dict[str, Any], built: str, command: str) -> None:
    card = card_of(configured(model))
    assert built in card
    assert command in card


@pytest.mark.parametrize("directory", SHIPPED, ids=lambda path: path.name)
def test_a_shipped_card_has_the_scores_and_the_licences_of_its_model(directory: Path) -> None:
    loaded = load_experiment(directory)
    card = ModelCard.load(directory / CARD)
    evaluation = json.loads((directory / EVALUATION).read_text())
    evaluation = {name: scores for name, scores in evaluation.items() if name not in (CASES_KEY, KINDS, CONFIDENCE)}
    assert card.data.eval_results is not None
    found = {(result.dataset_name, result.metric_type): result.metric_value for result in card.data.eval_results}
    assert found == {(test, metric): score for test, scores in evaluation.items() for metric, score in scores.items()}
    assert all(f"| {licence} | " in card.text for licence in loaded.licences().values())
