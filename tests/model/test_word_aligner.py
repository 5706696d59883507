import sys

import pytest

from model.data import Row
from model.word_aligner import AlignmentError, parse, spaced, statistical_links

NOUNS = {"dog": "chien", "cat": "chat", "man": "homme", "beach": "plage"}


def test_words_are_written_and_links_are_read_as_the_aligner_does_it() -> None:
    assert spaced("L'homme court.") == "L' homme court ."
    assert parse("0-0 2-1\n") == {(0, 0), (2, 1)}
    assert parse("") == set()


def test_an_aligner_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "eflomal", None)
    with pytest.raises(AlignmentError, match=r"needs eflomal: pip install 'attend\[align\]'"):
        statistical_links([Row("A dog.", "Un chien.")], 1)


def test_links_of_the_first_pairs_come_in_their_order() -> None:
    pytest.importorskip("eflomal")
    pairs = [(a, b) for a in NOUNS.items() for b in NOUNS.items() if a != b] * 20
    rows = [Row(f"the {a} sees the {b} .", f"{b_} {a_} .") for (a, a_), (b, b_) in pairs]
    links = statistical_links(rows, 12)
    assert len(links) == 12
    for forward, reverse in links:
        assert {(1, 1), (4, 0)} <= forward & reverse
