"""What models write becomes a text of the target language: its sentences, and what was kept."""

import pytest

from service.artifact import Direction
from service.engine.beam_search import Hypothesis, Search
from service.engine.scheduler import Sequence
from service.tasks import composition
from service.tasks.composition import Manuscript, Paragraph, Sentence
from service.text.sentences import sentence_spans
from service.text.tokenization import Tokenizer
from tests.service.stand_ins import protect


class Dictated(Tokenizer):
    """Each sentence is one token, and decoded to what a test says."""

    def __init__(self, sentences: list[str]) -> None:
        self._sentences = sentences

    def decode(self, token_ids: list[list[int]]) -> list[str]:
        return [self._sentences[ids[0]] for ids in token_ids]


def composed(text: str, target: str, *translations: str) -> str:
    protected = protect(text)
    sentences = []
    for i, span in enumerate(filter(protected.has_words, sentence_spans(protected.text, "en"))):
        search = Search(10, finished=[Hypothesis([i], -0.1, "eos")])
        sentences.append(Sentence(span, Sequence([0], search)))
    manuscript = Manuscript([Paragraph(protected, sentences)])
    direction = Direction(source="en", target=target)
    return composition.composed(manuscript, Dictated([*translations]), direction, selection=None, alignment=False).text


@pytest.mark.parametrize(
    ("text", "target", "translations", "expected"),
    [
        ("Go. See {name}!", "ja", ["行け.", "トムを見て!"], "行け。{name}を見て！"),
        ("Go. See {name}!", "ru", ["Иди.", "Смотри на Тома!"], "Иди. Смотри на {name}!"),
    ],
)
def test_sentences_are_joined_as_the_target_language_has_them(
    text: str, target: str, translations: list[str], expected: str
) -> None:
    assert composed(text, target, *translations) == expected
