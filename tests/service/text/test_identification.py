import pytest

from service.text.identification import IdentifiedLanguage, identify

SHIPPED = ("de", "en", "fr", "ja", "ru")


def first(text: str, served: tuple[str, ...] = SHIPPED) -> IdentifiedLanguage:
    return identify(text, served)[0]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The old house on the hill is wonderful.", "en"),
        ("La vieille maison sur la colline est merveilleuse.", "fr"),
        ("Das alte Haus auf dem Hügel ist wunderbar.", "de"),
        ("Старый дом на холме прекрасен.", "ru"),
        ("丘の上の古い家はすばらしい。", "ja"),
        ("Bonjour", "fr"),
        ("Bonne nuit !", "fr"),
        ("Oui", "fr"),
        ("Der Hund", "de"),
        ("東京", "ja"),
        ("iPhoneを買った", "ja"),
        ("WHERE IS THE DOG?", "en"),  # capitals are read as Basque
        ("КТО ТАМ?", "ru"),
    ],
)
def test_the_language_of_a_text_comes_first(text: str, language: str) -> None:
    languages = identify(text, SHIPPED)
    assert languages[0][::2] == (language, True)
    assert sum(item.confidence for item in languages) == pytest.approx(1)
    served = [item.confidence for item in languages if item.is_served]
    assert served == sorted(served, reverse=True)


@pytest.mark.parametrize("text", ["", "42", "3 × 4 = 12", "😀 ❤️", "— ? !"])
def test_a_text_without_letters_is_in_no_language(text: str) -> None:
    assert identify(text, SHIPPED) == []


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Buenos días, ¿cómo está usted?", "es"),
        ("Hola, ¿cómo estás?", "es"),
        ("Buenos días", "es"),
        ("Grazie mille", "it"),
        ("안녕하세요", "ko"),
        ("您好，我在學習中文，很難。", "zh"),
        ("ᏣᎳᎩ", "und"),
    ],
)
def test_a_language_that_is_not_served_is_told_from_those_that_are(text: str, language: str) -> None:
    assert first(text)[::2] == (language, False)


@pytest.mark.parametrize(("text", "language"), [("Non", "fr"), ("да", "ru")])
def test_a_short_text_counts_as_a_served_language_with_the_remaining_confidence(text: str, language: str) -> None:
    """One word of a list that nobody translates would have the whole list refused."""
    languages = identify(text, ("fr", "ru"))
    assert languages[0][::2] == (language, True)
    assert languages[0].confidence < 0.5
    assert max(item.confidence for item in languages if not item.is_served) > 0.5


def test_the_served_one_of_similar_languages_is_meant() -> None:
    text = "Jeg kommer fra en lille by i Norge"  # of Danish and Norwegian alike
    assert first(text, ("da", "en"))[::2] == ("da", True)
    assert first(text, ("no", "en"))[::2] == ("no", True)


@pytest.mark.parametrize(
    ("text", "served", "language"),
    [
        ("學習中文很難", ("zh", "zh-Hant"), "zh-Hant"),
        ("学习中文很难", ("zh", "zh-Hant"), "zh"),
        ("Имам пса и мачку код куће.", ("sr", "sr-Latn"), "sr"),
        ("Imam psa i mačku kod kuće.", ("sr", "sr-Latn"), "sr-Latn"),
        ("Eu tenho um cachorro em casa.", ("pt-BR", "pt"), "pt"),
        ("Eu tenho um cachorro em casa.", ("pt-BR", "en"), "pt-BR"),
        ("Jeg har ikke noen hund hjemme.", ("nb", "en"), "nb"),
    ],
)
def test_varieties_are_chosen_by_script_and_then_by_language(text: str, served: tuple[str, ...], language: str) -> None:
    assert first(text, served)[::2] == (language, True)


def test_a_model_of_any_language_serves_all() -> None:
    assert first("Buenos días, ¿cómo está usted?", ("mul", "en"))[::2] == ("es", True)
