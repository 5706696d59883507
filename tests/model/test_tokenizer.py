from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from model.tokenizer import EOS_ID, SPECIAL_TOKENS, cut_source, load_tokenizer, train_tokenizer, with_dropout
from tests.model.conftest import TEXTS

TOKENIZER = train_tokenizer(TEXTS, vocab_size=300, end_of_sequence=True)
ONE_FORM = train_tokenizer(TEXTS, vocab_size=300, end_of_sequence=False, one_form=True)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_survives_the_round_trip(text: str) -> None:
    assert TOKENIZER.decode(TOKENIZER.encode(text).ids) == text


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_no_text_becomes_silence(text: str) -> None:
    assert len(TOKENIZER.encode(text).ids) > 1


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_offsets_cover_every_character_of_the_text(text: str) -> None:
    offsets = TOKENIZER.encode(text).offsets
    covered = {i for start, end in offsets for i in range(start, end)}
    assert covered == set(range(len(text)))


@pytest.mark.parametrize("text", ["</s>", "<pad> <s>", "a</s>b"])
def test_special_tokens_in_a_text_are_plain_characters(text: str) -> None:
    ids = TOKENIZER.encode(text).ids
    assert ids.index(EOS_ID) == len(ids) - 1
    assert TOKENIZER.decode(ids) == text


@pytest.mark.parametrize("text", ["日本語", "😀👩‍👩‍👧", "\x00\x07", "e\u0301", "▁Ġ", "  two  spaces  ", "\r\n\t"])
def test_what_was_never_trained_on_survives_too(text: str) -> None:
    assert TOKENIZER.decode(TOKENIZER.encode(text).ids) == text


def test_case_is_kept_and_a_word_is_the_same_at_the_start_and_inside(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("Dog").ids != tokenizer.encode("dog").ids
    assert tokenizer.encode("dog dog").ids[:-1] == tokenizer.encode("dog").ids[:-1] * 2


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("It CAN\u2019T be better", "it can't be better"),
        ("a \u201cmasterpiece\u201d", 'a "masterpiece"'),
        ("\uff27\uff4f\uff4f\uff44\uff01", "good!"),
        ("so\u00a0good\u2014really\u2026", "so good-really..."),
        ("go\u00adod\u200b", "good"),
        ("CAFÉ", "café"),
    ],
)
def test_what_differs_in_form_alone_is_read_as_one(text: str, plain: str) -> None:
    assert ONE_FORM.encode(text).ids == ONE_FORM.encode(plain).ids
    assert ONE_FORM.decode(ONE_FORM.encode(text).ids) == plain


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_offsets_of_what_is_read_otherwise_are_places_of_the_text_in_order(text: str) -> None:
    starts, ends = zip(*(ONE_FORM.encode(text).offsets or [(0, 0)]), strict=True)
    assert sorted(starts) == list(starts)
    assert sorted(ends) == list(ends)
    assert 0 <= starts[0] <= ends[-1] <= len(text)


def test_a_source_that_is_cut_keeps_its_end() -> None:
    assert cut_source([5, 6, 7, EOS_ID], 4) == [5, 6, 7, EOS_ID]
    assert cut_source([5, 6, 7, 8, EOS_ID], 4) == [5, 6, 7, EOS_ID]


def test_a_saved_tokenizer_reads_texts_the_same(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    loaded = load_tokenizer(tmp_path / "tokenizer.json")
    assert loaded.encode("Hi </s> 😀").ids == tokenizer.encode("Hi </s> 😀").ids
    assert [loaded.id_to_token(i) for i in range(len(SPECIAL_TOKENS))] == list(SPECIAL_TOKENS)


def test_a_tokenizer_that_was_saved_while_it_cut_off_and_filled_up_reads_texts_whole(
    tokenizer: Tokenizer, tmp_path: Path
) -> None:
    saved = Tokenizer.from_str(tokenizer.to_str())
    saved.enable_truncation(4)
    saved.enable_padding(length=40)
    saved.save(str(tmp_path / "tokenizer.json"))
    loaded = load_tokenizer(tmp_path / "tokenizer.json")
    assert loaded.encode(TEXTS[0]).ids == tokenizer.encode(TEXTS[0]).ids


def test_a_missing_tokenizer_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"absent\.json: no such tokenizer file"):
        load_tokenizer(tmp_path / "absent.json")


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_text_whose_merges_are_left_out_is_the_same_text(text: str) -> None:
    pieces = with_dropout(TOKENIZER, 0.5).encode(text).ids
    assert TOKENIZER.decode(pieces) == text
    assert pieces[-1] == EOS_ID
    assert len(pieces) >= len(TOKENIZER.encode(text).ids)


def test_merges_are_left_out_of_a_copy() -> None:
    text = " ".join(TEXTS)
    before = TOKENIZER.encode(text).ids
    assert len(with_dropout(TOKENIZER, 0.5).encode(text).ids) > len(before)
    assert TOKENIZER.encode(text).ids == before
