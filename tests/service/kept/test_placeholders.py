"""What is kept reaches the model as words that it copies, or not at all."""

import pytest

from service.kept import placeholders
from service.kept.kept_spans import read_as_other
from service.kept.restoration import keep_original
from service.text.sentences import ends_of, sentence_spans
from service.text.spans import Span
from tests.service.stand_ins import protect, restore


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{0}Files are missing.", "Files are missing."),
        ("{i}Look!{/i} Go.", "Look! Go."),
        ("Line one.\\nLine two.", "Line one.\nLine two."),
        ("I \U0001f496 you :smile: all", "I you all"),
        ("dog[^1] runs", "dog runs"),
        ('a\\"b', "a b"),
    ],
)
def test_symbols_are_not_shown_to_the_model(text: str, expected: str) -> None:
    protected = protect(text)
    assert protected.text == expected
    assert keep_original(protected).text == text


@pytest.mark.parametrize("text", ["[^1] [^2] A dog.", "</b> </i> a dog", "&nbsp; &nbsp;;"])
def test_the_space_between_two_marks_that_begin_a_line_is_taken_out_once(text: str) -> None:
    protected = protect(text)
    taken_out = [placeholder.taken_out for placeholder in protected.placeholders]
    assert taken_out[0].end <= taken_out[1].start
    assert restore(protected, protected.text).text == text


def test_an_apostrophe_of_program_text_is_read_as_one() -> None:
    text = "Don\\'t go"
    assert placeholders.protect(text, read_as=read_as_other(text)).text == "Don't go"


def test_a_dash_between_letters_or_digits_is_read_as_a_hyphen() -> None:
    text = "K\u20117 lasted 1914\u20131918 \u2013 and more"
    assert placeholders.protect(text, read_as=read_as_other(text)).text == "K-7 lasted 1914-1918 \u2013 and more"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("https://x.org", False), ("{a}: {b} (50 %)", False), ("{a} is", True), ("50 %", False), ("", False)],
)
def test_text_of_kept_spans_and_marks_has_no_words(text: str, expected: bool) -> None:
    protected = protect(text)
    assert protected.has_words(Span(0, len(protected.text))) == expected
    assert keep_original(protected).text == text


@pytest.mark.parametrize(
    ("language", "text", "keep", "expected"),
    [
        ("en", "I live in the U.S. It is big.", "U.S.", ["I live in the Boston", "It is big."]),
        ("en", "The U.S. Army is big. So is {a}.", "U.S.", ["The Boston Army is big.", "So is Tom."]),
        ("en", "Thank you 🙏 I love it 😍 See you soon", "", ["Thank you", "I love it", "See you soon"]),
        ("en", "№ 1 Open it.\n- № 2 Go.", "", ["Open it.", "Go."]),
        ("ja", "これは娘。は歌う。", "娘。", ["これはBostonは歌う。"]),
    ],
)
def test_a_sentence_ends_behind_what_is_kept_where_it_does_in_the_text(
    language: str, text: str, keep: str, expected: list[str]
) -> None:
    at = text.index(keep)
    protected = protect(text, [Span(at, at + len(keep))] if keep else [])
    parted = protected.cut_after_placeholders(sentence_spans(protected.text, language), ends_of(text, language))
    assert [span.of(protected.text).strip() for span in parted] == expected


def test_words_are_those_of_the_part_that_is_asked_for() -> None:
    protected = protect("Go.\n{name}\n{a} is")
    lines = [Span(0, 3), Span(4, 7), Span(8, len(protected.text))]
    assert [protected.has_words(line) for line in lines] == [True, False, True]
