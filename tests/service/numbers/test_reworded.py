import pytest

from service.numbers.reworded import HINT, reworded
from service.text.spans import replace_spans
from tests.growth import check_linear


@pytest.mark.parametrize(
    ("text", "languages", "expected"),
    [
        ("The 2nd edition of the 21st century", ("en", "fr"), "The second edition of the 21st century"),
        ("THE 3RD FLOOR", ("en", "de"), "THE third FLOOR"),
        ("On the 4th of July", ("en", "de"), "On the 4th of July"),
        ("section 1.2nd", ("en", "de"), "section 1.2nd"),
        ("Mar 3rd, 2024", ("en", "fr"), "March 3, 2024"),
        ("on May 3rd", ("en", "ja"), "on May 3"),
        ("Dec 2024, 25 Dec. 2024", ("en", "ja"), "December 2024, 25 December 2024"),
        ("Mar 3-5, Dec 5%", ("en", "ja"), "Mar 3-5, Dec 5%"),
        ("am 3. Jan. 2024", ("de", "en"), "am 3. Januar 2024"),
        ("3 янв. 2024 г., март 2024", ("ru", "en"), "3 января 2024 г., март 2024"),
        ("It opens at 9am.", ("en", "fr"), "It opens at 9 o'clock."),
        ("It opens at 9am.", ("en", "ko"), "It opens at 9am."),  # it counts twelve hours too
        ("at 3:30 p.m. or at 12 AM", ("en", "de"), "at 15:30 or at 0:00"),
        ("It ended at 3 p.m. We left at 4 p.m.", ("en", "ru"), "It ended at 15 o'clock. We left at 16 o'clock."),
        ("9am–5pm, 9-5pm", ("en", "ja"), "9:00–17:00, 9:00-17:00"),
        ("from 9 to 5pm, between 3 and 4 pm", ("en", "ja"), "from 9:00 to 17:00, between 15:00 and 16:00"),
        ("à 9h, de 1h à 17 h, 9h30, 12 h 15", ("fr", "en"), "à 9 heures, de 1 heure à 17 heures, 9h30, 12 h 15"),
        ("9-2am, at 3 or 4 pm", ("en", "fr"), "21:00-2:00, at 15:00 or 16:00"),
        ("pages 3 and 5 pm", ("en", "fr"), "pages 3 and 17 o'clock"),
        ("June 12 - 7 pm, on May 5 PM Modi", ("en", "fr"), "June 12 - 19 o'clock, on May 5 PM Modi"),
        ("74 pm, 24 AM. Part 2 am I right?", ("en", "fr"), "74 pm, 24 AM. Part 2 am I right?"),
        ("at 5 p.m. EST, 3 p.m. Monday", ("en", "fr"), "at 17 o'clock EST, 15 o'clock Monday"),
        ("on 3rd May 2024, the 2nd June", ("en", "fr"), "on 3 May 2024, the 2 June"),
        ("Iris Xe, 1e-5 mol, tous les sept 12, 24h/24", ("fr", "en"), "Iris Xe, 1e-5 mol, tous les sept 12, 24h/24"),
        ("$5 am 1.5pm 13:45", ("en", "de"), "$5 am 1.5pm 13:45"),
        ("la 1re fois, au 5ème étage", ("fr", "en"), "la première fois, au cinquième étage"),
        ("le XXIe siècle, la IVe, le 1er mai", ("fr", "en"), "le 21e siècle, la quatrième, le 1er mai"),
    ],
)  # fmt: skip
def test_models_read_a_form_that_they_know(text: str, languages: tuple[str, str], expected: str) -> None:
    replacements = reworded(text, languages)
    assert replace_spans(text, replacements)[0] == expected
    assert HINT.search(text)


@pytest.mark.parametrize("piece", ["1 to ", "9h ", "9am ", "Mar 3 ", "3rd ", "IXe ", "1e", "12 p. "])
@pytest.mark.parametrize("languages", [("en", "fr"), ("fr", "en")])
def test_a_long_text_takes_time_in_proportion(piece: str, languages: tuple[str, str]) -> None:
    check_linear(lambda n: reworded(piece * n, languages), 3_000)
