import pytest

from service.numbers.number_forms import forms_of
from service.numbers.verified_spans import is_amount, verified_spans
from tests.growth import check_linear


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("Use itemCount, not count.", "en", ["itemCount"]),
        ("$344.75 or 7 744 at 06:33:39 on 8.8.1995", "en", ["344.75", "7 744", "06:33:39", "8.8.1995"]),
        ("Platform K\u20117, 1914\u20131918", "en", ["K\u20117", "1914", "1918"]),
        ("125万円、14時5分、8月8日", "ja", ["125万", "14時5分", "8月8日"]),
        ("in 2010 500 people", "en", ["2010 500"]),
        ("no number", "en", []),
    ],
)
def test_numbers_and_names_are_found(text: str, language: str, expected: list[str]) -> None:
    assert [verified_span.text for verified_span in verified_spans(text, forms_of(language))] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("$304.75 USD", True), ("1 250,50 EUR", True), ("CHF 20.00", True), ("20 CATS", False), ("304.75 km", False)],
)
def test_amounts_with_the_code_of_a_currency_are_known(text: str, expected: bool) -> None:
    assert is_amount(text) is expected


@pytest.mark.parametrize("piece", ["1,", "1,,", "a", "aB", "1 ", "1:", "1.1.", "千", "1千,", "$", "A-", "1-"])
def test_a_long_text_takes_time_in_proportion(piece: str) -> None:
    forms = forms_of("ja")
    check_linear(lambda n: [*verified_spans(piece * n, forms)], 20_000)
