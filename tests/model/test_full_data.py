"""What only the full corpora can show. They are not in the repository: ATTEND_TEST_DATA names their directory."""

import json
import os
from pathlib import Path

import pytest

from model.checkpoint import EVALUATION, load_checkpoint
from model.config import DataSource, load_config
from model.data import load_rows
from model.evaluation.scoring import evaluate

DATA = os.environ.get("ATTEND_TEST_DATA")
ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(DATA is None, reason="ATTEND_TEST_DATA names no directory of the full corpora")


def sources() -> list[DataSource]:
    configs = [load_config(path) for path in sorted((ROOT / "model" / "configs").glob("*.yaml"))]
    named = {source.file: source for config in configs for source in (*config.data.train, *config.data.test)}
    return list(named.values())


@pytest.mark.parametrize("source", sources(), ids=lambda source: source.file)
def test_a_corpus_that_a_configuration_names_is_there_and_well_formed(source: DataSource) -> None:
    assert DATA is not None
    if source.made_by is not None and not (Path(DATA) / source.file).is_file():
        pytest.skip("made by a command that its configuration tells")
    assert load_rows(source, Path(DATA))


@pytest.mark.parametrize("checkpoint", sorted((ROOT / "checkpoints").iterdir()), ids=lambda path: path.name)
def test_a_shipped_checkpoint_reaches_its_published_score(checkpoint: Path) -> None:
    assert DATA is not None
    loaded = load_checkpoint(checkpoint)
    [result] = evaluate(loaded, loaded.config.data.test[-1:], Path(DATA))
    published = json.loads((checkpoint / EVALUATION).read_text(encoding="utf-8"))[result.name]
    assert result.scores == pytest.approx(published, abs=0.1)
