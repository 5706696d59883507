import sys

import numpy as np
import pytest

from model.alignment.word_aligner import AlignmentError, parse, spaced, statistical_links
from model.data import Row


def test_words_are_written_and_links_are_read_as_the_aligner_does_it() -> None:
    assert spaced("L'homme court.") == "L' homme court ."
    assert parse("0-0 2-1\n") == {(0, 0), (2, 1)}
    assert parse("") == set()


def test_an_aligner_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "eflomal", None)
    with pytest.raises(AlignmentError, match=r"needs eflomal: pip install eflomal"):
        statistical_links([Row("A dog.", "Un chien.")], 1)


def test_links_of_the_first_pairs_come_in_their_order_source_before_target() -> None:
    """The aligner samples without a seed and misses some links. Links of another pair, or of the wrong direction, agree
    in a third: each translation has its own order.
    """
    pytest.importorskip("eflomal")
    random = np.random.default_rng(1)
    sentences = [random.permutation(100)[: 5 + i % 4].tolist() for i in range(600)]
    orders = [random.permutation(len(sentence)).tolist() for sentence in sentences]
    rows = [
        Row(" ".join(f"w{word}" for word in sentence), " ".join(f"m{sentence[place]}" for place in order))
        for sentence, order in zip(sentences, orders, strict=True)
    ]
    links = statistical_links(rows, 40)
    assert len(links) == 40
    expected = [{(source, target) for target, source in enumerate(order)} for order in orders[:40]]
    for direction in (0, 1):
        found = sum(len(pair[direction] & right) for pair, right in zip(links, expected, strict=True))
        assert found > 0.7 * sum(map(len, expected))
