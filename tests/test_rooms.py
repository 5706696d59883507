"""The pages name every room of the service, in the order in which rooms may import each other."""

import re
import tomllib
from pathlib import PurePath

import pytest

from docs.generate import ROOT

SERVICE = ROOT / "service"
ROOMS = {path.parent.name for path in SERVICE.glob("*/__init__.py")}
ARCHITECTURE = "docs/architecture.md"
TABLES = {ARCHITECTURE: "The rooms of the service", "CONTRIBUTING.md": "Which folder for which change"}
"""The heading of the table of rooms in each page."""


def paths_in_table(page: str) -> list[str]:
    """The paths below `service/` that a page's table of rooms names."""
    _, _, section = (ROOT / page).read_text(encoding="utf-8").partition(f"\n## {TABLES[page]}\n")
    rows = re.findall(r"^\|.*", section.partition("\n## ")[0], re.MULTILINE)
    return re.findall(r"`service/([\w./]+)`", "\n".join(rows))


@pytest.mark.parametrize("page", TABLES)
def test_a_table_of_rooms_has_every_room_and_none_that_is_gone(page: str) -> None:
    paths = paths_in_table(page)
    assert ROOMS - {PurePath(path).parts[0] for path in paths} == set()
    assert [path for path in paths if not (SERVICE / path).exists()] == []


def test_rooms_are_listed_in_the_order_of_their_layers() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (layers,) = (contract["layers"] for contract in contracts if contract.get("containers") == ["service"])
    numbers = {room: number for number, layer in enumerate(layers) for room in layer.split(" | ")}
    listed = [PurePath(path).parts[0].removesuffix(".py") for path in paths_in_table(ARCHITECTURE)]
    assert sorted(listed) == sorted(numbers), "each once"
    assert [numbers[room] for room in listed] == sorted(numbers.values())
