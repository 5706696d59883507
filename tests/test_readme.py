"""README promises: each setting is in its table, with its default, and each translator with its scores."""

import json
import re
from pathlib import Path

import pytest

from service.settings import Settings

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
TRANSLATORS = [path for path in sorted(ROOT.glob("checkpoints/*")) if path.name.startswith("translate-")]


def test_every_setting_is_in_the_table_with_its_default_and_meaning() -> None:
    for name, field in Settings.model_fields.items():
        shown = f"`{field.default}`" if field.default not in (None, frozenset()) else "–"  # noqa: RUF001 (a dash)
        assert f"| `ATTEND_{name.upper()}` | {shown} | {field.description} |" in README


def test_the_table_has_no_setting_that_is_gone() -> None:
    documented = {line.split("`")[1] for line in README.splitlines() if line.startswith("| `ATTEND_")}
    assert documented == {f"ATTEND_{name.upper()}" for name in Settings.model_fields}


@pytest.mark.parametrize("checkpoint", TRANSLATORS, ids=lambda path: path.name)
def test_scores_of_a_translator_are_those_of_its_evaluation(checkpoint: Path) -> None:
    evaluation = json.loads((checkpoint / "evaluation.json").read_text(encoding="utf-8"))
    [header] = re.findall(r"^\| model \| direction \|.*$", README, re.MULTILINE)
    [row] = re.findall(rf"^\| \[{checkpoint.name}\].*$", README, re.MULTILINE)
    for column, shown in list(zip(header.split("|"), row.split("|"), strict=True))[3:-2]:
        of_test = [scores for name, scores in evaluation.items() if name.startswith(file_prefix(column))]
        score = of_test[0].get("bleu", of_test[0].get("bleu_of_characters")) if of_test else ""
        assert shown.split("(")[0].strip() == (f"{score:.1f}" if of_test else ""), column
    assert row.split("|")[-2].split("(")[0].strip() == f"{evaluation['cases']['all']:.0f} %"


def file_prefix(title: str) -> str:
    """What the name of a test set's file begins with."""
    return {"Multi30k 2016": "multi30k-test-2016", "NTREX-128": "ntrex128", "BSD": "bsd-test"}.get(
        title.strip(), title.strip().lower()
    )
