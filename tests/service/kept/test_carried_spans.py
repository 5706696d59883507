import pytest

from service.kept.carried_spans import carried_spans, unwritable_amounts
from service.numbers.comparison import compare


@pytest.mark.parametrize(
    ("text", "direction", "expected"),
    [
        ("It is $1,344.75.", "en-de", {"$1,344.75": "1.344,75\xa0$"}),
        ("Das sind 1.344,75 $.", "de-en", {"1.344,75 $": "$1,344.75"}),
        ("It is $1.5 million.", "en-ja", {"$1.5 million": "$150万"}),
        ("$344.5 million, $1.144 billion", "en-ja", {"$344.5 million": "$3.445億", "$1.144 billion": "$11.44億"}),
        ("$1.144 billion", "en-de", {"$1.144 billion": "1,144\xa0Mrd.\xa0$"}),
        ("193,544 people, 7 744", "en-fr", {"193,544": "193\u202f544", "7 744": "7 744"}),
        ("25.5% of 15th B58", "en-de", {"25.5%": "25,5\xa0%", "15th": "15", "B58": "B58"}),
        ("From 1914\u20131918 in K\u20117", "en-de", {"1914\u20131918": "1914\u20131918", "K\u20117": "K\u20117"}),
        (
            "1995年8月8日14時5分、5月3日、8月",
            "ja-en",
            {"1995年8月8日": "August 8, 1995", "14時5分": "14:05", "5月3日": "May 3", "8月": "August"},
        ),
        ("5千円と￥1,000", "ja-de", {"5千": "5.000", "￥1,000": "1.000\xa0¥"}),
        ("65 km", "en-ru", {"65 km": "65 км"}),
        ("à 15 h 30", "fr-de", {"15 h 30": "15:30"}),
        ("itemCount", "en-ru", {"itemCount": "itemCount"}),
        ("It is -30 or -$1,344.75.", "en-de", {"-30": "-30", "-$1,344.75": "-1.344,75\xa0$"}),
        ("Mar 3rd, 2024 or May 5", "en-fr", {"Mar 3rd, 2024": "3 mars 2024", "May 5": "5 mai"}),
        ("Mar 3 or 1万5000円", "en-de", {"Mar 3": "3. März", "1万5000": "15.000"}),
    ],
)
def test_a_span_is_written_as_the_target_language_does(text: str, direction: str, expected: dict[str, str]) -> None:
    languages = direction.split("-")
    spans = carried_spans(text, compare(text, "", *languages), *languages)
    assert {kept.span.of(text): kept.written for kept in spans} == expected


@pytest.mark.parametrize(
    ("text", "direction", "expected"),
    [
        ("A loss of £3.2 million, £20 or $5 million.", "en-ja", {"£3.2 million": "£320万"}),
        ("-£3.2 million or £3bn", "en-de", {"-£3.2 million": "-3,2\xa0Mio.\xa0£"}),
        ("3,2 Millionen £", "de-en", {"3,2 Millionen £": "£3.2M"}),
        ("￡5 million", "en-de", {"￡5 million": "5\xa0Mio.\xa0£"}),
        ("5 km, €5 million, £" + "1" * 5000, "en-de", {}),
    ],
)  # fmt: skip
def test_amounts_are_carried_if_a_model_cannot_write_their_sign(
    text: str, direction: str, expected: dict[str, str]
) -> None:
    spans = unwritable_amounts(text, lambda sign: sign != "£", *direction.split("-"))
    assert {kept.span.of(text): kept.written for kept in spans} == expected


def test_an_unknown_language_changes_nothing() -> None:
    spans = carried_spans("$1,344.75", compare("$1,344.75", "", "en", "mul"), "en", "mul")
    assert [kept.written for kept in spans] == ["$1,344.75"]
