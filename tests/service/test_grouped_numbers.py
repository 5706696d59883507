"""Numbers in groups of three digits: found as one language writes them, written as another does."""

import pytest

from service.markup.grouped_numbers import as_written, grouped_numbers


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("en", "It costs $425,000, or 1,234,567.", ["425,000", "1,234,567"]),
        ("en", "1,500.50, 1250.5 or 10,000-20,000.", ["1,500.50", "1250.5", "10,000", "20,000"]),
        ("en", "12,34 and 1,2345 and 3.141 and v1,000 and a-1,000 and 1,500.50.1", []),
        ("en", "25,000km, 1,234.5kg, 4,000m, 9,500kWh; 2,500th", ["25,000km", "1,234.5kg", "4,000m", "9,500kWh"]),
        ("de", "Es kostet 425.000 Euro.", ["425.000"]),
        ("de", "Am 12.05.1990 um 3,141", []),
        (
            "de",
            "Der Server ist 192.168.100.200. Es sind 192.168.100.300 oder 192.168.100.",
            ["192.168.100.300", "192.168.100"],
        ),
        ("de", "Es kostet 425.000,50 oder 1234,5", ["425.000,50", "1234,5"]),
        ("fr", "Il a 12 345,67 euros.", ["12 345,67"]),
        ("fr", "Appelez le 0 800 123 456", []),
        ("fr", "Il a 425 000 euros et 1\u202f500 amis.", ["425 000", "1\u202f500"]),
        ("fr", "Le 01 23 45 67 89, 3,141 et 2010 300 fois, 12 345 67", []),
        ("ru", "Это стоит 425 000 ₽ или 1\u00a0234,5.", ["425 000", "1\u00a0234,5"]),
        ("ru", "8 800 555-3535, +7 495 123-45-67, 8 500 000-9 000 000", ["8 500 000", "9 000 000"]),
        (
            "ja",
            "1億2000万人が640万円と1,234,567円、３万、三十万。",
            ["1億2000万", "640万", "1,234,567", "３万", "三十万"],
        ),
        ("ja", "１２０００円、１，２００円、２０１８年", ["１，２００"]),
        ("ja", "万一、十人で2万5千、3.5億、A1万、1.5.2万", ["2万5千", "3.5億"]),
        ("ja", "〇〇万円、数百万人、四万十川、百万遍、遺憾千万", []),
        ("ja", "5、6万人と1.5-2万円と１．５万人、1万3百円", ["5、6万", "1.5-2万", "１．５万", "1万3百"]),
        ("xx", "425,000", []),
    ],
)
def test_they_are_found_as_their_language_writes_them(language: str, text: str, expected: list[str]) -> None:
    assert [span.of(text) for span in grouped_numbers(text, language)] == expected


@pytest.mark.parametrize(
    ("source", "target", "original", "expected"),
    [
        ("en", "fr", "1,234,567.89", "1\u202f234\u202f567,89"),
        ("en", "de", "10,000-20,000", "10.000-20.000"),
        ("de", "en", "12.345,67", "12,345.67"),
        ("fr", "en", "12 345,67", "12,345.67"),
        ("de", "en", "1234,5", "1234.5"),
        ("de", "en", "12.345,67 €", "12,345.67 €"),
        ("en", "de", "€1,250", "€1.250"),
        ("de", "en", "1,799 €", "1.799 €"),
        ("ru", "en", "12 345,67 ₽", "12,345.67 ₽"),
        ("en", "ru", "1,234.5", "1\u00a0234,5"),
        ("en", "fr", "£10.50", "£10,50"),
        ("en", "fr", "1,200.5 m²", "1\u202f200,5 m²"),
        ("de", "en", "45,5 m³", "45.5 m³"),
        ("en", "fr", "£3.5bn", "£3,5bn"),
        ("en", "de", "25,000km-30,000km", "25,000km-30,000km"),
        ("de", "en", "25.000km", "25,000km"),
        ("ja", "en", "1億2000万", "120,000,000"),
        ("ja", "fr", "3.5万", "35\u202f000"),
        ("ja", "de", "２万5千", "25.000"),
        ("ja", "en", "1,200万", "12,000,000"),
        ("ja", "en", "百二十三億", "12,300,000,000"),
        ("ja", "en", "二〇万三千四百", "203,400"),
        ("ja", "en", "2兆3万", "2,000,000,030,000"),
        ("ja", "en", "1,234,567", "1,234,567"),
        ("ja", "de", "１，２３４．５", "1.234,5"),
        ("ja", "en", "１２０００", "12000"),
        ("ja", "en", "5〜10万", "50,000–100,000"),
        ("ja", "en", "五〜十万", "50,000–100,000"),
        ("ja", "en", "二、三千万", "20,000,000–30,000,000"),
        ("ja", "en", "二千〜三千万", "20,000,000–30,000,000"),
        ("ja", "en", "1万2千5百", "12,500"),
        ("ja", "en", "1億5百万", "105,000,000"),
        ("ja", "en", "１，２３４．５万", "12,345,000"),
        ("ja", "en", "5万km", "50,000km"),
        ("ja", "de", "￥3.5万", "¥35.000"),
        ("ja", "en", "０３－１２３４", "03-1234"),
        ("ja", "en", "東京2万", "東京2万"),
        ("en", "de", "A 425,000", "A 425,000"),
        ("en", "de", "425,000", "425.000"),
        ("de", "fr", "425,000", "425,000"),
        ("en", "fr", "10.50", "10.50"),
        ("en", "de", "https://a.com/?a=1,000", "https://a.com/?a=1,000"),
    ],
)
def test_they_are_written_as_the_target_language_does(source: str, target: str, original: str, expected: str) -> None:
    assert as_written(original, source, target) == expected


@pytest.mark.parametrize("piece", ["一", "１", "千", "1", "٣", "1万", "１，２３４", "1,", "千1", "〇", "二、"])
@pytest.mark.parametrize("language", ["ja", "en", "fr"])
def test_a_long_run_takes_no_longer_than_text(piece: str, language: str) -> None:
    """Quadratic time would be minutes."""
    grouped_numbers(piece * 20_000, language)
