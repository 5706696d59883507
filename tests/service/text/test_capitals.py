import pytest

from service.text.capitals import in_capitals, small_words, words_of_label
from service.text.spans import Span

KNOWN = {"close", "the", "door", "Paris", "USB", "in"}


def n_tokens(word: str) -> int:
    return 1 if word in KNOWN else len(word)


def read(text: str, *kept: Span) -> str:
    for word, small in reversed([*small_words(text, kept, n_tokens)]):
        text = text[: word.start] + small + text[word.end :]
    return text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CLOSE THE DOOR.", "Close the door."),
        ("THE DOOR. CLOSE THE DOOR!", "The door. Close the door!"),
        ("THE DOOR IN PARIS", "The door in Paris"),
        ("THE USB DOOR", "The USB door"),
        ("The USB door", "The USB door"),
        ("the door\nCLOSE THE DOOR", "the door\nClose the door"),
        ("CLOSE", "Close"),
        ("NASA", "NASA"),
        ("> [!CLOSE]\n> THE DOOR", "> [!CLOSE]\n> the door"),
        ("A", "A"),
    ],
)
def test_lines_in_capitals_are_read_as_small_letters(text: str, expected: str) -> None:
    assert read(text) == expected


def test_kept_spans_stay_and_their_letters_do_not_count() -> None:
    assert read("CLOSE THE {name} DOOR", Span(10, 16)) == "Close the {name} door"


@pytest.mark.parametrize("text", ["Schließt die Tür", "ﬁn", "дверь", "ドア"])
def test_no_letter_is_lost_in_capitals(text: str) -> None:
    assert len(in_capitals(text)) == len(text)
    assert not any(map(str.islower, in_capitals(text).replace("ﬁ", "")))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        *(
            (text, [])
            for text in ("A", "USB", "CANCEL", "GO HOME", "bread", "iPhone", "I go", "Two Dogs Go Home", "猫", "")
        ),
        ("Bread 2", ["Bread"]),
        ("Bread 2 Go", ["Bread", "Go"]),
        (" «Brot!» ", ["Brot"]),
        ("Öl", ["Öl"]),
        ("Don't go", ["Don't", "go"]),
        ("Open PDF", ["Open", "PDF"]),
    ],
)
def test_a_label_has_few_words_and_begins_with_a_capital(text: str, words: list[str]) -> None:
    assert [word.of(text) for word in words_of_label(text)] == words


def test_a_long_text_is_no_label_at_once() -> None:
    assert words_of_label("A'" * 100_000 + "_") == []
