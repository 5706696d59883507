from decimal import Decimal

import pytest

from service.numbers.numerals import numeral_value, readings


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("06", [{"6"}]),
        ("193,544", [{"193544", "193.544"}]),
        ("1.234,50", [{"1234.50"}]),
        ("7 744", [{"7744"}]),
        ("0.125", [{"0.125"}]),
        ("8.8.1995", [{"8"}, {"8"}, {"1995"}]),
    ],
)
def test_digits_are_read_in_each_language(written: str, expected: list[set[str]]) -> None:
    assert readings(written) == expected


@pytest.mark.parametrize(
    ("numeral", "value"),
    [
        ("三百", 300),
        ("125万", 1_250_000),
        ("1億2,000万", 120_000_000),
        ("二十三", 23),
        ("万", 10_000),
        ("5千", 5_000),
        ("1万5000", 15_000),
    ],
)
def test_kanji_are_read(numeral: str, value: int) -> None:
    assert numeral_value(numeral) == Decimal(value)
