from hypothesis import example, given
from hypothesis import strategies as st

from service.text.tokens import Token, locate_pieces, piece_reader
from tests.service.text.byte_level import byte_level_bpe

SAMPLE = ["A dog runs in the snow.", "Un chien court dans la neige, l'été.", "日本語 👩‍👩‍👧 ½ cafe\u0301"] * 3
TOKENIZER = byte_level_bpe(SAMPLE)
PIECE_OF = piece_reader(TOKENIZER.decoder.decode)
PIECES = [PIECE_OF(TOKENIZER.id_to_token(i)) for i in range(TOKENIZER.get_vocab_size())]


@given(st.text(min_size=1))
@example("  two  spaces ")
@example("👩‍👩‍👧 cafe\u0301 ½")
@example("\u2028\x00\x1f")
def test_tokens_of_a_text_cover_it_in_order_and_leave_nothing_out(text: str) -> None:
    joined, tokens = locate_pieces([PIECES[i] for i in TOKENIZER.encode(text).ids])
    assert joined == text
    covered = {i for token in tokens for i in range(token.start, token.end)}
    assert all(text[i].isspace() for i in set(range(len(text))) - covered)
    assert [t.start for t in tokens] == sorted(t.start for t in tokens)
    assert all(0 <= token.start <= token.end <= len(text) for token in tokens)


@given(st.text(min_size=1))
def test_a_token_that_is_whole_is_what_it_covers(text: str) -> None:
    _, tokens = locate_pieces([PIECES[i] for i in TOKENIZER.encode(text).ids])
    for token in tokens:
        if not token.token.startswith("<0x") and "▁" not in token.token:
            assert text[token.start : token.end].endswith(token.token.lstrip())


@given(st.lists(st.integers(0, len(PIECES) - 1), max_size=20))
def test_tokens_of_any_translation_are_located_in_what_it_decodes_to(ids: list[int]) -> None:
    """A model may write bytes that are no character."""
    text, tokens = locate_pieces([PIECES[i] for i in ids])
    assert text == TOKENIZER.decode(ids).replace("\ufffd", "")
    assert len(tokens) == len(ids)
    assert all(0 <= token.start <= token.end <= len(text) for token in tokens)


def test_bytes_that_are_no_character_are_nothing_in_the_text() -> None:
    assert locate_pieces([b" a", b"\xf0\x9f", b"b"]) == (
        "ab",
        [Token("▁a", 0, 1), Token("<0xF0><0x9F>", 1, 1), Token("b", 1, 2)],
    )


def test_parts_of_a_character_cover_it_and_a_special_token_covers_nothing() -> None:
    assert locate_pieces([b" A", b" \xf0\x9f", b"\x90", b"\xb6", b"!", "</s>"]) == (
        "A 🐶!",
        [
            Token("▁A", 0, 1),
            Token("▁<0xF0><0x9F>", 2, 3),
            Token("<0x90>", 2, 3),
            Token("<0xB6>", 2, 3),
            Token("!", 3, 4),
            Token("</s>", 4, 4),
        ],
    )
