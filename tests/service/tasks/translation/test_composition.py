"""What models write becomes a text of the target language: its sentences, and what was kept."""

import pytest

from service.engine.scheduler import Sequence
from service.engine.search import Hypothesis, Search
from service.glossaries.terms import Terms
from service.kept.slots import Slot
from service.markup import plain
from service.tasks.translation import composition
from service.tasks.translation.reading import PreparedPassage, PreparedText, Sentence
from service.text.languages import Direction
from service.text.sentences import is_speaker, sentence_spans
from service.text.spans import NO_EDITS, Edits
from service.text.tokenization import Tokenizer
from service.text.tokens import Token
from tests.service.stand_ins import protect


class Dictated(Tokenizer):
    """Each sentence is one token, and decoded to what a test says. What stands for a placeholder is a token as well."""

    def __init__(self, sentences: list[str], words: dict[int, str]) -> None:
        self._sentences = sentences
        self._words = words

    def decode(self, token_ids: list[list[int]]) -> list[str]:
        return [self._sentences[ids[0]] for ids in token_ids]

    def target_tokens(self, token_ids: list[int], _: Edits = NO_EDITS) -> list[Token]:
        sentence, *slots = token_ids
        places = [(word, self._sentences[sentence].index(word)) for word in map(self._words.__getitem__, slots)]
        return [Token("", 0, 0), *(Token(word, start, start + len(word)) for word, start in places)]


def composed(
    text: str,
    target: str,
    *translations: str,
    glossary: dict[str, str] | None = None,
    log_prob: float = -0.1,
    is_capitals: bool = False,
) -> str:
    protected = protect(text, terms=Terms([], [], glossary).find(text))
    words = {1000 + n: placeholder.stand_in for n, placeholder in enumerate(protected.placeholders)}
    sentences = []
    for i, span in enumerate(filter(protected.has_words, sentence_spans(protected.text, "en"))):
        slots = [token for token, word in words.items() if word in translations[i]]
        search = Search(10, finished=[Hypothesis([i, *slots], log_prob, "eos")])
        pairs = [(token - 1000, Slot(words[token], 0, token)) for token in slots]
        sentences.append(
            Sentence(
                span,
                Sequence([0], search),
                slots=pairs,
                is_speaker=is_speaker(protected.text, span),
                is_capitals=is_capitals,
            )
        )
    read = plain.parse(text)
    prepared = PreparedText(read, [PreparedPassage(*read.passages, protected, sentences)])
    direction, tokenizer = Direction(source="en", target=target), Dictated([*translations], words)
    return composition.compose_answer(prepared, tokenizer, direction, None, alignment=False, checks=False).text


@pytest.mark.parametrize(
    ("text", "target", "translations", "expected"),
    [
        ("Go. See {name}!", "ja", ["行け.", "Tomを見て!"], "行け。{name}を見て！"),
        ("Go. See {name}!", "zh-Hant", ["去.", "看Tom!"], "去。看{name}！"),
        ("Go. See {name}!", "ru", ["Иди.", "Смотри на Tom!"], "Иди. Смотри на {name}!"),
    ],
)
def test_sentences_are_joined_for_the_target_language(
    text: str, target: str, translations: list[str], expected: str
) -> None:
    assert composed(text, target, *translations) == expected


@pytest.mark.parametrize(
    ("text", "target", "translations", "expected"),
    [
        ("Big gardens. The garden!", "fr", ["Grand.", "Boston!"], "Grand. Jardin!"),
        ("It is a garden. Garden here.", "fr", ["C'est Boston.", "Ici Chicago."], "C'est jardin. Ici jardin."),
        ("the garden is big", "fr", ["Boston est grand"], "jardin est grand"),
        ("The garden is big.", "ja", ["Bostonは大きい."], "jardinは大きい。"),
        ("- Garden\n1. garden", "fr", [], "- Jardin\n1. jardin"),
        ("Go here.\n1. Garden", "fr", ["Allez."], "Allez.\n1. Jardin"),
    ],
)
def test_a_term_of_a_glossary_begins_a_sentence_with_a_capital(
    text: str, target: str, translations: list[str], expected: str
) -> None:
    assert composed(text, target, *translations, glossary={"garden": "jardin"}) == expected


@pytest.mark.parametrize(
    ("text", "translation", "expected"),
    [
        ("Page {name}", "Page Tom.", "Page {name}"),
        ("{name} files", "Tom fichiers .", "{name} fichiers"),
        ("Page {name}.", "Page Tom.", "Page {name}."),
        ("See {name} at 10", "See Tom at 10 p.m.", "See {name} at 10 p.m."),
        ("See {name} then", "See Tom...", "See {name}..."),
        ("See it", "See it.", "See it."),
    ],
)
def test_a_sentence_with_a_placeholder_gets_no_full_stop_of_its_own(text: str, translation: str, expected: str) -> None:
    assert composed(text, "fr", translation) == expected


@pytest.mark.parametrize(
    ("label", "log_prob", "expected"),
    [("kellner.", -0.1, "Kellner: Ja!"), ("Warten Sie!", -0.1, "Waiter: Ja!"), ("Kellner", -1.0, "Waiter: Ja!")],
)
def test_the_name_of_a_speaker_stays_if_the_model_is_not_sure_of_it(label: str, log_prob: float, expected: str) -> None:
    assert composed("Waiter: Yes!", "de", label, "Ja!", log_prob=log_prob) == expected


def test_a_label_that_stays_keeps_its_capitals() -> None:
    """The model reads a line in capitals in small letters."""
    assert composed("Waiter: Yes!", "de", "Kellner", "Ja!", log_prob=-1.0, is_capitals=True) == "WAITER: JA!"


def test_french_quotation_marks_keep_their_space_beside_a_placeholder() -> None:
    assert composed('Open "{name}" now.', "fr", "Ouvrez « Tom » maintenant.") == "Ouvrez « {name} » maintenant."
