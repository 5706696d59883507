import pytest

from service.text.labels import is_label


@pytest.mark.parametrize("text", ["i", "iii", "xii", "VII", "A", "F", "X", "2b", "4C", "a1", "(a)", "B.", "XIV"])
def test_letters_roman_numbers_and_short_codes_are_labels(text: str) -> None:
    assert is_label(text, "en")


@pytest.mark.parametrize(
    ("text", "language"),
    [("I", "en"), ("a", "fr"), ("я", "ru"), ("2e", "fr"), ("猫", "ja"), ("mix", "en"), ("dix", "fr")],
)
def test_a_word_of_the_language_is_none(text: str, language: str) -> None:
    assert not is_label(text, language)
