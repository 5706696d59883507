"""What a vocabulary could write in bytes only is kept, with the numbers beside it, and nothing else is."""

from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.kept.kept_spans import kept_spans
from service.kept.unwritable import hidden, unwritable
from service.text.tokenization import OPERATORS

KNOWN = "éèàçùêîôûäöüßÄÖÜœ«»„“’–абвгдежзийклмнопрстуфхцчшщъыьэюяё"


def can_write(text: str) -> bool:
    return all(character.isascii() or character.lower() in KNOWN for character in normalize("NFC", text))


def kept(text: str) -> list[str]:
    return [kept_span.span.of(text) for kept_span in kept_spans(text, language="en", can_write=can_write)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The table measures 80 × 120 cm.", ["80 × 120 cm"]),
        ("2 × 3 × 4 boxes", ["2 × 3 × 4"]),
        ("Take 20 µg or 20 μg.", ["20 µg", "20 μg"]),
        ("It costs 20¢, €5 or 12,50 €.", ["20¢", "€5", "12,50 €"]),
        ("Le train de 15 h coûte 1 250,50 €.", ["1 250,50 €"]),
        ("Si x ≤ 5, temp ≥ 20 or x≥y", ["≤ 5", "≥ 20", "≥"]),
        ("±5 mm at 20 °C, 30° and §7 more", ["±5 mm", "20 °C", "30°", "§7"]),
        ("-5 °C, -€20, (<5 °C) and ~€20\n-5 °C", ["-5 °C", "-€20", "<5 °C", "~€20", "-5 °C"]),
        ("5-10 °C, A-5 °C", ["10 °C", "5 °C"]),
        ("45 m², 2½, H₂O", ["45 m²", "2½", "H₂O"]),
        ("Kraków, Wrocław and Smørrebrød", ["Kraków", "Wrocław", "Smørrebrød"]),
        ("H̷e̷l̷l̷o̷ my friend", ["H̷e̷l̷l̷o̷"]),
        ("Windows® and a ∞ b", ["®", "∞"]),
        ("「Good morning」 he said。So", ["「", "」", "。"]),
        ("I ❤️ you 👩‍👩‍👧 1️⃣ 🇫🇷🎉", ["❤️", "👩‍👩‍👧", "1️⃣", "🇫🇷🎉"]),
        ("2 Øre", ["2 Øre"]),
        ("2 Kraków", ["Kraków"]),
    ],
)
def test_signs_words_and_emoji_that_cannot_be_written_are_kept(text: str, expected: list[str]) -> None:
    assert kept(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("If x > 5 or y<=3, a -> b => c", ["x > 5", "y<=3", "->", "=>"]),
        ("5 > 3 (>= 2), (<10 ms), at 5em <= x \\n <20 °C", ["5 > 3", ">= 2", "<10 ms", "<=", "\\n", "<20 °C"]),
        ("A || b|c, and\\or ^ and <- --> >>", ["||", "|", "\\", "^", "<- --> >>"]),
        ("a = b, so :>", []),
        ("> Go > 5\n>> Go\n| a | b |\n1 |\nFile > Open, -> go", ["> 5", "->"]),
        ("{a} > {b}, <b>One</b>, x.org/a|b, {a}|{b}", ["{a}", ">", "{b}", "<b>", "</b>", "x.org/a|b", "{a}|{b}"]),
        ("I <3 you, a <5 m walk, it's > 5, ab>5", ["<3", "<5 m", "> 5", ">5"]),
    ],
)  # fmt: skip
def test_operators_that_cannot_be_written_are_kept(text: str, expected: list[str]) -> None:
    spans = kept_spans(text, language="en", can_write=lambda text: can_write(text) and OPERATORS.isdisjoint(text))
    assert [span.span.of(text) for span in spans] == expected


def test_escaped_operators_are_kept_as_others_are() -> None:
    def can_write_no_operator(text: str) -> bool:
        return OPERATORS.isdisjoint(text)

    text = "It is 5 &lt; 6 &amp; 7 &gt; 3 or x &gt;= 5."
    spans = kept_spans(text, can_write=can_write_no_operator)
    assert [span.span.of(text) for span in spans] == ["5 &lt; 6", "&amp;", "7 &gt; 3", "x &gt;= 5"]


def test_marks_of_lists_are_no_words_of_their_sentences() -> None:
    assert kept("① Go   ② Come\\n② So ③\n1．One 2．Two\n - • Three •\n{a}\\n") == ["\\n", "③", "．", "•", "{a}", "\\n"]


def test_japanese_letters_touch_what_is_kept_and_do_not_join_it() -> None:
    text = "約20µgと80×120と20€を"
    spans = kept_spans(text, language="ja", can_write=lambda text: all(c > "\u3040" or can_write(c) for c in text))
    assert [span.span.of(text) for span in spans] == ["20µg", "80×120", "20€"]


@pytest.mark.parametrize(
    "text",
    [
        "C'est « déjà » l'ŒUVRE de l'Île.",
        "„Größe“ – ÜBUNG, it’s 5–10 or “so”…"[:-1],
        "5 % of 10 & 3 * 2 ~ # @",
        "日本の麒麟",
        "e\u0301te\u0301, и\u0306",
        "Он сказал: «ПРИВЕТ»",
        "a\u00adb\ufeff",
        "‚so‘",
    ],
)
def test_writable_signs_are_left_to_the_model(text: str) -> None:
    assert [*unwritable(text, can_write)] == []


@pytest.mark.parametrize("character", [*"\u034f\u115f\u200c\u200d\u2062\u3164\ufe0f\U000e0100"])
def test_a_character_without_a_sign_is_neither_read_nor_kept(character: str) -> None:
    text = f"The gar{character}den{character} is {character}here."
    assert [(span.of(text), instead) for span, instead in hidden(text, can_write)] == [(character, "")] * 3
    assert kept(text) == []
    assert [*hidden(text, lambda _: True)] == []


def test_a_joined_emoji_stays_whole() -> None:
    assert kept("She is 👩\u200d🚀 \u200dnow \u2764\ufe0f.") == ["👩\u200d🚀", "\u2764\ufe0f"]


def test_a_wide_full_stop_ends_a_sentence() -> None:
    text = "My friend。I am「tired」。"
    assert [role for _, role in sorted(unwritable(text, can_write), key=lambda item: item[0].start)] == [
        *["break", "mark", "mark", "break"]
    ]


@given(st.text(st.sampled_from("a1 .,×°€µ²。「é™🎉—\u0337")))
def test_whatever_cannot_be_written_is_in_a_span(text: str) -> None:
    spans = [kept_span.span for kept_span in kept_spans(text, can_write=can_write)]
    left = "".join(c for i, c in enumerate(text) if not any(span.start <= i < span.end for span in spans))
    assert all(can_write(character) or character == "—" for character in left)
