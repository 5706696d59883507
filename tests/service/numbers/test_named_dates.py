"""Days with the name of their month: found in the forms of a language, written in those of another."""

import pytest

from service.numbers.named_dates import named_dates


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("Mar 4, 2024 and Sept 3rd", "en", [(2024, 3, 4), (None, 9, 3)]),
        ("the 3rd of May, 5 Mar. 2021; May 31, 1999.", "en", [(None, 5, 3), (2021, 3, 5), (1999, 5, 31)]),
        ("3. März 2024, 5. Sept., am 3. Mai 10 Uhr", "de", [(2024, 3, 3), (None, 9, 5), (None, 5, 3)]),
        ("le 1er mars 2024, 3 sept. et 5 août", "fr", [(2024, 3, 1), (None, 9, 3), (None, 8, 5)]),
        ("3 марта 2024 г. и 5 мая", "ru", [(2024, 3, 3), (None, 5, 5)]),
        ("3 de marzo de 2024", "es", [(2024, 3, 3)]),
        ("2024년 3월 4일", "ko", [(2024, 3, 4)]),
        ("May 2024, 3 Marchers, 1-3 May, May 5:30, sept 12, may 5", "en", []),
        ("les sept 12", "fr", []),
        ("3月4日", "ja", []),  # its digits tell
        ("March 3", "mul", []),
    ],
)  # fmt: skip
def test_days_are_found(text: str, language: str, expected: list[tuple[int | None, int, int]]) -> None:
    assert [(found.year, found.month, found.day) for found in named_dates(text, language)] == expected


def test_a_full_stop_belongs_to_short_names_alone() -> None:
    text = "Vom 1. Mai. Am 5. Sept. Am 3. Jan."
    assert [day.span.of(text) for day in named_dates(text, "de")] == ["1. Mai", "5. Sept.", "3. Jan."]


@pytest.mark.parametrize(
    ("language", "with_year", "without"),
    [
        ("en", "March 4, 2024", "March 4"),
        ("de", "4. März 2024", "4. März"),
        ("fr", "4 mars 2024", "4 mars"),
        ("ru", "4 марта 2024", "4 марта"),
        ("ja", "2024年3月4日", "3月4日"),
        ("es", "4 de marzo de 2024", "4 de marzo"),
        ("mul", None, None),
    ],
)
def test_a_day_is_written_as_a_language_does(language: str, with_year: str | None, without: str | None) -> None:
    assert [found.write(language) for found in named_dates("Mar 4, 2024, Mar 4", "en")] == [with_year, without]


@pytest.mark.parametrize(
    "text",
    [
        *("Feb 30", "Feb 29, 2023", "May 0", "0 May", "May 5, 0000", "May 32", "May 5 000 dogs", "May 5:30"),
        *("In May 12 dogs came.", "Step 2 May take a while.", "Call April 5 times.", "Type 2 May Be Better"),
    ],
)
def test_other_numbers_beside_such_a_word_are_no_days(text: str) -> None:
    assert not [*named_dates(text, "en")]


@pytest.mark.parametrize(
    "text", ["Feb 29", "on May 3 at ten", "on May 3rd dogs came", "May 3, 2024 dogs came", "May 3: go"]
)
def test_a_day_has_no_word_behind_it_that_it_may_count(text: str) -> None:
    assert len([*named_dates(text, "en")]) == 1
