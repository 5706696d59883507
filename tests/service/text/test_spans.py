"""Ranges are followed through replacements, there and back."""

from hypothesis import given
from hypothesis import strategies as st

from service.text.spans import Span, replace_spans


@given(st.text(min_size=4), st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3), st.text(max_size=3)), max_size=3))
def test_edits_keep_what_they_do_not_touch(text: str, steps: list[tuple[int, int, str]]) -> None:
    position, replacements = 0, []
    for gap, length, replacement in steps:
        start, end = min(position + gap, len(text)), min(position + gap + length, len(text))
        replacements.append((Span(start, end), replacement))
        position = end
    new, edits = replace_spans(text, replacements)
    assert [span.of(new) for span in edits.new] == [replacement for _, replacement in replacements]
    for i in range(len(text)):
        if not any(span.start <= i < span.end for span, _ in replacements):
            moved = edits.after(Span(i, i + 1))
            assert moved.of(new) == text[i]
            assert edits.before(moved) == Span(i, i + 1)
