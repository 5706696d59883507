import sys

import numpy as np
import pytest

from model.data import Row
from model.word_aligner import AlignmentError, parse, spaced, statistical_links


def test_words_are_written_and_links_are_read_as_the_aligner_does_it() -> None:
    assert spaced("L'homme court.") == "L' homme court ."
    assert parse("0-0 2-1\n") == {(0, 0), (2, 1)}
    assert parse("") == set()


def test_an_aligner_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "eflomal", None)
    with pytest.raises(AlignmentError, match=r"needs eflomal: pip install 'attend\[align\]'"):
        statistical_links([Row("A dog.", "Un chien.")], 1)


def test_links_of_the_first_pairs_come_in_their_order_source_before_target() -> None:
    pytest.importorskip("eflomal")
    random = np.random.default_rng(1)
    sentences = [random.permutation(20)[: 3 + i % 4].tolist() for i in range(600)]
    # The first word becomes the last one.
    rows = [Row(" ".join(f"w{word}" for word in s), " ".join(f"m{word}" for word in [*s[1:], s[0]])) for s in sentences]
    links = statistical_links(rows, 40)
    assert len(links) == 40
    expected = [{(i, i - 1 if i else len(s) - 1) for i in range(len(s))} for s in sentences[:40]]
    for direction in (0, 1):  # the aligner draws samples: it may miss a few
        found = sum(len(pair[direction] & right) for pair, right in zip(links, expected, strict=True))
        assert found > 0.8 * sum(map(len, expected))
