from hypothesis import example, given
from hypothesis import strategies as st

from service.documents import plain
from service.documents.plain import MAX_PIECE_LENGTH, MIN_PIECE_LENGTH
from tests.service.documents.translating import Opened

TEXTS = st.lists(
    st.sampled_from(
        ["a b. ", "é", "\n", "\r\n", "\r", "\n\n", "x" * 900, "。", "\x0b", "\u2028", "\ufeff", "y " * 6000]
    )
).map("".join)


@given(TEXTS)
@example("\ufeff")
@example("x" * (2 * MAX_PIECE_LENGTH + 1))
def test_without_a_translation_a_text_comes_out_byte_for_byte(text: str) -> None:
    data = text.encode()
    contents = Opened(plain.rewrite, data)
    assert contents.write(contents.texts) == data


@given(TEXTS)
def test_pieces_are_short_and_none_is_empty(text: str) -> None:
    lengths = [len(piece) for piece in plain.split_pieces(text)]
    assert all(0 < length <= MAX_PIECE_LENGTH for length in lengths)


def test_a_paragraph_is_never_cut_unless_it_is_very_long() -> None:
    paragraph = "\n".join(["One line of it."] * 200) + "\n\n"
    text = paragraph * 5
    assert MIN_PIECE_LENGTH < len(paragraph) < MAX_PIECE_LENGTH
    assert [*plain.split_pieces(text)] == [paragraph] * 5


def test_short_paragraphs_are_read_together() -> None:
    text = "A line.\n\n" * 1000
    assert len([*plain.split_pieces(text)]) < 10


def test_a_line_that_is_too_long_is_cut_behind_a_sentence() -> None:
    pieces = [*plain.split_pieces("This is one of the many sentences of it. " * 1000)]
    assert all(piece.endswith("it. ") for piece in pieces)
    assert next(plain.split_pieces("word " * 4000)).endswith("word ")
