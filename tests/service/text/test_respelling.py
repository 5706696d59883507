"""What models have hardly seen, and how they have seen it."""

# ruff: noqa: RUF001  Strange characters are what is tested.

from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.text.placeholders import protect
from service.text.respelling import degrees_in_words, respellings
from service.text.spans import edited


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\ufeffA d\u200bog", "A dog"),
        ("Kranken\u00adhaus", "Krankenhaus"),
        (normalize("NFD", "Où est l'école ?"), "Où est l'école ?"),
        ("the ﬁsh, oﬃce", "the fish, office"),
        ("The man—a doctor--is here…", "The man – a doctor – is here..."),
        *((f"a{hyphens}b", "a – b") for hyphens in ("—", "--")),
        *((f"l{apostrophe}eau", "l'eau") for apostrophe in "´`"),
        ("and…", "and..."),
        (normalize("NFD", "été—beau, é´a"), "été – beau, é'a"),
        ("e\u00ad\u0301, a\u200b—b, don\u00ad´t, a-\u200b-b", "é, a – b, don't, a – b"),
        ("же\u0300лтый", "желтый"),
        ("за\u0301мок, " + normalize("NFD", "ёлка и чай"), "замок, ёлка и чай"),
        ("私は…行く……。Wait…… no…", "私は…行く……。Wait...... no..."),
        ("か\u3099くせい 葛\U000e0100飾 \ufa19", "がくせい 葛飾 神"),
        ("ＮＨＫのﾊﾞﾅﾅ１２、50㎡、20℃", "NHKのバナナ１２、50m2、20°C"),
        ("a — b, 5´, -- x, é", "a — b, 5´, -- x, é"),
    ],
)
def test_what_models_have_hardly_seen_is_written_as_they_have_seen_it(text: str, shown: str) -> None:
    assert edited(text, respellings(text))[0] == shown
    assert protect(text).text == shown


@given(st.text("aé \n\x00\x1b\x7fe\u0301\u036f\u00ad\u200b\u2069\ufeffﬀﬄ´`…—-"))
def test_nothing_is_missed_in_a_text_that_looks_usual(text: str) -> None:
    assert edited(text + "\n´", respellings(text + "\n´"))[0] == edited(text, respellings(text))[0] + "\n´"


@given(st.text(st.one_of(st.sampled_from("aé e\u0301\u200b—…"), st.characters(exclude_categories=["Cs"]))))
def test_once_is_enough(text: str) -> None:
    once, _ = edited(text, respellings(text))
    assert "\u200b" not in once
    assert normalize("NFC", edited(once, respellings(once))[0]) == normalize("NFC", once)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("It is 20 °C today.", "It is 20 degrees today."),
        ("From 5 ℃ to 90℉.", "From 5 degrees to 90 degrees Fahrenheit."),
        ("20℃s, ℃", "20℃s, ℃"),
        ("-5°C, 68\u00a0°\u00a0F", "-5 degrees, 68 degrees Fahrenheit"),
        ("30° to the left, 20 °Cs, °C", "30° to the left, 20 °Cs, °C"),
    ],
)
def test_temperatures_are_read_in_words_where_the_sign_is_never_written(text: str, shown: str) -> None:
    for target in ("ru", "ja"):
        assert edited(text, degrees_in_words(text, "en", target))[0] == shown
    assert list(degrees_in_words(text, "en", "fr")) == []
    assert list(degrees_in_words(text, "fr", "ru")) == []


def test_what_is_kept_keeps_its_sign() -> None:
    text = "See https://a.org/20°C at 20 °C or 30 ℃."
    protected = protect(text, in_words=degrees_in_words(text, "en", "ru"))
    assert protected.text == "See Toronto at 20 degrees or 30 degrees."
    assert [span.of(text) for span in protected.edits.old[-2:]] == [" °C", " ℃"]
