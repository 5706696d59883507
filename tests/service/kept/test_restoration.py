"""What has to come out of a translation as it went in does so, whatever the model writes."""

import re
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from service.kept import restoration
from service.kept.placeholders import Protected
from service.kept.restoration import Restored, keep_original
from service.text.aligned_words import AlignedWords
from service.text.sentences import join_sentences, sentence_spans
from service.text.spans import Span
from tests.service.stand_ins import NAMES, NUMBERS, PLACES, kept, protect, restore


def words(text: str, first: int = 0) -> list[Span]:
    return [Span(first + match.start(), first + match.end()) for match in re.finditer(r"\w+|[^\w\s]", text)]


def aligned(source: str, target: str, mass: list[list[float]]) -> AlignedWords:
    return AlignedWords(words(source), words(target), np.array(mass))


TEXT = "See https://x.org, {name}!"  # "See Boston, Tom!"


@pytest.mark.parametrize(
    ("translation", "expected"),
    [
        ("Tom, voyez Boston !", "{name}, voyez https://x.org !"),
        ("Tomate à Bostons", "Tomate à Bostons https://x.org {name}"),
        ("Boston (Tom)", "https://x.org ({name})"),
        ("Voyez", "Voyez https://x.org {name}"),
        ("", "https://x.org {name}"),
        ("Voyez \n", "Voyez https://x.org {name} \n"),
    ],
)
def test_each_placeholder_is_restored_once(translation: str, expected: str) -> None:
    assert restore(protect(TEXT), translation).text == expected


@pytest.mark.parametrize(
    ("text", "translation", "expected"),
    [
        ("The end of {n}", "La fin d'Alice", "La fin de {n}"),
        ("The end of {n}", "La fin D’ Alice", "La fin De {n}"),
        ("He says that {n} is", "Il dit qu'Alice est", "Il dit que {n} est"),
        ("The 47 of 123456", "Les 47 d'Alice", "Les 47 de 123456"),
        ("The end of {n}", "L' end' Alice", "L' end' {n}"),
        ("The end of Élodie", "La fin d' Alice", "La fin d'Élodie"),
    ],
)
def test_nothing_is_elided_before_what_begins_with_no_vowel(text: str, translation: str, expected: str) -> None:
    start = text.find("Élodie")
    protected = protect(text, [Span(start, start + 6)] if start >= 0 else [])
    slots = {0: Span(translation.index("Alice"), translation.index("Alice") + 5)}
    assert restoration.restore(protected, translation, slots, language="fr").text == expected


@pytest.mark.parametrize(
    ("text", "language", "translation", "expected"),
    [
        ("{n} files", "de", "Alicedateien da", "{n} Dateien da"),
        ("{n} files", "fr", "Alicedateien", "{n} dateien"),
        ("A file of {n}", "de", "Alices Datei", "{n} Datei"),
        ("{n}'s file", "de", "Alices Datei", "{n}s Datei"),
        ("{n} files", "de", "Alice-Dateien", "{n}-Dateien"),
        ("{n} files", "ja", "Aliceファイル", "{n}ファイル"),
        ("Price: {n}", "de", "Alice0", "{n}"),
        ("{n} files", "de", "Alice00 Dateien", "{n} Dateien"),
    ],
)
def test_words_and_endings_stay_off_a_placeholder(text: str, language: str, translation: str, expected: str) -> None:
    restored = restoration.restore(protect(text), translation, {0: Span(0, 5)}, language=language)
    assert restored.text == expected
    assert restored.copies[0][1].of(restored.text) == "{n}"


@pytest.mark.parametrize(
    ("mass", "expected"),
    [
        ([[1, 0, 0], [0, 0.9, 0], [0, 0, 1]], "Voyez https://x.org ici"),  # "Bostonne" is what became of it
        ([[1, 0, 0], [0, 0.4, 0], [0, 0, 1]], "Voyez https://x.org Bostonne ici"),
        ([[1, 0, 0], [0, 0.1, 1], [0, 0, 1]], "Voyez Bostonne ici https://x.org"),
    ],
)
def test_lost_placeholders_go_where_their_stand_in_is_aligned(mass: list[list[float]], expected: str) -> None:
    protected, translation = protect("See https://x.org here"), "Voyez Bostonne ici"
    assert restore(protected, translation, [aligned(protected.text, translation, mass)]).text == expected


@pytest.mark.parametrize(
    ("translation", "mass", "expected"),
    [
        ("Chiens & chats", [[1, 0, 0], [0, 0.2, 0], [0, 0, 1]], "Chiens &amp; chats"),
        ("Chiens et chats", [[1, 0, 0], [0, 0.4, 0.3], [0, 0, 1]], "Chiens &amp; chats"),
        ("Chiens avec chats", [[1, 0, 0], [0, 0.4, 0.3], [0, 0, 1]], "Chiens &amp; avec chats"),
    ],
)
def test_an_escaped_and_replaces_the_word_for_it(translation: str, mass: list[list[float]], expected: str) -> None:
    protected = protect("Dogs &amp; cats")
    assert protected.text == "Dogs & cats"
    assert restore(protected, translation, [aligned(protected.text, translation, mass)]).text == expected


def test_a_placeholder_beside_a_word_without_spaces_stays_apart_from_one_in_its_place() -> None:
    protected, translation = protect("{a} {b} {c}"), "a 你好"
    restored = restore(protected, translation, [aligned(protected.text, translation, [[0, 0, 0], [1, 0, 0]])])
    assert restored.text == "a {a} {b} {c}"


def test_ranges_are_followed_through_stand_ins_and_back() -> None:
    protected = protect(TEXT)
    assert [protected.edits.before(word).of(TEXT) for word in words(protected.text)] == [
        *["See", "https://x.org", ",", "{name}", "!"]
    ]
    restored = restore(protected, "Tom et Boston à Nice")
    moved = [restored.edits.after(word).of(restored.text) for word in words("Tom et Boston à Nice")]
    assert moved == ["{name}", "et", "https://x.org", "à", "Nice"]
    assert [(source.of(TEXT), target.of(restored.text)) for source, target in restored.copies] == [
        ("https://x.org", "https://x.org"),
        ("{name}", "{name}"),
    ]


def test_a_placeholder_is_aligned_to_itself_alone() -> None:
    protected, translation = protect("See {name} here"), "Tom ici"
    [restored] = restore(
        protected, translation, [aligned("See Tom here", translation, [[0.9, 0.1, 0], [0, 0, 1]])]
    ).align_words()
    assert [word.pair for word in restored.source] == [(0, 3), (4, 10), (11, 15)]
    assert [word.pair for word in restored.target] == [(0, 6), (7, 10)]
    assert restored.mass.tolist() == [[0, 1, 0], [0, 0, 1]]


# Whatever the text, and whatever the model writes

PLACEHOLDERS = st.sampled_from(
    ["{a}", "{{b}}", "%s", "%d", "%(c)s", "https://x.org/{d}", "e@f.com", "${g}", "www.h.fr"]
)
PROSE = st.sampled_from(["Tom", "Boston", "37", "a", "20 %", "l'", "é.", ",", "!", "你好", "\n", ""])
SOURCES = st.lists(st.one_of(PLACEHOLDERS, PROSE), max_size=12).map(" ".join)
STAND_IN = st.sampled_from([*NAMES, *PLACES, *NUMBERS])
TRANSLATIONS = st.lists(st.one_of(STAND_IN, PROSE), max_size=12).map(" ".join)


@st.composite
def alignments(draw: st.DrawFn, source: str, target: str) -> list[AlignedWords]:
    """None, or one for each half of the texts."""
    if draw(st.booleans()):
        return []
    weights = np.array(draw(st.lists(st.floats(0, 1), min_size=16, max_size=16)))
    halves = []
    source_words, target_words = words(source), words(target)
    middle = len(source_words) // 2, len(target_words) // 2
    for s, t in ((slice(None, middle[0]), slice(None, middle[1])), (slice(middle[0], None), slice(middle[1], None))):
        mass = np.resize(weights, (len(target_words[t]), len(source_words[s])))
        halves.append(AlignedWords(source_words[s], target_words[t], mass / np.maximum(1, mass.sum(1, keepdims=True))))
    return halves


@st.composite
def restorations(
    draw: st.DrawFn, sources: st.SearchStrategy[str], translations: st.SearchStrategy[str]
) -> tuple[Protected, Restored]:
    protected, translation = protect(draw(sources)), draw(translations)
    return protected, restore(protected, translation, draw(alignments(protected.text, translation)))


@given(restorations(SOURCES, TRANSLATIONS))
def test_every_placeholder_comes_out_exactly_as_often_as_it_went_in(work: tuple[Protected, Restored]) -> None:
    protected, restored = work
    went_in = Counter(kept(protected.original))
    came_out = Counter(kept(restored.text))
    assert {one: came_out[one] for one in went_in} == went_in


@given(restorations(st.one_of(SOURCES, st.text()), st.one_of(TRANSLATIONS, st.text())))
def test_copies_are_copies_and_words_are_inside_the_texts(work: tuple[Protected, Restored]) -> None:
    protected, restored = work
    assert [source for source, _ in restored.copies] == [one.span for one in protected.placeholders]
    assert all(source.of(protected.original) == target.of(restored.text) for source, target in restored.copies)
    places = sorted(target.pair for _, target in restored.copies)
    assert all(end <= start for (_, end), (start, _) in pairwise(places))
    for sentence in restored.align_words():
        assert sentence.mass.shape == (len(sentence.target), len(sentence.source))
        assert all(0 <= word.start < word.end <= len(restored.text) for word in sentence.target)
        assert all(0 <= word.start < word.end <= len(protected.original) for word in sentence.source)
        assert (sentence.mass.sum(axis=1) <= 1.001).all()


@given(st.one_of(SOURCES, st.text()))
@example("{a}{b}x{c} {d}")
@example("0¢가")
@example("\u074d@A")
def test_a_model_that_copies_everything_gives_the_text_back(text: str) -> None:
    protected = protect(text)
    assume(all(one.stand_in for one in protected.placeholders))  # a model cannot copy the symbols that it is not shown
    restored = restore(protected, protected.text)
    assert restored.text == text
    assert restored.edits == keep_original(protected).edits
    for word in words(text):
        there = protected.edits.after(word)
        back = protected.edits.before(there)
        assert back.start <= word.start <= word.end <= back.end
        assert restored.edits.after(there) == back


@pytest.mark.parametrize(
    "piece",
    [
        "{", "{{", "%", "%0", "a.", "a@", "https://", "https://x(", "www.", "{a} ", "%s ", "%s", "x{a}", "mailto:",
        "%(", "a-", "`", "``a", "``` ", "```a`", "é@a.", "https://a/日", "1,000-", "1\u00a0", "{%", "__a", "$a",
        "localhost:1/", "978-1-", "0x1 ", "abc", "1,", "€1", "+1 2 ", "+1 2-", "+1 23-45", "😀\n", "100 ",
        "1 000 000 ", "12345-A", "1:", "a:1:", "(55) 12-", "v1.", "<a@b.c", "<https://a", "$1", "5$", "[[a", "₂",
        "C:\\a.", "x^",
    ],
)  # fmt: skip
def test_long_nonsense_takes_no_longer_than_text(piece: str) -> None:
    protected = protect(piece * 5_000)
    assert restore(protected, protected.text).text == protected.original
    lost = restore(protected, "")
    assert all(source.of(protected.original) == target.of(lost.text) for source, target in lost.copies)


@pytest.mark.parametrize(
    ("text", "shown", "translated", "links", "expected"),
    [
        ("A dog 🐶 runs.", "A dog runs.", "Un chien court.", "0 1 2 3", "Un chien 🐶 court."),
        ("A dog🐶 runs.", "A dog runs.", "Un chien court.", "0 1 2 3", "Un chien🐶 court."),
        ("A red 🚗 car", "A red car", "Une voiture rouge", "0 2 1", "Une voiture rouge 🚗"),
        ("I win 🎉🎉", "I win", "Je gagne !", "0 1 1", "Je gagne ! 🎉🎉"),
        ("🎉 I win", "I win", "Je gagne", "0 1", "🎉 Je gagne"),
        ("a ★ b 👩‍👩‍👧 c 🇫🇷", "a b c", "A B C", "0 1 2", "A ★ B 👩‍👩‍👧 C 🇫🇷"),
        ("🎉", "", "", "", "🎉"),
        ("I win\n🎉\n", "I win\n\n", "Je gagne\n\n", "0 1", "Je gagne\n🎉\n"),
        ("A dog 🐶 runs.", "A dog runs.", "犬が走る。", "1 2", "犬が走る🐶。"),
        ("🎉 I win", "I win", "勝つ", "0", "🎉 勝つ"),
        ("ten&nbsp;dogs run", "ten dogs run", "dix chiens courent", "0 1 2", "dix&nbsp;chiens courent"),
    ],
)
def test_a_symbol_is_not_shown_to_the_model_and_stands_behind_the_same_word(
    text: str, shown: str, translated: str, links: str, expected: str
) -> None:
    protected = protect(text)
    assert protected.text == shown
    mass = np.zeros((len(words(translated)), len(words(shown))))
    for target, source in enumerate(map(int, links.split())):
        mass[target, source] = 1
    found_words = [AlignedWords(words(shown), words(translated), mass)]
    restored = restore(protected, translated, found_words) if shown else keep_original(protected)
    assert restored.text == expected


@pytest.mark.parametrize(
    ("translated", "expected"),
    [
        ("Un chien (, ou chat)", "Un chien (🐶, ou chat)"),
        ("Un chien ( ou chat)", "Un chien (🐶 ou chat)"),
        ("Un chien, ou chat)", "Un chien🐶, ou chat)"),
    ],
)
def test_a_symbol_between_punctuation_stays_behind_its_bracket(translated: str, expected: str) -> None:
    protected = protect("A dog (🐶, or cat)")
    source, target = (
        [Span(*match.span()) for match in re.finditer(r"\w+|[^\w\s]+", text)] for text in (protected.text, translated)
    )
    found_words = [AlignedWords(source, target, np.eye(6))]
    assert restore(protected, translated, found_words).text == expected


@given(
    st.lists(st.sampled_from(["a", "dog", " ", "\n", ".", "🐶", "👩‍👩‍👧", "🏖️", "→", "{x}", "1️⃣"]), max_size=12),
    st.text("abc .\n"),
)
def test_symbols_come_out_as_often_as_they_went_in(pieces: list[str], translated: str) -> None:
    text = "".join(pieces)
    protected = protect(text)
    mass = np.full((len(words(translated)), len(words(protected.text))), 0.5)
    restored = restore(protected, translated, [AlignedWords(words(protected.text), words(translated), mass)])
    for symbol in ("🐶", "👩‍👩‍👧", "🏖️", "→", "1️⃣", "{x}"):
        assert restored.text.count(symbol) == text.count(symbol)


@pytest.mark.parametrize(
    "text",
    [
        "Features:\n- 🚀 Fast\n- 🔒 Safe",
        "1) 🐶 dog\n2) 🐱 cat",
        "One.\n\n## 📦 Install\nTwo.",
        "| Dark mode | ✅ |\n| Offline mode | ❌ |",
        "The red car\t✅\tTom",
        "Hello.\n> 👍\nBye.",
        "The dog sleeps.\n(😀)\nThe cat runs.",
        "Done.\n\t✅ dog",
        "a cat\u2028😀 a dog",
        "12:30 😀\nThe dog sleeps.",
        "Shopping list:\n  ☐ milk\n    ☐ white bread",
        "  ▪ The cat runs.\n  😀  Hello",
        "Hello! 😀 How are you?  😀\r\n\r\n😀",
        "A dog 🐶 runs. 🐱",
    ],
)
def test_a_symbol_outside_a_sentence_stays_where_it_is(text: str) -> None:
    protected = protect(text)
    sources = [span for span in sentence_spans(protected.text, "en") if any(map(str.isalpha, span.of(protected.text)))]
    spoken, targets = join_sentences(
        protected.text, sources, [span.of(protected.text).upper() for span in sources], "en", "fr"
    )
    sentences = []
    for source, target in zip(sources, targets, strict=True):
        from_words, to_words = words(source.of(protected.text), source.start), words(target.of(spoken), target.start)
        sentences.append(AlignedWords(from_words, to_words, np.eye(len(from_words))))
    assert restore(protected, spoken, sentences).text == text.upper()


def test_a_stand_in_inside_a_word_is_none() -> None:
    protected = protect("It is {name}.")
    assert restore(protected, "Tomorrow, atom, 137.").text == "Tomorrow, atom, 137. {name}"
