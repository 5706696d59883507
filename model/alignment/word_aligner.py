"""Word links from a statistical aligner, eflomal (Östling and Tiedemann 2016), in both directions."""

import importlib
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from model.data import Row
from model.words import word_spans

Links = set[tuple[int, int]]
"""Pairs (source word, target word)."""


class AlignmentError(RuntimeError):
    """The statistical aligner cannot be run."""


def statistical_links(rows: Sequence[Row], n: int) -> list[tuple[Links, Links]]:
    """Return the links of the first `n` pairs in both directions, by the statistics of all pairs.

    The aligner samples without a seed: a few of a thousand links differ each time.

    Raises:
        AlignmentError: eflomal is not installed.
    """
    try:
        eflomal = importlib.import_module("eflomal")  # it needs a C compiler, and only this function uses it
    except ImportError as error:
        raise AlignmentError("aligning words needs eflomal: pip install eflomal") from error
    with TemporaryDirectory() as directory:
        paths = [Path(directory) / name for name in ("forward", "reverse")]
        lines = ([spaced(text) for text in side] for side in zip(*rows, strict=True))
        eflomal.Aligner().align(*lines, *map(str, paths))
        forward, reverse = ([parse(line) for line in path.read_text().splitlines()[:n]] for path in paths)
    return list(zip(forward, reverse, strict=True))


def spaced(text: str) -> str:
    """Return the words of a text with a space between them."""
    return " ".join(text[start:end] for start, end in word_spans(text))


def parse(line: str) -> Links:
    """Parse links like 0-0 1-2."""
    pairs = (pair.split("-") for pair in line.split())
    return {(int(source), int(target)) for source, target in pairs}
