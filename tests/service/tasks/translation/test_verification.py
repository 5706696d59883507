from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from service.base.artifact import read_artifact
from service.engine.search import Hypothesis, Search
from service.kept.slots import slots_of
from service.markup import html, plain
from service.tasks.translation.checking import checks_of
from service.tasks.translation.composition import NOTHING_BEFORE, render
from service.tasks.translation.reading import PreparedText, Reader, Sentence
from service.tasks.translation.verification import Rereading, Verification
from service.text.languages import Direction
from service.text.spans import Span
from service.text.tokenization import Tokenizer
from tests.running_service import ROOT

ARTIFACT = read_artifact(ROOT / "artifacts/translate-en-de")
TOKENIZER = Tokenizer(ARTIFACT.path("tokenizer.json"))
PAIRS = ARTIFACT.manifest.slots


@pytest.fixture
def reader() -> Reader:
    slots = slots_of(PAIRS, TOKENIZER)
    return Reader(TOKENIZER, slots, 100, Direction("en", "de"), partial(Search, 99), True)


def finish(sentence: Sentence, target: str, log_prob: float = -1.0) -> None:
    token_ids = TOKENIZER.encode([target])[0]
    sentence.sequence.output.finished.append(Hypothesis(token_ids, log_prob, "eos"))


def finish_with(sentence: Sentence, target: str, score: float) -> None:
    finish(sentence, target, score * len(TOKENIZER.encode([target])[0]))


def translated(prepared: PreparedText, *targets: str) -> PreparedText:
    for sentence, target in zip(prepared.sentences, targets, strict=True):
        finish(sentence, target)
    return prepared


def verified(reader: Reader, prepared: PreparedText) -> tuple[Verification, list[Rereading]]:
    verification = Verification(reader, ARTIFACT.manifest)
    for passage in prepared.passages:
        verification.check(passage)
    found = map(verification.read_again, verification.doubtful)
    return verification, [item for item in found if item is not None]


def test_a_right_translation_is_not_read_again(reader: Reader) -> None:
    prepared = reader.prepare(plain.parse("The bill is $344.75. Two dogs run."))
    _, pairs = verified(reader, translated(prepared, "Die Rechnung beträgt 344,75 $.", "Zwei Hunde rennen."))
    assert pairs == []


def test_only_the_sentence_that_lost_something_is_translated_again(reader: Reader) -> None:
    prepared = reader.prepare(html.parse("<p>Two dogs run. The bill is $344.75.</p>"))
    _, [rereading] = verified(reader, translated(prepared, "Zwei Hunde rennen.", "Es sind 3444,75 $."))
    assert [sentence.is_translated for sentence in rereading.again.sentences] == [True, False]
    assert rereading.again.sentences[0].sequence is rereading.passage.sentences[0].sequence
    [carried] = rereading.again.protected.placeholders
    assert carried.span.of(rereading.again.protected.original) == "$344.75"
    assert carried.written == "344,75\xa0$"


@pytest.mark.parametrize(
    ("second", "is_mended"),
    [("Die Rechnung ist {}.", True), ("Die Rechnung ist {}0.", True), ("Die {} 9 75 3.", False)],
)
def test_the_better_translation_is_chosen(reader: Reader, second: str, is_mended: bool) -> None:
    prepared = translated(reader.prepare(plain.parse("The bill is $344.75.")), "Es sind 3444,75 $.")
    verification, [rereading] = verified(reader, prepared)
    [sentence] = rereading.again.sentences
    [(_, slot)] = sentence.slots
    finish(sentence, second.format(slot.word))
    assert verification.choose(rereading) is is_mended
    assert (rereading.passage.sentences == [sentence]) is is_mended
    assert [check.model_dump() for check in rereading.passage.checks] == [
        {"kind": "number", "source": "$344.75", "mended": is_mended}
    ]


@pytest.mark.parametrize("hidden", [*"\u00ad\u200b\u200d\u2060\ufeff"])
def test_a_number_is_read_without_the_characters_that_nobody_sees(reader: Reader, hidden: str) -> None:
    prepared = reader.prepare(plain.parse(f"Her number is 7{hidden} 744, of 19{hidden}3,544."))
    verification, [rereading] = verified(reader, translated(prepared, "Ihre Nummer ist 744, von 193.54."))
    assert [kept.written for kept in rereading.again.carried] == ["7 744", "193.544"]
    [sentence] = rereading.again.sentences
    finish(sentence, "Ihre Nummer ist {}, von {}.".format(*(slot.word for _, slot in sentence.slots)))
    assert verification.choose(rereading)


def test_alternatives_have_the_numbers_that_the_translation_has(reader: Reader) -> None:
    reader = replace(reader, new_search=partial(Search, 99, n_best=3))
    prepared = reader.prepare(plain.parse("The bill is $344.75."))
    targets = "Die Rechnung beträgt 344,75 $.", "Die Rechnung ist 34,75 $.", "Die Rechnung ist 344,75 $."
    for rank, target in enumerate(targets):
        finish(prepared.sentences[0], target, -1.0 - rank)
    Verification(reader, ARTIFACT.manifest).drop_wrong_alternatives(prepared.passages[0])
    best = prepared.sentences[0].sequence.output.best()
    assert TOKENIZER.decode([item.token_ids for item in best]) == [targets[0], targets[2]]


@pytest.mark.parametrize(("target", "is_lost"), [("Wir haben drei Hunde.", False), ("Wir haben Hunde.", True)])
def test_a_small_number_may_be_a_word_that_attends_to_it(reader: Reader, target: str, is_lost: bool) -> None:
    reader = replace(reader, direction=Direction("en", "nl"))  # whose words for numbers are not known
    prepared = translated(reader.prepare(plain.parse("We have 3 dogs.")), target)
    verification = Verification(reader, ARTIFACT.manifest)
    verification.check(prepared.passages[0])
    [attended] = verification.attention_passes()
    source = [token.token for token in TOKENIZER.source_tokens("We have 3 dogs.")]
    three = next(i for i, token in enumerate(source) if token.strip("▁Ġ") == "3")
    targets = [token.token for token in TOKENIZER.target_tokens(prepared.sentences[0].hypothesis().token_ids)]
    columns = [three if token.strip("▁Ġ").startswith("drei") else 0 for token in targets]
    attended.output.weights = np.eye(len(source), dtype=np.float32)[columns]
    [doubtful] = verification.doubtful
    assert (verification.read_again(doubtful) is not None) is is_lost


@pytest.mark.parametrize(("source", "answers"), [("1 dog", ["19", "Hund"]), ("%d dog", ["{}", "Hund"])])
def test_words_are_read_without_the_spans_beside_them(reader: Reader, source: str, answers: list[str]) -> None:
    prepared = reader.prepare(plain.parse(source))
    slots = [slot.word for _, slot in prepared.sentences[0].slots]
    verification, [rereading] = verified(reader, translated(prepared, answers[0].format(*slots)))
    [sentence] = rereading.again.sentences
    assert sentence.span.of(rereading.again.protected.text) == "dog"
    finish(sentence, answers[1])
    assert verification.choose(rereading)


def test_a_word_that_was_taken_for_a_name_is_read_in_small_letters(reader: Reader) -> None:
    prepared = translated(reader.prepare(plain.parse("Bread!")), "Bread!")
    verification, [rereading] = verified(reader, prepared)
    [sentence] = rereading.again.sentences
    assert sentence.span.of(rereading.again.protected.text) == "bread!"
    finish(sentence, "brot!")
    assert verification.choose(rereading)
    [passage] = prepared.passages
    assert [(check.kind, check.source, check.mended) for check in passage.checks] == [("untranslated", "Bread!", True)]
    assert render(prepared, TOKENIZER, reader.direction, NOTHING_BEFORE)[0] == "Brot!"


@pytest.mark.parametrize("again", ["Bread", "bread"])
def test_a_word_that_is_copied_twice_is_read_no_third_time(reader: Reader, again: str) -> None:
    prepared = translated(reader.prepare(plain.parse("Bread")), "Bread")
    verification, [rereading] = verified(reader, prepared)
    finish(rereading.again.sentences[0], again)
    assert not verification.choose(rereading)
    assert verified(reader, prepared)[1] == []
    assert render(prepared, TOKENIZER, reader.direction, NOTHING_BEFORE)[0] == "Bread"


@pytest.mark.parametrize(
    ("text", "first", "again", "is_chosen"),
    [
        ("Money", ("Monat", -0.8), ("geld", -0.4), True),
        ("Money", ("Monat", -0.8), ("geld", -0.6), False),
        ("Money", ("Monat", -0.4), ("geld", -0.45), False),
        ("Download", ("Download", -0.3), ("laden", -0.2), True),
        ("Money", ("Monat", -0.8), ("money", -0.1), False),
        ("Phone Number", ("Nummer", -0.7), ("rufnummer", -0.3), True),
        ("Mouse", ("Monat", -0.8), ("maus", -0.2), True),  # as many tokens in small letters
        ("Mouse", ("Monat", -0.8), ("maus", -0.4), False),
        ("Money 5", ("Monat 5", -0.7), ("geld 5", -0.3), True),
    ],
)
def test_few_words_of_which_the_model_is_not_sure_are_read_in_small_letters(
    reader: Reader, text: str, first: tuple[str, float], again: tuple[str, float], is_chosen: bool
) -> None:
    prepared = reader.prepare(plain.parse(text))
    finish_with(prepared.sentences[0], *first)
    verification, [rereading] = verified(reader, prepared)
    [sentence] = rereading.again.sentences
    assert sentence.span.of(rereading.again.protected.text) == text.lower()
    finish_with(sentence, *again)
    assert verification.choose(rereading) is is_chosen
    assert verified(reader, prepared)[1] == []
    assert rereading.passage.checks == []
    chosen = again[0].capitalize() if is_chosen else first[0]
    assert render(prepared, TOKENIZER, reader.direction, NOTHING_BEFORE)[0] == chosen


@pytest.mark.parametrize(
    ("source", "text", "target", "score"),
    [
        ("en", "Money", "Monat", -0.2),  # the model is sure
        ("de", "Money", "Monat", -0.8),
        ("en", "money", "Monat", -0.8),
        ("en", "MONEY", "Monat", -0.8),
        ("en", "London", "Landen", -0.8),  # more tokens in small letters
        ("en", "Phone Number", "Phone Number", -0.8),
        ("en", "Two Mice Go Home", "Monat", -0.8),
    ],
)
def test_other_texts_are_read_once(reader: Reader, source: str, text: str, target: str, score: float) -> None:
    reader = replace(reader, direction=Direction(source, "nl"))
    prepared = reader.prepare(plain.parse(text))
    finish_with(prepared.sentences[0], target, score)
    assert verified(reader, prepared)[1] == []


def test_abbreviations_in_few_words_stay(reader: Reader) -> None:
    prepared = reader.prepare(plain.parse("Open PDF"))
    finish_with(prepared.sentences[0], "Ofen PDF", -0.8)
    _, [rereading] = verified(reader, prepared)
    assert rereading.again.protected.text == "open PDF"


def test_a_number_in_words_is_a_translation(reader: Reader) -> None:
    prepared = reader.prepare(plain.parse("Two"))
    finish_with(prepared.sentences[0], "Zwei", -0.1)
    assert verified(reader, prepared)[1] == []


def test_a_source_whose_words_are_always_lost_stays_and_is_told_of(reader: Reader) -> None:
    prepared = reader.prepare(plain.parse("%d dog"))
    for answer in ("{}", "5"):
        slots = [slot.word for sentence in prepared.sentences for _, slot in sentence.slots]
        verification, [rereading] = verified(reader, translated(prepared, answer.format(*slots)))
        for sentence in rereading.again.sentences:
            finish(sentence, "5")
        verification.choose(rereading)
        prepared = PreparedText(prepared.parsed, [rereading.passage])
        for sentence in prepared.sentences:
            sentence.sequence.output.finished = []
    [passage] = prepared.passages
    assert passage.sentences == []
    assert [(check.kind, check.mended) for check in passage.checks][-1] == ("untranslated", False)


@pytest.mark.parametrize(
    ("source", "target", "reason", "kinds"),
    [
        ("A dog (big) runs.", "Ein Hund (groß) rennt.", "eos", []),
        ("A dog (big) runs.", "Ein Hund groß) rennt.", "eos", ["brackets"]),
        ('He said "no" twice.', "Er sagte zweimal „nein“.", "eos", []),
        ('He said "no" twice.', "Er sagte zweimal „nein.", "eos", ["quotes"]),
        ("A dog runs fast.", "Ein Hund", "length", ["end"]),
        ("A dog runs fast.", "Ein Hund rennt rennt rennt rennt rennt rennt rennt rennt", "eos", ["repetition"]),
        ("A dog runs fast.", "A dog runs fast.", "eos", ["untranslated"]),
    ],
)
def test_mistakes_are_reported(reader: Reader, source: str, target: str, reason: str, kinds: list[str]) -> None:
    [passage] = reader.prepare(plain.parse(source)).passages
    [sentence] = passage.sentences
    token_ids = TOKENIZER.encode([target])[0]
    sentence.sequence.output.finished.append(Hypothesis(token_ids, -1.0, reason))  # type: ignore[arg-type]
    found = [*checks_of(passage, target, [Span(0, len(target))])]
    assert [item.kind for item in found] == kinds
    assert all(item.source == source and not item.mended for item in found)
