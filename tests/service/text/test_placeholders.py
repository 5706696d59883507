"""What is kept reaches the model as words that it copies, or not at all."""

import pytest

from service.text import placeholders
from service.text.kept_spans import apostrophes
from service.text.restoration import restore, untranslated
from service.text.spans import Span
from tests.service.stand_ins import KNOWN, protect

pytestmark = pytest.mark.usefixtures("known_stand_ins")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello {name}, see https://x.org.", "Hello Tom, see Boston."),
        ("%d files of {count}", "37 files of 48"),
        ("{a} and {b}", "Tom and Paul"),
        ("Tom, {a} and BOSTON, https://x.org, 37 %d", "Tom, Paul and BOSTON, Chicago, 37 48"),
        ("Nothing here", "Nothing here"),
        ("トムは{a}に会った", "トムはPaulに会った"),
        ("Том видел {a}", "Том видел Paul"),
        ("Потом {a}", "Потом Tom"),
    ],
)
def test_stand_ins_are_words_that_the_text_does_not_have(text: str, expected: str) -> None:
    assert protect(text).text == expected


def test_a_text_that_has_all_stand_ins_gets_another() -> None:
    text = " ".join([*KNOWN["person"], "Xxx", "{a}", "{b}"])
    assert protect(text).text.endswith(" Xxx Xxxx Xxxx")
    assert restore(protect(text), "Xxxx x Xxxx").text == "{a} x {b}"


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
def test_what_is_no_word_is_not_shown(text: str, expected: str) -> None:
    protected = protect(text)
    assert protected.text == expected
    assert untranslated(protected).text == text


def test_an_apostrophe_of_program_text_is_read_as_one() -> None:
    text = "Don\\'t go"
    assert placeholders.protect(text, read_as=apostrophes(text)).text == "Don't go"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("https://x.org", False), ("{a}: {b} (50 %)", False), ("{a} is", True), ("50 %", False), ("", False)],
)
def test_what_is_only_kept_spans_and_marks_has_no_words(text: str, expected: bool) -> None:
    protected = protect(text)
    assert protected.has_words(Span(0, len(protected.text))) == expected
    assert untranslated(protected).text == text


def test_words_are_those_of_the_part_that_is_asked_for() -> None:
    protected = protect("Go.\n{name}\n{a} is")
    lines = [Span(0, 3), Span(4, 7), Span(8, len(protected.text))]
    assert [protected.has_words(line) for line in lines] == [True, False, True]
