import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.text.casing import in_capitals, in_small_letters, without_emphasis, without_title_case
from service.text.sentences import sentence_spans
from service.text.spans import Span

ONE_TOKEN = {"not", "do", "open", "thanks", "Haus", "us", "it", "how", "your", "dog", "new", "York"}


def count_tokens(word: str) -> int:
    """Of a vocabulary that has few words."""
    return 1 if word in ONE_TOKEN else len(word)


def small(text: str, language: str = "fr") -> str:
    return in_small_letters(text, sentence_spans(text, language), language, [], count_tokens)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("OÙ EST LA GARE ?", "Où est la gare ?"),
        ("À 17 H 45, LE TRAIN PART.", "À 17 h 45, le train part."),
        ("« NON », DIT-IL.", "« Non », dit-il."),
        ("12 CHIENS ET 3 CHATS", "12 Chiens et 3 chats"),
        ("STOP", "STOP"),
        ("R 2 D 2", "R 2 D 2"),
        ("J'AI FROID", "J'ai froid"),
        ("LE TRAIN part.", "LE TRAIN part."),
        ("Le TGV.\nLE TGV PART.\nIl part.", "Le TGV.\nLe tgv part.\nIl part."),
        ("日本 語", "日本 語"),
        ("LA CA\u02bcT EST LÀ.", "La ca\u02bct est là."),
        ("昨日NHKを見た。", "昨日NHKを見た。"),
        ("CD-ROMとDVDを", "CD-ROMとDVDを"),
        ("", ""),
    ],
)
def test_sentences_in_capitals_are_read_in_small_letters(text: str, expected: str) -> None:
    assert small(text) == expected


def test_english_says_i_in_a_capital() -> None:
    assert small("WHAT AM I DOING? I'M LATE.", "en") == "What am I doing? I'm late."
    assert small("IT IS TOO LATE, I'M TIRED", "en") == "It is too late, I'm tired"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("HELLO Tom, YOU HAVE 48 NEW MESSAGES.", "Hello Tom, you have 48 new messages."),
        ("Toronto IS DOWN.", "Toronto is down."),
        ("SQL Tom", "SQL Tom"),
        (
            "Hello Tom. STOP Tom. GO TO Toronto! Is Tom there? Tom!",
            "Hello Tom. STOP Tom. GO TO Toronto! Is Tom there? Tom!",
        ),
        ("WHERE IS Tom?", "Where is Tom?"),
    ],
)
def test_stand_ins_stay_as_they_are_and_do_not_tell_how_a_sentence_is_written(text: str, expected: str) -> None:
    stand_ins = [Span(*match.span()) for match in re.finditer("Tom|Toronto", text)]
    assert in_small_letters(text, sentence_spans(text, "en"), "en", stand_ins, count_tokens) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DO NOT open the door.", "Do not open the door."),
        ("This is NOT a dog.", "This is not a dog."),
        ("Das HAUS ist alt.", "Das Haus ist alt."),
        ("The NATO met US here: do it NOT.", "The NATO met US here: do it not."),
        ("Say IT to DO.", "Say IT to DO."),  # of two letters alone: rather an acronym
        ("TOM is NOT here", "TOM is not here"),
    ],
)
def test_words_in_capitals_among_others_are_read_as_they_are_usually_written(text: str, expected: str) -> None:
    stand_ins = [Span(*match.span()) for match in re.finditer("TOM", text)]
    assert without_emphasis(text, sentence_spans(text, "en"), stand_ins, count_tokens) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("How to Open Your Dog", "How to open your dog"),
        ("Your New Dog in New York. Do Not Open It!", "Your new dog in New York. Do not open it!"),
        ("Open Your Rex Ale", "Open Your Rex Ale"),  # half of the words may be names
        ("Do Not Open Rex", "Do not open Rex"),
        ("Don't Open Your NATO Dog", "Don't open your NATO dog"),
        ("How I Open It", "How I open it"),
        ("How to Open your Dog", "How to Open your Dog"),
        ("of Your New Dog", "of Your New Dog"),
        ("Your Dog Tom, New Dog of Tom", "Your dog Tom, new dog of Tom"),
        ("Your Dog", "Your dog"),
        ("New Dog", "New Dog"),
        ("Dog", "Dog"),
        ("1990", "1990"),
    ],
)
def test_a_title_is_read_as_a_sentence(text: str, expected: str) -> None:
    stand_ins = [Span(*match.span()) for match in re.finditer("Tom", text)]
    assert without_title_case(text, sentence_spans(text, "en"), "en", stand_ins, count_tokens) == expected
    assert without_title_case(text, sentence_spans(text, "fr"), "fr", stand_ins, count_tokens) == text


@pytest.mark.parametrize(("text", "expected"), [("THANKS!", "Thanks!"), ("NOT! NATO!", "Not! NATO!"), ("US.", "US.")])
def test_one_word_in_capitals_is_a_sentence_in_capitals_where_it_is_known(text: str, expected: str) -> None:
    assert small(text, "en") == expected


def test_capitals_are_as_many_characters() -> None:
    assert in_capitals("Où est la straße ?") == "OÙ EST LA STRAẞE ?"
    assert in_capitals("ﬁn") == "ﬁN"
    assert in_capitals("где вокзал, Tom?") == "ГДЕ ВОКЗАЛ, TOM?"


def test_names_among_letters_without_capitals_stay_as_they_are() -> None:
    assert in_capitals("Tomは駅にいる。") == "Tomは駅にいる。"


@given(st.text(), st.text())
def test_places_hold(text: str, other: str) -> None:
    text = f"{text} LE TRAIN PART. {other}".upper()
    assert len(small(text)) == len(text)
    assert len(in_capitals(text)) == len(text)


@given(st.text(alphabet="AÉẞŒ .,'", min_size=1))
def test_what_becomes_small_becomes_the_same_in_capitals(text: str) -> None:
    whole = [Span(0, len(text))]
    assert in_capitals(in_small_letters(text, whole, "fr", [], count_tokens)) == text


@given(st.text(alphabet="DONTHAUSdo .,", min_size=1))
def test_emphasis_is_taken_away_without_moving_anything(text: str) -> None:
    calm = without_emphasis(text, sentence_spans(text, "en"), [], count_tokens)
    calm = without_title_case(calm, sentence_spans(text, "en"), "en", [], count_tokens)
    assert len(calm) == len(text)
    assert calm.upper() == text.upper()
