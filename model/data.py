"""Corpora: local TSV files (`.tsv`, `.tsv.xz`), or the same corpora from a hub through the `datasets` library."""

import lzma
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from model.recipe import DataSource, HubSource

OWN_CORPORA = Path(__file__).parent / "corpora"


class DataError(ValueError):
    """A corpus is missing, empty or malformed; the message names file and line."""


class Row(NamedTuple):
    """(source, target) of a translation pair, or (label, text) of a review."""

    left: str
    right: str


def load_rows(source: DataSource, data_dir: Path | None) -> list[Row]:
    """Load a corpus from its file below `data_dir`, or from the hub if that is None; our own corpora need neither.

    A row with several labels becomes one row for each label.

    Raises:
        DataError: the corpus is missing, empty or malformed, has an unknown label, or cannot be downloaded.
    """
    if source.own:
        rows = list(read_tsv(OWN_CORPORA / source.file, source.columns))
    elif data_dir is not None:
        rows = list(read_tsv(data_dir / source.file, source.columns))
    elif source.hub is not None:
        rows = load_from_hub(source.hub)
    else:
        raise DataError(f"{source.file} cannot be downloaded: name the directory that holds it with --data")
    if source.swap:
        rows = [Row(row.right, row.left) for row in rows]
    if source.labels is None:
        return rows
    for number, row in enumerate(rows, start=1):
        if row.left not in source.labels:
            raise DataError(
                f"{source.file}, line {number}: label {row.left!r} must be one of {', '.join(source.labels)}"
            )
    called = {label: (names,) if isinstance(names, str) else names for label, names in source.labels.items()}
    return [Row(label, row.right) for row in rows for label in called[row.left]]


def read_tsv(path: Path, columns: tuple[str, str] | None = None) -> Iterator[Row]:
    """Yield the rows of a two-column file: UTF-8, one tab per line, neither side empty, no header, no quoting. With
    `columns`, a file may have several columns, which its first line names. Raises DataError: the file is missing or
    malformed; the message names the file and the line."""
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    number = 0
    try:
        with lzma.open(path, "rb") if path.suffix == ".xz" else path.open("rb") as file:
            names = _cells(path, 1, next(file, b"")) if columns else ["source", "target"]
            if absent := [name for name in columns or () if name not in names]:
                raise DataError(f"{path}: no column {', '.join(absent)}; its first line names {', '.join(names)}")
            places = [names.index(name) for name in columns or names]
            for number, line in enumerate(file, start=2 if columns else 1):
                yield _parse_line(path, number, line, len(names), places)
    except (lzma.LZMAError, EOFError) as error:
        raise DataError(f"{path}: damaged after line {number}: {error}") from error
    if number == 0:
        raise DataError(f"{path}: empty file")


def _parse_line(path: Path, number: int, line: bytes, n_columns: int, places: Sequence[int]) -> Row:
    cells = _cells(path, number, line)
    if len(cells) != n_columns:
        raise DataError(f"{path}, line {number}: {len(cells)} columns instead of {n_columns}")
    for place in places:
        if not cells[place].strip():
            raise DataError(f"{path}, line {number}: column {place + 1} is empty")
    return Row(*(cells[place] for place in places))


def _cells(path: Path, number: int, line: bytes) -> list[str]:
    try:
        text = line.decode("utf-8-sig" if number == 1 else "utf-8")  # some editors begin a file with a mark
    except UnicodeDecodeError as error:
        raise DataError(f"{path}, line {number}: not UTF-8 at byte {error.start}") from error
    return text.rstrip("\r\n").split("\t")


def load_from_hub(hub: HubSource) -> list[Row]:
    """Download one split with `datasets` and take its two columns. Raises DataError: the corpus cannot be fetched, or
    has no such column."""
    import datasets  # takes two seconds to import

    try:
        split = datasets.load_dataset(hub.path, hub.name, split=hub.split)
    except Exception as error:  # the library raises errors of a dozen other packages
        raise DataError(f"hub corpus {hub.path}: {error}") from error
    rows = [Row(*(_column(hub, record, column) for column in hub.columns)) for record in split]
    if not rows:
        raise DataError(f"hub corpus {hub.path}: empty split {hub.split}")
    return rows


def _column(hub: HubSource, record: Any, column: str) -> str:
    value = record
    for key in column.split("."):
        if key not in value:
            raise DataError(f"hub corpus {hub.path}: no column {column}")
        value = value[key]
    return " ".join(str(value).split())
