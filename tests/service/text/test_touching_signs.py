import pytest

from service.text.spans import replace_spans
from service.text.touching_signs import apart, excess_blanks


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Open the door/window.", "Open the door / window."),
        ("The dog\u2014the old one\u2014sleeps.", "The dog \u2014 the old one \u2014 sleeps."),
        ("red,green;blue", "red, green; blue"),
        ("Wait...what", "Wait... what"),
        ("[The dog] sleeps", "[ The dog] sleeps"),
        ("-It sleeps.", "- It sleeps."),
        ("дверь/окно", "дверь / окно"),
    ],
)
def test_signs_that_touch_words_are_read_with_blanks(text: str, expected: str) -> None:
    assert replace_spans(text, apart(text))[0] == expected


@pytest.mark.parametrize(
    "text", ["km/h", "well-known", "don't", "9:30", "a,b", "10,000", "std::vector", "end.", "ドア/窓"]
)
def test_other_signs_are_read_as_they_are(text: str) -> None:
    assert [*apart(text)] == []


@pytest.mark.parametrize(
    ("source", "signs", "target", "expected"),
    [
        ("door / window", [" / "], "porte / fenêtre", "porte/fenêtre"),
        ("Color: red", [": "], "Couleur\u00a0: rouge", "Couleur:rouge"),
        ("The dog \u2014 the old one", [" \u2014 "], "Der Hund \u2013 der alte", "Der Hund\u2013der alte"),
        ("see [ the dog]", ["[ "], "voir [ le chien]", "voir [le chien]"),
        ("red, green, or blue", [", "], "rouge, vert, ou bleu", "rouge, vert, ou bleu"),
        ("I know, but he said", [", "], "Ich weiß, aber er sagte, dass", "Ich weiß, aber er sagte, dass"),
        ("copy - input and output", ["- "], "Ein- und Ausgabe kopieren", "Ein- und Ausgabe kopieren"),
        ("Rome – Oslo and Ulm — Bonn", [" – ", " — "], "Rom – Oslo und Ulm – Bonn", "Rom–Oslo und Ulm–Bonn"),
    ],
)
def test_the_translation_has_no_blanks_where_the_source_has_none(
    source: str, signs: list[str], target: str, expected: str
) -> None:
    blanks = [(span, "") for span in excess_blanks(target, source, signs)]
    assert replace_spans(target, blanks)[0] == expected
