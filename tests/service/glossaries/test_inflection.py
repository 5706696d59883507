"""Terms are found in inflected forms, where their language has a lemmatizer."""

import pytest

from service.glossaries.inflection import lemmatizer
from service.glossaries.terms import MAX_INFLECTED_WORDS, Terms, TermTable
from service.schemas.requests import GlossaryTerm


def terms_in(language: str, terms: list[str], text: str) -> list[str]:
    return [kept.span.of(text) for kept in TermTable(dict.fromkeys(terms, "X"), language).find(text)]


@pytest.mark.parametrize(
    ("language", "term", "forms"),
    [
        ("en", "garden", "gardens Gardens GARDENS"),
        ("en", "mouse", "mice"),
        ("en", "criterion", "criteria"),
        ("en", "meeting", "meetings"),
        ("en", "PC", "PCs"),
        ("de", "LKW", "LKWs"),
        ("de", "Haus", "Häuser Hauses Häusern HÄUSER"),
        ("de", "Apfel", "Äpfel"),
        ("fr", "jardin", "jardins Jardins"),
        ("fr", "cheval", "chevaux"),
        ("ru", "собака", "собаки собаку собак собакам Собаке"),
        ("ru", "ёлка", "елки елку ёлки"),
        ("ru", "ежик", "ёжики ежики"),
        ("ru", "Москва", "Москве Москвы Москву"),
        ("ru", "дорога", "дороге дорогу дорог"),
    ],
)
def test_a_noun_is_found_in_its_forms(language: str, term: str, forms: str) -> None:
    assert terms_in(language, [term], forms) == forms.split()


@pytest.mark.parametrize(
    ("language", "term", "text", "expected"),
    [
        ("en", "Botanical Garden", "the Botanical Gardens, botanical gardens", ["Botanical Gardens"]),
        ("en", "botanical garden", "BOTANICAL GARDENS", ["BOTANICAL GARDENS"]),
        ("fr", "chemin de fer", "les chemins de fer", ["chemins de fer"]),
        ("fr", "base de données", "deux bases de données", ["bases de données"]),
        ("de", "rote Grütze", "mit roter Grütze", ["roter Grütze"]),
        ("ru", "железная дорога", "по железной дороге и железные дороги", ["железной дороге", "железные дороги"]),
        ("en", "machine learning", "the machine learns, machines learn", []),
    ],
)  # fmt: skip
def test_terms_of_several_words_are_found_in_forms(language: str, term: str, text: str, expected: list[str]) -> None:
    assert terms_in(language, [term], text) == expected


@pytest.mark.parametrize(
    ("language", "term", "text"),
    [
        ("en", "train", "training trained"),
        ("en", "see", "saw seen"),
        ("en", "good", "better best"),
        ("en", "learning", "learn learns"),
        ("en", "Apple", "apples Apples apple"),
        ("en", "we", "US"),
        ("fr", "son", "mon ma leur ses nos"),
        ("fr", "lui", "ils elles"),
        ("de", "Haus", "hausen häuser"),
        ("ja", "犬", "猫"),
        ("xx", "garden", "gardens"),
    ],
)
def test_another_word_is_not_a_form(language: str, term: str, text: str) -> None:
    assert terms_in(language, [term], text) == []


def test_a_term_as_it_is_written_comes_first_and_the_longest_of_all() -> None:
    text = "gardens and garden houses"
    terms = Terms([], [], {"garden": "A", "gardens": "B", "garden house": "C"}, language="en")
    assert [kept.written for kept in terms.find(text)] == ["B", "C"]


def test_a_case_sensitive_term_has_no_forms() -> None:
    glossary = {"garden": GlossaryTerm(translation="A", case_sensitive=True), "dog": "B"}
    assert [kept.written for kept in Terms([], [], glossary, language="en").find("gardens dogs")] == ["B"]
    assert Terms([], [], glossary, language="en", is_exact=True).find("gardens dogs") == []
    assert Terms(["garden"], language="en").find("gardens") == []


def test_the_translation_of_a_form_has_the_letters_of_its_place() -> None:
    terms = TermTable({"garden": "jardin"}, "en")
    text = "the gardens, the Gardens, GARDENS"
    assert [kept.written for kept in terms.find(text)] == ["jardin", "Jardin", "JARDIN"]


def test_lemmas_are_not_loaded_for_strings_that_stay_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.glossaries.terms.lemmatizer", pytest.fail)
    assert len(Terms(["garden"], ["[0-9]+"], language="en").find("garden 1")) == 2


def test_long_words_and_long_terms_are_not_inflected() -> None:
    lemmatize = lemmatizer("en")
    assert lemmatize is not None
    assert lemmatize("a" * 100 + "s") == "a" * 100 + "s"
    term = " ".join(["garden"] * MAX_INFLECTED_WORDS)
    assert terms_in("en", [term], f"{term}s") == []
