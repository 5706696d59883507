"""Which rows of a corpus are trained on, which choose a model, and which are reported."""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from model.data import Row
from model.recipe import DataConfig, DataSource

MIN_REPORTED_WORDS = 5
"""Fewest words of a sentence by which a kind of text is scored: shorter ones have suites of their own."""


class Parts(NamedTuple):
    """Rows of a corpus by what they are for."""

    train: list[Row]
    validation: list[Row]
    reported: list[Row]


def split(rows: Sequence[Row], source: DataSource, data: DataConfig, is_pairs: bool) -> Parts:
    """Split a corpus by a hash of its texts. A text is in the same part of every corpus, and a pair of sentences in the
    same part in both directions, since the file's first column decides."""
    parts = Parts([], [], [])
    for row in rows:
        text = row.left if is_pairs and not source.swap else row.right
        after_validation = place(text) - data.validation_fraction if source.has_one_label_each else 1
        if after_validation < 0:
            parts.validation.append(row)
        elif after_validation < data.reported_fraction:
            parts.reported.append(row)
        else:
            parts.train.append(row)
    return parts


def reported_rows(rows: Sequence[Row], source: DataSource, data: DataConfig) -> list[Row]:
    """Return the pairs by which the kind of a corpus is scored, one for each text of the file's first column, in an
    order that is the same in both directions."""
    texts = {row.right if source.swap else row.left: row for row in split(rows, source, data, is_pairs=True).reported}
    return [texts[text] for text in sorted(texts, key=place) if len(text.split()) >= MIN_REPORTED_WORDS]


def place(text: str) -> float:
    """Return a number from 0 to 1, excluding 1, that depends on the letters and digits of a text alone."""
    letters = "".join(filter(str.isalnum, text)).lower() or text
    return int.from_bytes(hashlib.blake2b(letters.encode(), digest_size=6).digest()) / 2**48
