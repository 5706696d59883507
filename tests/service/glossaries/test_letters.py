"""A term is found in other letters, and its translation has the letters of its place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.glossaries.terms import Terms, TermTable
from service.glossaries.words import words_of
from service.kept.kept_spans import kept_spans
from service.kept.placeholders import protect
from service.kept.restoration import keep_original, restore
from service.schemas.requests import GlossaryTerm
from service.text.spans import Span


def spans(text: str, glossary: dict[str, str | GlossaryTerm], is_exact: bool = False) -> list[tuple[str, str | None]]:
    terms = Terms([], [], glossary, is_exact=is_exact)
    return [(kept.span.of(text), kept.written) for kept in terms.find(text)]


@pytest.mark.parametrize(
    ("term", "text", "expected"),
    [
        ("garden", "the garden, Garden. GARDEN!", [("garden", "jardin"), ("Garden", "Jardin"), ("GARDEN", "JARDIN")]),
        ("garden house", "a Garden House and GARDEN HOUSE", [("Garden House", "Jardin"), ("GARDEN HOUSE", "JARDIN")]),
        ("straße", "STRASSE, Straße", [("STRASSE", "JARDIN"), ("Straße", "Jardin")]),
        ("дом", "дом в ДОМ", [("дом", "jardin"), ("ДОМ", "JARDIN")]),
        ("été", "E\u0301TE\u0301 e\u0301te\u0301", [("E\u0301TE\u0301", "JARDIN"), ("e\u0301te\u0301", "jardin")]),
        ("Garten", "der Garten, GARTEN, garten", [("Garten", "jardin"), ("GARTEN", "JARDIN")]),
        ("US", "the US helps us. Us too", [("US", "jardin")]),
        ("iPhone", "my iPhone, IPHONE, iphone, Iphone", [("iPhone", "jardin"), ("IPHONE", "JARDIN")]),
        ("犬", "犬は犬", [("犬", "jardin"), ("犬", "jardin")]),
        ("New York", "New\u00a0York, NEW YORK, new york", [("New\u00a0York", "jardin"), ("NEW YORK", "JARDIN")]),
        ("data flow", "DATA  FLOW data\u00a0 flow", [("DATA  FLOW", "JARDIN"), ("data\u00a0 flow", "jardin")]),
        ("garden", "gar\u00adden gar\u200cden", [("gar\u00adden", "jardin"), ("gar\u200cden", "jardin")]),
        ("5", "５００ and ５円", [("５", "jardin")]),
        ("IP電話", "ＩＰ電話, IP電話", [("ＩＰ電話", "jardin"), ("IP電話", "jardin")]),
        ("ガーデン", "ｶﾞｰﾃﾞﾝ, か", [("ｶﾞｰﾃﾞﾝ", "jardin")]),
        ("office", "o\ufb03ce", [("o\ufb03ce", "jardin")]),
        ("ёж", "еж, Ёж", [("еж", "jardin"), ("Ёж", "Jardin")]),
        ("don't", "a don\u2019t", [("don\u2019t", "jardin")]),
    ],
)
def test_a_term_in_small_letters_is_found_in_any_and_one_with_capitals_as_it_is_or_in_capitals(
    term: str, text: str, expected: list[tuple[str, str]]
) -> None:
    assert spans(f"see {text}", {term: "jardin"}) == expected


def test_a_case_sensitive_term_is_found_only_as_it_is_written() -> None:
    exact = GlossaryTerm(translation="aller", case_sensitive=True)
    text = "go, Go, GO, dog, DOG"
    assert spans(text, {"go": exact, "dog": "chien"}) == [("go", "aller"), ("dog", "chien"), ("DOG", "CHIEN")]
    assert spans(text, {"go": "aller", "dog": "chien"}, is_exact=True) == [("go", "aller"), ("dog", "chien")]


@pytest.mark.parametrize("terms", [["Polish", "polish"], ["polish", "Polish"]])
def test_the_term_that_has_the_same_letters_comes_first(terms: list[str]) -> None:
    glossary = {term: {"polish": "polir", "Polish": "polonais"}[term] for term in terms}
    assert spans("I polish a Polish table", glossary) == [("polish", "polir"), ("Polish", "polonais")]


@pytest.mark.parametrize(
    ("written", "in_capitals"), [("iPhone", "iPhone"), ("Straße", "STRASSE"), ("le jardin", "LE JARDIN")]
)
def test_names_with_inner_capitals_stay_as_they_are(written: str, in_capitals: str) -> None:
    assert spans("a PHONE", {"phone": written}) == [("PHONE", in_capitals)]
    [kept] = Terms([], [], {"phone": "iPhone"}).find("Phone!")
    assert (kept.written, kept.at_start) == ("iPhone", "iPhone")


@pytest.mark.parametrize(
    ("text", "translation", "starts", "expected"),
    [
        ("Garden chairs.", "Xa chaises.", [0], "Jardin chaises."),
        ("Garden chairs.", "Chaises de Xa.", [0], "Chaises de jardin."),
        ("In summer the garden blooms.", "Xa fleurit.", [0], "Jardin fleurit."),
        ("in summer the garden blooms.", "Xa fleurit.", [], "jardin fleurit."),
        ("We love the Garden Party.", "Nous aimons Xa.", [0], "Nous aimons Jardin."),
        ("Big. The garden.", "Grand. « Xa »", [0, 7], "Grand. « Jardin »"),
    ],
)
def test_a_term_has_a_capital_at_the_beginning_of_a_sentence_of_the_translation(
    text: str, translation: str, starts: list[int], expected: str
) -> None:
    kept = kept_spans(text, terms=Terms([], [], {"garden": "jardin"}).find(text))
    shown = protect(text, kept, (), lambda _, __: "Xa")
    at = translation.index("Xa")
    assert restore(shown, translation, {0: Span(at, at + 2)}, starts=starts).text == expected


def test_a_line_of_terms_alone_keeps_its_letters() -> None:
    text = "Garden!\ngarden\nGARDEN"
    shown = protect(text, kept_spans(text, terms=Terms([], [], {"garden": "jardin"}).find(text)))
    assert keep_original(shown).text == "Jardin!\njardin\nJARDIN"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Route 6", ["Route 6"]),
        ("Route 66, Route 6.5, Route 6,000, Route 6.0.1, Route 6,5, Route 6\u2019000, Route 6\u202f000, Route 6a", []),
        ("Route 6. Route 6, 7 and Route 6!", ["Route 6"] * 3),
        ("Route 6.", ["Route 6"]),
        ("Route 6 000, Route 6 000 000,5, Route 6:30, Route 6/12/2020, Route 6-12-20", []),
        ("Route 6 00, Route 6/7", ["Route 6"] * 2),
        ("(Route 6) Route 6: yes, Route 6-7", ["Route 6"] * 3),
        ("5 of 5.5, 0.5, .5 and 1,5", ["5"]),
        ("2.0 and v2.0, v2.0.1, 2.01 and 12.0", ["2.0", "v2.0"]),
        ("ルート6とルート66", ["ルート6"]),
    ],
)
def test_a_decimal_a_group_of_thousands_and_a_version_are_one_number(text: str, expected: list[str]) -> None:
    glossary = {"Route 6": "R6X", "5": "V", "2.0": "X", "v2.0": "Y", "ルート6": "Z"}
    assert [kept.span.of(text) for kept in Terms(list(glossary)).find(text)] == expected
    assert [kept.span.of(text) for kept in TermTable(glossary).find(text)] == expected


@given(st.text(st.sampled_from("aB é\u0301.,5\u00a0'犬_\n") | st.characters()))
def test_words_are_the_whole_text(text: str) -> None:
    words = words_of(text)
    assert [0, *(word.end for word in words)] == [*(word.start for word in words), len(text)]
