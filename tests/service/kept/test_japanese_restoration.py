"""What is put back into a Japanese translation has no spaces around it, and is where it belongs."""

import re

import numpy as np
import pytest

from service.tasks.translation.alignment import split_words as split
from service.text.aligned_words import AlignedWords
from service.text.sentences import join_sentences, sentence_spans
from service.text.spans import Span
from tests.service.stand_ins import protect, restore


def words(text: str, first: int = 0) -> list[Span]:
    return [Span(first + word.start, first + word.end) for word in split(text)]


@pytest.mark.parametrize(
    ("text", "translation", "mass", "expected"),
    [
        ("See {name} here", "これを見て。", [[1, 0, 0]] * 2 + [[0, 0.3, 0]] + [[1, 0, 0]] * 3, "これを{name}見て。"),
        ("Hi {name}", "やあ！", [[0, 0], [0, 0.3], [0, 0]], "やあ{name}！"),
        ("Go on {name}", "続行します。", [[0, 0, 0], [0, 0, 0.3]] + [[0, 0, 0]] * 4, "続行します{name}。"),
        ("See {name} here", "これを見て。", [[1, 0, 0]] * 2 + [[0, 0.9, 0]] + [[1, 0, 0]] * 3, "これ{name}見て。"),
        ("See {name} here", "これを見て。", [[1, 0, 0]] * 6, "これを見て{name}。"),
        ("See {name} here", "CDを見て。", [[0, 0.3, 0]] + [[1, 0, 0]] * 4, "{name} CDを見て。"),
        ("See {name} here", "これ CD。", [[1, 0, 0]] * 2 + [[0, 0.3, 0], [0, 0, 0]], "これ {name} CD。"),
        ("{a} {b}", "今。", [[0.3, 0.3], [0, 0]], "{a} {b}今。"),
        ("{a} {b}", "今", [[0, 0]], "今{a} {b}"),
        ("{a} {b}", "今CD", [[0, 0], [0.3, 0.3]], "今{a} {b} CD"),
    ],
)
def test_japanese_has_no_spaces_around_what_is_put_back(
    text: str, translation: str, mass: list[list[float]], expected: str
) -> None:
    protected = protect(text)
    sentence = AlignedWords(words(protected.text), words(translation), np.array(mass))
    assert restore(protected, translation, [sentence]).text == expected


@pytest.mark.parametrize(
    ("text", "spoken", "expected"),
    [
        ("Hello! 😀 How are you?", "今！今？", "今！😀今？"),
        ("Hello!  😀  How are you?", "今！今？", "今！😀今？"),
        ("Hello.\n😀\nBye.", "今。\n\n今。", "今。\n😀\n今。"),
        ("Hello.\n- 🚀 Fast", "今。\n- 今", "今。\n- 🚀 今"),
    ],
)
def test_a_symbol_between_japanese_sentences_stays_between_them(text: str, spoken: str, expected: str) -> None:
    protected = protect(text)
    sources = sentence_spans(protected.text, "en")
    whole, places = join_sentences(protected.text, sources, re.findall(r"今[。！？]?", spoken), "en", "ja")
    assert whole == spoken
    sentences = []
    for source, target in zip(sources, places, strict=True):
        from_words, to_words = words(source.of(protected.text), source.start), words(target.of(whole), target.start)
        sentences.append(AlignedWords(from_words, to_words, np.ones((len(to_words), len(from_words)))))
    assert restore(protected, whole, sentences).text == expected
