"""Word links from a statistical aligner, eflomal (Östling and Tiedemann 2016), in both directions."""

import importlib
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from model.data import Row
from model.words import word_spans

Links = set[tuple[int, int]]
"""(source word, target word)."""


class AlignmentError(RuntimeError):
    """Words cannot be aligned."""


def statistical_links(rows: Sequence[Row], n: int) -> list[tuple[Links, Links]]:
    """Links of the first `n` pairs in both directions, by the statistics of all of them.

    The aligner draws samples without a seed: of a thousand links a few are different each time.

    Raises:
        AlignmentError: eflomal is not installed.
    """
    try:
        eflomal = importlib.import_module("eflomal")  # It needs a C compiler, and only a user of this needs it.
    except ImportError as error:
        raise AlignmentError("aligning words needs eflomal: pip install 'attend[align]'") from error
    with TemporaryDirectory() as directory:
        paths = [Path(directory) / name for name in ("forward", "reverse")]
        lines = ([spaced(text) for text in side] for side in zip(*rows, strict=True))
        eflomal.Aligner().align(*lines, *map(str, paths))
        forward, reverse = ([parse(line) for line in path.read_text().splitlines()[:n]] for path in paths)
    return list(zip(forward, reverse, strict=True))


def spaced(text: str) -> str:
    """The words of a text, a space between them."""
    return " ".join(text[start:end] for start, end in word_spans(text))


def parse(line: str) -> Links:
    """ "0-0 1-2" as links."""
    pairs = (pair.split("-") for pair in line.split())
    return {(int(source), int(target)) for source, target in pairs}
