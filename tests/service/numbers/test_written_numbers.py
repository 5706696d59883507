import pytest

from service.numbers.written_numbers import write_numbers
from service.text.spans import Span


@pytest.mark.parametrize(
    ("source", "target", "languages", "expected"),
    [
        ("12,000 people", "12.000 personnes", ("en", "fr"), "12\u202f000 personnes"),
        ("12,000 people", "12 000 personnes", ("en", "fr"), "12 000 personnes"),
        ("12,000", "12,000", ("en", "de"), "12.000"),
        ("12.500 Leute", "12.500 people", ("de", "en"), "12,500 people"),
        ("25.50 €", "25.50 €", ("en", "fr"), "25,50 €"),
        ("Pi is 3.141.", "Pi ist 3.141.", ("en", "de"), "Pi ist 3.141."),
        ("Version 2.50", "Version 2.50", ("en", "de"), "Version 2.50"),
        ("It is 10\u00a0km away.", "C'est à 10 km.", ("en", "fr"), "C'est à 10\u00a0km."),
        ("im 21. Jahrhundert", "the 21th century", ("de", "en"), "the 21st century"),
        ("на 3-м и 11-м этаже", "on the 3th and 11st floor", ("ru", "en"), "on the 3rd and 11th floor"),
        ("le XXIIe siècle", "the 22th century", ("fr", "en"), "the 22nd century"),
        ("1 500,50 €, 12,5 %", "1 500,50 €, 12,5 %", ("fr", "en"), "1,500.50 €, 12.5 %"),
        ("A 2.5-3.5 % rise", "2.5–3.5 % mehr", ("en", "de"), "2,5–3,5 % mehr"),
        ("From 0.5° to -5.25 °C", "De 0.5° à -5.25 °C", ("en", "fr"), "De 0,5° à -5,25 °C"),
        ("See page\u00a05 or 6.", "Voir page 5 ou 6.", ("en", "fr"), "Voir page\u00a05 ou 6."),
    ],
)
def test_numbers_are_written_in_the_target_form(
    source: str, target: str, languages: tuple[str, str], expected: str
) -> None:
    assert write_numbers(source, target, languages, []) == expected


def test_kept_spans_stay() -> None:
    assert write_numbers("12,000", "12,000", ("en", "de"), [Span(0, 6)]) == "12,000"
