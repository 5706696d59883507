"""What models write becomes a text of the target language: its sentences, its capitals, and what was kept."""

import pytest

from service.artifact import Direction
from service.engine.beam_search import Hypothesis, Search
from service.engine.scheduler import Sequence
from service.tasks import composition
from service.tasks.composition import Manuscript, Paragraph, Sentence
from service.text.grouped_numbers import grouped_numbers
from service.text.placeholders import protect
from service.text.sentences import sentence_spans
from service.text.tokenization import Tokenizer


class Dictated(Tokenizer):
    """Each sentence is one token, and decoded to what a test says."""

    def __init__(self, sentences: list[str]) -> None:
        self._sentences = sentences

    def decode(self, token_ids: list[list[int]]) -> list[str]:
        return [self._sentences[ids[0]] for ids in token_ids]


def composed(text: str, target: str, *translations: str, capitals: bool = False) -> str:
    protected = protect(text, numbers=grouped_numbers(text, "en"))
    sentences = []
    for i, span in enumerate(sentence_spans(protected.text, "en") if protected.translatable else []):
        search = Search(10, finished=[Hypothesis([i], -0.1, "eos")])
        sentences.append(Sentence(span, Sequence([0], search), capitals))
    manuscript = Manuscript([Paragraph(protected, sentences)])
    direction = Direction(source="en", target=target)
    return composition.composed(manuscript, Dictated([*translations]), direction, selection=None, alignment=False).text


@pytest.mark.parametrize(
    ("text", "target", "translations", "expected"),
    [
        ("Go. See {name}!", "ja", ["行け.", "トムを見て!"], "行け。{name}を見て！"),
        ("Go. See {name}!", "ru", ["Иди.", "Смотри на Тома!"], "Иди. Смотри на {name}!"),
        ("It costs 1,234.50 now.", "ru", ["Стоит 48."], "Стоит 1\u00a0234,50."),
        ("It costs 1,234.50 now.", "ja", ["四十八です。"], "1,234.50です。"),
        ("£1,234.50\n10,000\n1990", "ru", [], "£1\u00a0234,50\n10\u00a0000\n1990"),
        ("£1,234.50\n10,000\n1990", "ja", [], "£1,234.50\n10,000\n1990"),
    ],
)
def test_sentences_are_joined_as_the_target_language_has_them(
    text: str, target: str, translations: list[str], expected: str
) -> None:
    assert composed(text, target, *translations) == expected


def test_capitals_are_of_languages_that_have_them() -> None:
    assert composed("SEE {name}.", "ru", "Смотри на Тома.", capitals=True) == "СМОТРИ НА {name}."
    assert composed("SEE {name} ON CD.", "ja", "CdでTomを見て。", capitals=True) == "Cdで{name}を見て。"
