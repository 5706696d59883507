"""Models of others that are worth importing: `python -m model.importing.recommended` lists them.

It needs nothing but Python, so that `make model` can print the list before anything is installed.
"""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

DATA = Path(__file__).with_suffix(".toml")
HUB = "https://huggingface.co"
SIZES = {"small": 100_000_000, "medium": 300_000_000, "large": 10_000_000_000}
"""Most parameters of a model of each size."""
TEMPLATE = ("SOURCE", "TARGET")
"""What stands for the codes of two languages in an id of the hub that is good for many."""
SCORE = re.compile(r"(?:(?P<test>\w+): )?(?P<bleu>\d+(?:\.\d+)?)(?: (?P<target>[a-z-]+))?")
"""A score in `measure`, or of another test set, and perhaps for one target of several: 52.2; Tatoeba: 32.7; 32.1 uk."""
IN_A_LINE = 2
"""Most scores in one line."""
HINT = """\
Which model? This imports one, proves that it computes what the original computes, and serves it from then on:

  {get}Helsinki-NLP/opus-mt-tc-big-en-fr
  {serve}

Some that are worth it follow. Size is the number of parameters; in int8 each takes about a byte. Scores are as
published: docs/bring-your-model.md says by whom, and which other models can be imported. Mind the licences.
"""


@dataclass(frozen=True)
class Recommended:
    """A model that is worth importing.

    Attributes:
        does: its languages or its task.
        bring: value of FROM, or a description of files.
        page: address where it can be had; "" if no page has just this model.
        size: number of parameters, about.
        score: "" if none was found.
        publisher: name and address of the page with the score; None if there is no score.
        kind, heads: `model_type` and the one of `architectures` in its config.json; "" if it has none.
        file: name of a file by which models without config.json are known.
        directions: the directions, such as "en-fr", for which this is the model to bring; none for a model of many.
    """

    does: str
    bring: str
    page: str
    size: str
    licence: str
    score: str
    publisher: tuple[str, str] | None
    kind: str
    heads: str
    file: str
    directions: tuple[str, ...]

    @property
    def parameters(self) -> float:
        """The number of parameters, about; that of the largest one if these are several models."""
        number, unit = self.size.split()[-2:]
        return float(number) * {"M": 1e6, "B": 1e9}[unit]


@dataclass(frozen=True)
class Group:
    """Models that do the same.

    Attributes:
        measure: what their scores are; "" if none was found.
    """

    title: str
    measure: str
    models: tuple[Recommended, ...]


def recommended() -> list[Group]:
    """Return the models, by what they do."""
    data = tomllib.loads(DATA.read_text(encoding="utf-8"))
    publishers = {key: (publisher["name"], publisher["address"]) for key, publisher in data["publishers"].items()}
    return [
        Group(group["title"], group.get("measure", ""), tuple(_model(model, publishers) for model in group["models"]))
        for group in data["groups"]
    ]


def best_model(source: str, target: str, size: str) -> Recommended | None:
    """Return the model to bring for a direction: the first one that is listed for it and fits a size of `SIZES`. Where
    none is, an id that is made of the codes of both languages; the hub may not have it."""
    models = [model for model in _all_models() if model.parameters <= SIZES[size]]
    listed = next((model for model in models if f"{source}-{target}" in model.directions), None)
    if listed is not None:
        return listed
    for model in models:
        if all(part in model.bring for part in TEMPLATE):
            bring = model.bring.replace(TEMPLATE[0], source).replace(TEMPLATE[1], target)
            return replace(model, bring=bring, page=f"{HUB}/{bring}")
    return None


def listed_directions() -> set[str]:
    """Return the directions that models are listed for, such as "en-fr"."""
    return {direction for model in _all_models() for direction in model.directions}


def recommended_scores(source: str) -> dict[str, dict[str, float]]:
    """Return the scores with which a translator is recommended, by test set and metric; none if it is not."""
    for group in recommended():
        metric, _, test = group.measure.partition(" on ")
        for model in group.models:
            if model.bring == source and model.directions and metric == "BLEU":
                return {
                    " ".join(filter(None, (score["test"] or test, score["target"]))): {"bleu": float(score["bleu"])}
                    for score in SCORE.finditer(model.score)
                }
    return {}


def _all_models() -> Iterator[Recommended]:
    return (model for group in recommended() for model in group.models)


def _model(entry: dict[str, Any], publishers: dict[str, tuple[str, str]]) -> Recommended:
    score = entry.get("score", "")
    publisher = publishers[entry["by"]] if "by" in entry else ("its card", f"{HUB}/{entry['from']}")
    return Recommended(
        does=entry["does"],
        bring=entry["from"],
        page=entry.get("page", "" if "SOURCE" in entry["from"] else f"{HUB}/{entry['from']}"),
        size=entry["size"],
        licence=entry["licence"],
        score=score,
        publisher=publisher if score else None,
        kind=entry.get("kind", ""),
        heads=entry.get("heads", ""),
        file=entry.get("file", ""),
        directions=tuple(entry.get("directions", "").split()),
    )


def listing_with_hint(get: str = "make model FROM=", serve: str = "make serve") -> str:
    """Return the models as plain text, a table for each group, after the commands that import and serve one."""
    tables = "\n\n".join(f"{group.title}\n{_table(group)}" for group in recommended())
    return f"{HINT.format(get=get, serve=serve)}\n{tables}"


def _table(group: Group) -> str:
    rows = [("", "FROM", "size", "licence", group.measure), *(row for model in group.models for row in _rows(model))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = (map(str.ljust, row, widths) for row in rows)
    return "\n".join(f"  {'  '.join(cells)}".rstrip() for cells in padded)


def _rows(model: Recommended) -> list[tuple[str, ...]]:
    scores = model.score.split(", ")
    columns = (
        [model.does],
        [model.bring, model.page] if model.file else [model.bring],
        [model.size],
        [model.licence],
        [", ".join(scores[i : i + IN_A_LINE]) for i in range(0, len(scores), IN_A_LINE)],
    )
    return list(zip_longest(*columns, fillvalue=""))


if __name__ == "__main__":
    print(listing_with_hint())  # noqa: T201
