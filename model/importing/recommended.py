"""Models of others that are worth importing: `python -m model.importing.recommended` lists them.

It needs nothing but Python, so that `make model` can print the list before anything is installed.
"""

import tomllib
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

DATA = Path(__file__).with_suffix(".toml")
HUB = "https://huggingface.co"
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
