"""What `model` measures alignment on and what `service` aligns are the same words, though neither imports the other."""

from hypothesis import example, given
from hypothesis import strategies as st

from model import words as measured
from service.tasks.translation import alignment as served


@given(st.text())
@example("don't aujourd'hui jusqu'à all'B's l'a d'un cafe\u0301 3,5 日本 ...")
def test_words_are_the_same_in_both(text: str) -> None:
    assert [(word.start, word.end) for word in served.split_words(text)] == measured.word_spans(text)
