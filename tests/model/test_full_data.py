"""Tests with the full corpora, which are not in the repository: ATTEND_TEST_DATA names their directory."""

import json
import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from model.checkpoint import EVALUATION, load_checkpoint
from model.data import load_rows
from model.evaluation.confidence import N_BINS, ROWS, calibrated, greedy, judged
from model.evaluation.reliability import calibration_error
from model.evaluation.scoring import evaluate, sample_rows
from model.recipe import RECIPE, DataSource, load_recipe

DATA = os.environ.get("ATTEND_TEST_DATA")
ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(DATA is None, reason="ATTEND_TEST_DATA names no directory of the full corpora"),
]


def sources() -> list[DataSource]:
    paths = sorted(path for top in (ROOT / "artifacts", ROOT / "model" / "configs") for path in top.rglob(RECIPE))
    recipes = [load_recipe(path.parent) for path in paths]
    named = {source.file: source for recipe in recipes for source in (*recipe.data.train, *recipe.data.test)}
    return list(named.values())


@pytest.mark.parametrize("source", sources(), ids=lambda source: source.file)
def test_a_corpus_that_a_configuration_names_is_there_and_well_formed(source: DataSource) -> None:
    assert DATA is not None
    assert load_rows(source, Path(DATA))


@pytest.mark.parametrize("checkpoint", sorted((ROOT / "artifacts").iterdir()), ids=lambda path: path.name)
def test_a_shipped_checkpoint_reaches_its_published_score(checkpoint: Path) -> None:
    assert DATA is not None
    [result] = evaluate(load_checkpoint(checkpoint), load_recipe(checkpoint).data.test[-1:], Path(DATA))
    published = json.loads((checkpoint / EVALUATION).read_text(encoding="utf-8"))[result.name]
    assert result.scores == pytest.approx(published, abs=0.1)


def test_the_confidence_of_a_shipped_model_holds_on_other_sentences_of_its_test_sets() -> None:
    assert DATA is not None
    checkpoint = load_checkpoint(ROOT / "artifacts" / "translate-en-fr")
    rows, fitted = [], []
    for source in load_recipe(ROOT / "artifacts" / "translate-en-fr").data.test:
        every = load_rows(source, Path(DATA))
        fitted += sample_rows(every, ROWS // 4)
        rows += sample_rows([row for row in every if row not in set(fitted)], 250)
    confidence = calibrated(*judged(partial(greedy, checkpoint), fitted))
    scores, is_good = judged(partial(greedy, checkpoint), rows)
    values = np.array([confidence.of(score) for score in scores.tolist()])
    assert calibration_error(values, is_good, N_BINS) <= 0.05
