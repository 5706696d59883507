"""Words and their translations, found as words that occur in the same rows (Dice 1945)."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import product

from model.data import Row

MAX_WORDS = 10
"""Longest side that is read: in a longer row a word meets many others."""
MIN_ROWS, MAX_SHARE = 5, 0.02
"""Fewest rows, and largest share of them, with a word: in more are articles and pronouns, never asked for alone."""
MIN_DICE = 0.65

WORD = re.compile(r"[^\W\d_]{3,}")


def word_pairs(rows: Sequence[Row]) -> list[Row]:
    """Return pairs of words that are each other's best by Dice's coefficient, rows with both over mean rows with one.

    Words that are equal on both sides, mostly names, are left out. A word is written as it mostly occurs: in small
    letters unless it is a German noun or an English day.
    """
    texts = [(set(WORD.findall(row.left.lower())), set(WORD.findall(row.right.lower()))) for row in rows]
    counts = [Counter(word for text in texts for word in text[side]) for side in (0, 1)]
    most = max(MIN_ROWS, MAX_SHARE * len(rows))
    known = [{word for word, n in count.items() if MIN_ROWS <= n <= most} for count in counts]
    both = Counter[tuple[str, str]]()
    for left, right in texts:
        if len(left) <= MAX_WORDS and len(right) <= MAX_WORDS:
            both.update(product(left & known[0], right & known[1]))
    # Sorted, because a set of words has another order in every process.
    scores = sorted((2 * n / (counts[0][pair[0]] + counts[1][pair[1]]), pair) for pair, n in both.items() if n > 1)
    best_of_left = {left: right for _, (left, right) in scores}
    best_of_right = {right: left for _, (left, right) in scores}
    usual_left, usual_right = (_usual_spelling(row[side] for row in rows) for side in (0, 1))
    return [
        Row(usual_left[left], usual_right[right])
        for score, (left, right) in scores
        if score >= MIN_DICE and best_of_left[left] == right and best_of_right[right] == left != right
    ]


def _usual_spelling(texts: Iterable[str]) -> dict[str, str]:
    """Return the usual spelling of each word by its lower case; first words count only if there are no others."""
    first, inside = Counter[str](), Counter[str]()
    for text in texts:
        words = WORD.findall(text)
        first.update(words[:1])
        inside.update(words[1:])
    ordered = [word for counter in (first, inside) for word, _ in reversed(counter.most_common())]
    return {word.lower(): word for word in ordered}
