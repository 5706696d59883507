"""Writes the tables of settings and scores into the pages: `make docs`.

A table stands between `<!-- NAME: written by make docs -->` and `<!-- end -->`.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from docs import licences
from model.importing.recommended import Group, recommended
from service.base.configuration import shown_value
from service.base.settings import Settings
from service.schemas.answers import KINDS, expected

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
MODELS = ROOT / "artifacts"
"""The folder with each model's evaluation.json and card."""

LANGUAGES = {"de": "German", "en": "English", "fr": "French", "ja": "Japanese", "ru": "Russian"}
TEST_SETS = {
    "Tatoeba": "tatoeba-challenge-2021",
    "Multi30k": "multi30k-test-2016",
    "NTREX-128": "ntrex128",
    "newstest2014": "newstest2014",
    "BSD": "bsd-test",
}
"""The name of each column, and the beginning of the names of its test sets."""

PLACE = re.compile(r"(?<=<!-- )(\w+)(: written by make docs -->\n).*?(?=<!-- end -->)", re.DOTALL)

Evaluation = dict[str, dict[str, float]]


def main() -> None:
    """Write every table anew."""
    for page in PAGES:
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")


def filled(page: str) -> str:
    """Return a page with its tables up to date."""
    return PLACE.sub(lambda place: f"{place[1]}{place[2]}{TABLES[place[1]]()}\n", page)


def settings() -> str:
    """Return the table of settings with their defaults and meanings."""
    rows = []
    for name, field in Settings.model_fields.items():
        default = "–" if field.default in (None, (), frozenset()) else f"`{shown_value(field.default)}`"  # noqa: RUF001  A dash.
        rows.append([f"`ATTEND_{name.upper()}`", default, field.description or ""])
    return table(["variable", "default", "meaning"], ["---"] * 3, rows)


def translators() -> str:
    """Return the table of translators: BLEU on each test set, and the share of failure cases that pass."""
    models = evaluations("translate-")
    kinds = [*dict.fromkeys(kind for _, evaluation in models for kind in evaluation.get(KINDS, {}))]
    header = ["model", "direction", *TEST_SETS, *(kind.replace("_", " ") for kind in kinds), "cases"]
    rows = []
    for name, evaluation in models:
        scores = [bleu(evaluation, prefix) for prefix in TEST_SETS.values()]
        by_kind = evaluation.get(KINDS, {})
        scores += [f"{by_kind[kind]:.1f}" if kind in by_kind else "" for kind in kinds]
        rows.append([link(name), direction(name), *scores, f"{evaluation['cases']['all']:.0f} %"])
    return table(header, ["---"] * 2 + ["---:"] * (len(header) - 2), rows)


def classifiers() -> str:
    """Return the table of classifiers: accuracy and calibration error on each test set."""
    rows = [
        [link(name), test, f"{scores['accuracy']:.1f} %", f"{scores['calibration_error']:.1f} %"]
        for name, evaluation in evaluations("sentiment-")
        for test, scores in evaluation.items()
        if test not in ("cases", KINDS)
    ]
    return table(["model", "test set", "accuracy", "calibration error"], ["---", "---", "---:", "---:"], rows)


def shipped() -> str:
    """Return the table of all models: what each does, and its scores on easy and on hard text."""
    rows = []
    for name, evaluation in evaluations("translate-"):
        easy, hard = (bleu(evaluation, TEST_SETS[test]) for test in ("Tatoeba", "NTREX-128"))
        rows.append([f"`{name}`", direction(name), f"{easy} BLEU", f"{hard} BLEU"])
    for name, evaluation in evaluations("sentiment-"):
        easy, hard = (f"{evaluation[test]['accuracy']:.1f} %" for test in ("imdb/test", "sst2/test"))
        rows.append([f"`{name}`", "positive or negative", easy, hard])
    header = ["model", "does", "on what it was made for", "on harder text"]
    expect = [expected(evaluation) for _, evaluation in (*evaluations("translate-"), *evaluations("sentiment-"))]
    if any(expect):
        header.append("by kind of text")
        for row, words in zip(rows, expect, strict=True):
            row.append("; ".join(f"{word}: {', '.join(kinds)}" for word, kinds in (words or {}).items()))
    return table(header, ["---"] * 2 + ["---:"] * 2 + ["---"] * (len(header) - 4), rows)


def importable() -> str:
    """Return the tables of models that are worth importing, one for each group."""
    return "\n\n".join(f"**{group.title}**\n\n{_table_of(group)}" for group in recommended())


def licences_of_packages() -> str:
    """Return the table of the packages that serving needs, with their licences."""
    return table(["package", "licence", "images"], ["---"] * 3, licences.packages())


def licences_of_data() -> str:
    """Return the table of what packages contain under other licences than their own."""
    rows = [[f"[{one.name}]({one.page})", f"`{one.package}`", one.licence] for one in licences.DATA]
    return table(["what", "in", "licence"], ["---"] * 3, rows)


def licences_of_models() -> str:
    """Return the table of licences, with the models that were trained on text under each."""
    return table(["licence", "models"], ["---"] * 2, licences.models())


def _table_of(group: Group) -> str:
    header = ["for", "`FROM=`", "size", "licence", *([group.measure, "published by"] if group.measure else [])]
    rows = []
    for model in group.models:
        bring = model.bring if model.file else f"`{model.bring}`"
        bring = f"[{bring}]({model.page})" if model.page else bring
        published = [model.score, "[{}]({})".format(*model.publisher) if model.publisher else ""]
        rows.append([model.does, bring, model.size, model.licence, *(published if group.measure else [])])
    return table(header, ["---", "---", "---:", *["---"] * (len(header) - 3)], rows)


TABLES: dict[str, Callable[[], str]] = {
    function.__name__: function
    for function in (
        *(settings, translators, classifiers, shipped, importable),
        *(licences_of_packages, licences_of_data, licences_of_models),
    )
}


def evaluations(prefix: str) -> list[tuple[str, Evaluation]]:
    """Return the models whose names begin with a prefix, and their scores."""
    files = sorted(MODELS.glob(f"{prefix}*/evaluation.json"))
    return [(file.parent.name, json.loads(file.read_text(encoding="utf-8"))) for file in files]


def bleu(evaluation: Evaluation, prefix: str) -> str:
    """Return BLEU on the first test set with this prefix, "" if there is none; Japanese is compared by characters."""
    scores = next((scores for test, scores in evaluation.items() if test.startswith(prefix)), None)
    return "" if scores is None else f"{scores.get('bleu', scores.get('bleu_of_characters')):.1f}"


def direction(name: str) -> str:
    _, source, target = name.split("-")
    return f"{LANGUAGES[source]} to {LANGUAGES[target]}"


def link(name: str) -> str:
    """Return a link to the model's card from a page in docs/."""
    return f"[{name}](../{MODELS.name}/{name}/README.md)"


def table(header: Sequence[str], rule: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [header, rule, *rows])


if __name__ == "__main__":
    main()
