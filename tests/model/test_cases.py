import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from tokenizers import Tokenizer

from model.checkpoint import Checkpoint
from model.config import ClassifierConfig, Config, TransformerConfig
from model.data import OWN_CORPORA, read_tsv
from model.decoding.search import Hypothesis
from model.evaluation import cases as module
from model.evaluation.cases import (
    SUITES,
    Answer,
    CaseResult,
    LabelSuite,
    SuiteError,
    TranslationCase,
    TranslationSuite,
    answers_of,
    load_suite,
    pass_counts,
    pass_rates,
    run_suite,
    suite_for,
)
from model.evaluation.checks import find_match, normalize_text
from model.networks.transformer import Transformer, TransformerClassifier

CASE: dict[str, Any] = {"text": "A dog.", "right": "Un chien.", "must": ["chien"]}
TRANSLATIONS: dict[str, Any] = {"source": "en", "target": "fr", "never": ["the"], "cases": {"plain": [CASE]}}
LABELS: dict[str, Any] = {
    "labels": ["negative", "neutral", "positive"],
    "cases": {"plain": [{"text": "Good.", "label": "positive"}, {"text": "Bad.", "label": "negative"}]},
}
DIRECTIONS = sorted(path.stem for path in SUITES.glob("??-??.yaml"))
SAME_MEANING = {"Attention !", "Faites attention !"}


def written(directory: Path, content: Any) -> Path:
    path = directory / "suite.yaml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content, allow_unicode=True))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("name", DIRECTIONS)
def test_a_right_translation_passes_its_case_and_no_other(name: str) -> None:
    """Loading a suite checks that it passes its own case."""
    suite = load_suite(SUITES / f"{name}.yaml")
    assert isinstance(suite, TranslationSuite)
    cases = [case for cases in suite.cases.values() for case in cases]
    for case in cases:
        assert case.problems(case.text, suite.never), "a copy"
        assert case.problems("", suite.never), "nothing"
        for other in cases:
            if other.right.casefold() == case.right.casefold() or {case.text, other.text} == SAME_MEANING:
                continue
            lacks_a_word = any(
                find_match(pattern, normalize_text(other.right)) is None for pattern in case.must
            )  # the fast check first
            assert lacks_a_word or case.problems(other.right, suite.never), f"{other.right!r} for {case.text!r}"


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(SUITES.glob("*.yaml")), ids=lambda path: path.stem)
def test_suites_have_enough_cases_and_none_twice(path: Path) -> None:
    suite = load_suite(path)
    texts = [case.text for cases in suite.cases.values() for case in cases]
    assert len(texts) == len(set(texts))
    for category, cases in suite.cases.items():
        assert re.fullmatch("[a-z_]+", category)
        assert len(cases) >= (8 if category == "long_texts" else 12)


@pytest.mark.slow
@pytest.mark.parametrize("name", DIRECTIONS)
def test_each_direction_has_200_words_and_60_sentences(name: str) -> None:
    suite = load_suite(SUITES / f"{name}.yaml")
    assert isinstance(suite, TranslationSuite)
    assert len(suite.words) == 200
    assert not suite.words.keys() & {case.text for cases in suite.cases.values() for case in cases}
    for text, answers in suite.words.items():
        assert not any(suite.problems_of_word(text, answer) for answer in answers)
    sentences = list(read_tsv(SUITES / f"{name}.tsv"))
    assert len({text for text, _ in sentences}) == 60 == len({right for _, right in sentences})


def test_there_are_200_remarks_of_each_kind_about_as_many() -> None:
    suite = load_suite(SUITES / "sentiment.yaml")
    assert isinstance(suite, LabelSuite)
    assert {label: len(texts) for label, texts in suite.remarks.items()} == {
        "positive": 70,
        "negative": 70,
        "neutral": 60,
    }
    texts = {text.casefold() for texts in suite.remarks.values() for text in texts}
    assert len(texts) == 200


def test_no_case_is_trained_on() -> None:
    """Nor is any text trained on that has most of its words."""
    suite = load_suite(SUITES / "sentiment.yaml")
    learned = [set(re.findall(r"\w+", row.right.lower())) for row in read_tsv(OWN_CORPORA / "remarks.tsv")]
    assert isinstance(suite, LabelSuite)
    cases = [case.text for cases in suite.cases.values() for case in cases]
    for text in [*cases, *(text for texts in suite.remarks.values() for text in texts)]:
        words = set(re.findall(r"\w+", text.lower()))
        assert all(len(words & other) / len(words | other) < 0.5 for other in learned), text


def test_neither_label_wins_by_being_said_always() -> None:
    suite = load_suite(SUITES / "sentiment.yaml")
    assert isinstance(suite, LabelSuite)
    labels = [case.label for cases in suite.cases.values() for case in cases]
    assert 0.45 < labels.count("positive") / len(labels) < 0.55


@pytest.mark.parametrize(
    ("case", "output", "passes"),
    [
        ({"length": (0.5, 1.5)}, "Un chien.", True),
        ({"length": (1.5, 3)}, "Un chien.", False),
        ({}, "Un chien brun et un chat noir.", False),
        ({"ends": "!"}, "Un chien.", False),
        ({"never": ["noir"]}, "Un chien noir.", False),
    ],
)
def test_what_a_case_asks_for(case: dict[str, Any], output: str, passes: bool) -> None:
    assert (TranslationCase.model_validate(CASE | case).problems(output) == []) is passes


@pytest.mark.parametrize(("output", "passes"), [("犬がいる。", True), ("犬がいる。" * 3, False)])
def test_the_length_of_japanese_is_counted_in_letters(output: str, passes: bool) -> None:
    case = TranslationCase.model_validate({"text": "A dog.", "right": "犬がいる。", "must": ["犬"], "length": (0.5, 2)})
    assert any("1 to 4 words" in problem for problem in case.problems(output)) is not passes


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: [", "not YAML"),
        ("[]", "valid dictionary"),
        (TRANSLATIONS | {"cases": {}}, "cases: .*at least 1"),
        (TRANSLATIONS | {"cases": {"plain": [{"text": "A dog.", "right": "Un chien."}]}}, "needs `must` or `keep`"),
        (TRANSLATIONS | {"cases": {"plain": [CASE | {"mist": []}]}}, "cases.plain.0.mist: Extra"),
        (TRANSLATIONS | {"cases": {"plain": [CASE | {"must": ["("]}]}}, "is not a regular expression"),
        (TRANSLATIONS | {"cases": {"plain": [CASE | {"must": ["chat"]}]}}, "fails its own case: chat"),
        (TRANSLATIONS | {"words": {"Save": []}}, "words.Save: .*at least 1"),
        (LABELS | {"remarks": {"good": ["Nice."]}}, "`remarks` have labels good, which are not in `labels`"),
        (LABELS | {"labels": ["negative", "neutral"]}, "label 'positive' must be one of negative, neutral"),
    ],
)
def test_an_unusable_suite_is_refused_in_words(tmp_path: Path, content: Any, message: str) -> None:
    with pytest.raises(SuiteError, match=rf"suite\.yaml: .*{message}"):
        load_suite(written(tmp_path, content))


def test_a_suite_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match=r"none\.yaml: no such file"):
        load_suite(tmp_path / "none.yaml")


def test_the_suite_fits_the_direction_or_the_labels(
    tmp_path: Path, transformer: Transformer, classifier: TransformerClassifier
) -> None:
    translator = transformer.config
    written(tmp_path, TRANSLATIONS)
    assert isinstance(suite_for(translator, tmp_path), TranslationSuite)
    assert suite_for(translator.model_copy(update={"source": "fr", "target": "en"}), tmp_path) is None
    assert suite_for(classifier.config, tmp_path) is None
    written(tmp_path, LABELS)
    assert isinstance(suite_for(classifier.config, tmp_path), LabelSuite)
    assert suite_for(classifier.config.model_copy(update={"labels": ("negative", "positive")}), tmp_path) is None
    assert suite_for(translator, tmp_path) is None


def checkpoint(model: Transformer | TransformerClassifier, tokenizer: Tokenizer) -> Checkpoint:
    config = Config.model_construct(name="tiny", model=model.config)
    assert isinstance(config.model, TransformerConfig | ClassifierConfig)
    return Checkpoint(config, model, tokenizer, {})


def test_translations_are_checked_in_the_order_of_the_suite(
    monkeypatch: pytest.MonkeyPatch, transformer: Transformer, tokenizer: Tokenizer
) -> None:
    suite = TranslationSuite.model_validate(
        TRANSLATIONS | {"cases": {"b": [CASE], "a": [CASE | {"text": "The dog.", "right": "Le chien."}, CASE]}}
    )
    answers = {"A dog.": "Un chat.", "The dog.": "Le chien."}
    hypothesis = Hypothesis([], 0.0, finished=True)
    monkeypatch.setattr(module, "translate", lambda _, texts: [(answers[text], hypothesis) for text in texts])
    results = run_suite(suite, answers_of(checkpoint(transformer, tokenizer)))
    assert results == [
        CaseResult("b", "A dog.", "Un chat.", "Un chien.", ["chien"]),
        CaseResult("a", "The dog.", "Le chien.", "Le chien.", []),
        CaseResult("a", "A dog.", "Un chat.", "Un chien.", ["chien"]),
    ]
    assert pass_counts(results) == {"b": (0, 1), "a": (1, 2), "all": (1, 3)}
    assert list(pass_rates(results).items()) == [("b", 0.0), ("a", 50.0), ("all", 33.3)]
    assert json.dumps(pass_rates(results))


@pytest.mark.parametrize(
    ("output", "problems"),
    [
        ("Enregistrer", []),
        ("la sauvegarde.", []),
        ("SAUVEGARDE", []),
        ("Save", ["untranslated"]),
        ("save.", ["untranslated"]),
        ("Rave", ["another word"]),
        ("Sauvegarde de Paris", ["another word"]),
        ("", ["another word"]),
    ],
)
def test_a_word_has_several_right_translations_and_its_own_is_none(output: str, problems: list[str]) -> None:
    words = {"Save": ["enregistrer", "sauvegarde"], "Service": ["service"]}
    suite = TranslationSuite.model_validate(TRANSLATIONS | {"words": words})
    assert suite.problems_of_word("Save", output) == problems
    assert suite.problems_of_word("Service", "Service") == [], "where both languages have the same word"


def test_words_are_counted_apart_from_failure_cases() -> None:
    suite = TranslationSuite.model_validate(
        TRANSLATIONS | {"words": {"Save": ["enregistrer"], "Year": ["année", "an"]}}
    )
    answers = {"A dog.": "Un chien.", "Save": "Save", "Year": "an"}
    results = run_suite(suite, lambda texts: [Answer(answers[text]) for text in texts])
    assert results[1:] == [
        CaseResult("words", "Save", "Save", "enregistrer", ["untranslated"]),
        CaseResult("words", "Year", "an", "année", []),
    ]
    assert list(pass_counts(results).items()) == [("plain", (1, 1)), ("all", (1, 1)), ("words", (1, 2))]


def test_remarks_are_labelled_and_neutral_ones_want_an_unsure_answer() -> None:
    labels = {"labels": ["negative", "positive"], "cases": {"plain": [{"text": "Good.", "label": "positive"}]}}
    remarks = {"negative": ["It leaks."], "neutral": ["It is red.", "It is blue."]}
    suite = LabelSuite.model_validate(labels | {"remarks": remarks})
    scores = {"Good.": 0.9, "It leaks.": 0.9, "It is red.": 0.64, "It is blue.": 0.66}
    results = run_suite(suite, lambda texts: [Answer("positive", scores[text]) for text in texts])
    assert [(result.category, not result.problems) for result in results] == [
        ("plain", True),
        ("remarks", False),
        ("remarks", True),
        ("remarks", False),
    ]
    assert pass_counts(results) == {"plain": (1, 1), "all": (1, 1), "remarks": (1, 3)}


def test_labels_are_compared(
    monkeypatch: pytest.MonkeyPatch, classifier: TransformerClassifier, tokenizer: Tokenizer
) -> None:
    monkeypatch.setattr(module, "classify", lambda _, texts: [{"negative": 0.2, "positive": 0.8} for _ in texts])
    results = run_suite(LabelSuite.model_validate(LABELS), answers_of(checkpoint(classifier, tokenizer)))
    assert [(result.output, result.right, bool(result.problems)) for result in results] == [
        ("positive", "positive", False),
        ("positive", "negative", True),
    ]


@pytest.mark.parametrize(("score", "passes"), [(0.64, True), (0.65, False)])
def test_a_text_without_a_label_wants_an_unsure_answer(score: float, passes: bool) -> None:
    suite = LabelSuite.model_validate(LABELS | {"neutral": ["The table is made of wood."]})
    *_, result = run_suite(suite, lambda texts: [Answer("positive", score) for _ in texts])
    assert (result.category, result.text, not result.problems) == ("neutral", "The table is made of wood.", passes)
