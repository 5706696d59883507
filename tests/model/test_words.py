import pytest
from tokenizers import Tokenizer

from model.words import word_columns, word_spans


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A dog runs, doesn't it?", ["A", "dog", "runs", ",", "doesn't", "it", "?"]),
        ("L'homme n’a qu'un 'ami'.", ["L'", "homme", "n’", "a", "qu'", "un", "'", "ami", "'."]),  # noqa: RUF001
        ("Aujourd'hui, jusqu'à", ["Aujourd'hui", ",", "jusqu'", "à"]),
        ("We're I'm; 1,5 €", ["We're", "I'm", ";", "1,5", "€"]),
        ("  two  spaces\t", ["two", "spaces"]),
        ("猫が好き", ["猫", "が", "好", "き"]),
    ],
)
def test_a_text_is_split_into_words(text: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in word_spans(text)] == expected


def test_every_token_is_in_the_word_it_begins_in(tokenizer: Tokenizer) -> None:
    text = "  Two men are playing, aren't they? 🙂"
    encoding = tokenizer.encode(text)
    spans = word_spans(text)
    columns = word_columns(text, spans, encoding.offsets)
    assert columns.shape == (len(encoding), len(spans) + 1)
    assert (columns.sum(axis=1) == 1).all()
    for word, (start, end) in enumerate(spans):
        covering = [o for o, column in zip(encoding.offsets, columns, strict=True) if column[word]]
        assert min(o[0] for o in covering) <= start
        assert max(o[1] for o in covering) == end


def test_the_end_of_a_sequence_and_white_space_are_in_no_word(tokenizer: Tokenizer) -> None:
    text = "A  dog"
    encoding = tokenizer.encode(text)
    columns = word_columns(text, word_spans(text), encoding.offsets)
    nowhere = [token for token, column in zip(encoding.tokens, columns, strict=True) if column[-1]]
    assert nowhere == ["Ġ", "</s>"]
