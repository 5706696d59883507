import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifest.schema import AlignmentChoice
from service.passes.attention import alignment_weights
from service.tasks.translation.alignment import (
    AlignedSentence,
    TextView,
    after_prefix,
    align,
    split_words,
    word_weights,
    words_of,
)
from service.text.spans import NO_EDITS
from service.text.tokens import Token


def tokens(text: str, *pieces: str) -> list[Token]:
    """Pieces of a text in order, and the end of sequence."""
    found, end = [], 0
    for piece in pieces:
        start = text.index(piece, end)
        end = start + len(piece)
        found.append(Token(piece, start, end))
    return [*found, Token("</s>", len(text), len(text))]


def view(text: str) -> TextView:
    return TextView(text, NO_EDITS, text, text, NO_EDITS)


RED_CAR = AlignedSentence(
    tokens("The red car", "The", "red", "car"),
    tokens("La voiture rouge", "La", "voi", "ture", "rouge"),
    np.array(
        [
            [0.9, 0.0, 0.1, 0.0],
            [0.1, 0.0, 0.8, 0.1],
            [0.1, 0.5, 0.4, 0.0],  # a part of a word that looks elsewhere
            [0.0, 0.9, 0.1, 0.0],
            [0.0, 0.0, 0.0, 1.0],
        ],
        np.float32,
    ),
)


def test_each_target_token_is_linked_to_the_source_token_it_attends_to_most() -> None:
    found = align([RED_CAR], view("The red car"), view("La voiture rouge"))
    assert found.pairs == "0-0 2-1 1-2 1-3"
    assert found.spans[1] == ((8, 11), (3, 6))
    assert [token.token for token in found.target] == ["La", "voi", "ture", "rouge", "</s>"]


def test_words_are_linked_by_all_their_tokens_together() -> None:
    found = align([RED_CAR], view("The red car"), view("La voiture rouge")).words
    assert found.pairs == "0-0 2-1 1-2"
    assert found.spans == [((0, 3), (0, 2)), ((8, 11), (3, 10)), ((4, 7), (11, 16))]


def test_nothing_is_linked_to_the_tokens_that_name_a_language() -> None:
    """Models look at them a lot, from where they begin a target, and from anywhere."""
    weights = after_prefix(np.array([[1, 0, 0, 0], [0.6, 0.3, 0.1, 0], [0.5, 0, 0.1, 0.4]], np.float32), 1)
    np.testing.assert_allclose(weights, [[0, 0, 0, 0], [0, 0.75, 0.25, 0], [0, 0, 0.2, 0.8]], atol=1e-6)
    english, french = Token("eng_Latn", 0, 0), Token("fra_Latn", 0, 0)
    sentence = AlignedSentence(
        [english, *tokens("Yes sir", "Yes", "sir")], [french, Token("Oui", 0, 3), Token("!", 4, 5)], weights
    )
    found = align([sentence], view("Yes sir"), view("Oui !"))
    assert (found.pairs, found.words.pairs) == ("1-1", "0-0")
    assert found.spans == [((0, 3), (0, 3))]


def test_a_target_that_attends_to_the_end_of_the_source_is_linked_to_nothing() -> None:
    sentence = AlignedSentence(
        tokens("Yes", "Yes"), tokens("Oui !", "Oui", "!"), np.array([[0.9, 0.1], [0.2, 0.8], [0, 1]], np.float32)
    )
    found = align([sentence], view("Yes"), view("Oui !"))
    assert found.pairs == found.words.pairs == "0-0"


def test_the_second_sentence_counts_on_from_the_first() -> None:
    text, target = "The red car\nThe red car", "La voiture rouge\nLa voiture rouge"
    second = AlignedSentence(
        [token.moved(12) for token in RED_CAR.source], [token.moved(17) for token in RED_CAR.target], RED_CAR.weights
    )
    found = align([RED_CAR, second], view(text), view(target))
    assert found.pairs == "0-0 2-1 1-2 1-3 4-5 6-6 5-7 5-8"
    assert found.words.pairs == "0-0 2-1 1-2 3-3 5-4 4-5"
    assert [text[slice(*s)] for s, _ in found.words.spans] == ["The", "car", "red"] * 2
    assert [target[slice(*t)] for _, t in found.words.spans] == ["La", "voiture", "rouge"] * 2


def test_word_weights_sum_to_what_is_not_on_the_end_of_the_source() -> None:
    weights = word_weights(RED_CAR, split_words("The red car"), split_words("La voiture rouge"))
    np.testing.assert_allclose(weights[1], [0.1, 0.25, 0.6], atol=1e-6)
    np.testing.assert_allclose(weights.sum(axis=1), [1.0, 0.95, 1.0], atol=1e-6)


def test_the_chosen_heads_are_averaged_in_the_row_where_a_token_is_read() -> None:
    cross = np.random.default_rng(0).random((2, 3, 4, 5)).astype(np.float32)
    produced = alignment_weights(cross, AlignmentChoice(layer=1, heads=(0, 2), next_row=False))
    read = alignment_weights(cross, AlignmentChoice(layer=1, heads=(0, 2), next_row=True))
    np.testing.assert_allclose(produced, (cross[1, 0] + cross[1, 2]) / 2)
    np.testing.assert_array_equal(read[:3], produced[1:])
    np.testing.assert_array_equal(read[3], produced[3])  # nothing is read after the last token


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't stop!", ["Don't", "stop", "!"]),
        ("l'homme d'à côté", ["l'", "homme", "d'", "à", "côté"]),
        ("Aujourd'hui quelqu’un d’autre", ["Aujourd'hui", "quelqu’un", "d’", "autre"]),  # noqa: RUF001
        ("Jusqu'à Lorsqu'il L'État", ["Jusqu'", "à", "Lorsqu'", "il", "L'", "État"]),
        ("Quell'uomo dell'Italia, un'idea", ["Quell'", "uomo", "dell'", "Italia", ",", "un'", "idea"]),
        ("B's o'clock rock'n'roll c'est п'ять", ["B's", "o'clock", "rock'n'roll", "c'", "est", "п'ять"]),
        ("3,5 km (env.)", ["3,5", "km", "(", "env", ".)"]),
        ("cafe\u0301 👩‍👩‍👧", ["cafe\u0301", "👩‍👩‍👧"]),
        ("日本へ", ["日", "本", "へ"]),
        ("Tomはコーヒーを飲む。", ["Tom", "は", "コーヒー", "を", "飲", "む", "。"]),
        ("'quoted'", ["'", "quoted", "'"]),
        (" \n\t", []),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert [word.token for word in split_words(text)] == expected


def test_letters_without_spaces_are_one_word_with_those_of_the_same_token() -> None:
    text = "犬 は食べる。"
    for pieces, expected in (
        (["犬", "は", "食べ", "る", "。"], ["犬", "は", "食べ", "る", "。"]),
        (["犬 は", "食", "べる。"], ["犬", "は", "食", "べる。"]),
    ):
        assert [word.token for word in words_of(tokens(text, *pieces), text)] == expected


def test_japanese_words_of_a_translation_are_aligned_one_by_one() -> None:
    sentence = AlignedSentence(
        tokens("The dog runs.", "The", "dog", "runs", "."),
        tokens("犬が走る。", "犬", "が", "走る", "。"),
        np.array(
            [[0, 0.9, 0.1, 0, 0], [0.1, 0.6, 0.3, 0, 0], [0, 0.1, 0.9, 0, 0], [0, 0, 0, 0.9, 0.1], [0, 0, 0, 0, 1]],
            np.float32,
        ),
    )
    found = align([sentence], view("The dog runs."), view("犬が走る。")).words
    assert [word.token for word in found.target] == ["犬", "が", "走る", "。"]
    assert found.spans == [((4, 7), (0, 1)), ((4, 7), (1, 2)), ((8, 12), (2, 4)), ((12, 13), (4, 5))]


@given(st.text())
def test_words_are_parts_of_the_text_and_only_white_space_is_between(text: str) -> None:
    found = split_words(text)
    assert all(text[word.start : word.end] == word.token for word in found)
    covered = {i for word in found for i in range(word.start, word.end)}
    assert all(text[i].isspace() for i in range(len(text)) if i not in covered)
