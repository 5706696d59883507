"""Suites of cases that models fail, each with a check that any good answer passes: `suites/*.yaml`.

A test set scores the average of sentences like those of training; a suite shows what happens to others.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Self

from pydantic import AfterValidator, Field, model_validator

from model.checked_yaml import Strict, load_yaml
from model.checkpoint import Checkpoint
from model.config import ClassifierConfig, ModelConfig, RecurrentConfig, TransformerConfig
from model.evaluation.checks import Ending, bare_word, n_words, problems_in
from model.evaluation.scoring import classify, translate
from model.networks.transformer import TransformerClassifier

SUITES = Path(__file__).parents[1] / "suites"
NEUTRAL, UNSURE = "neutral", 0.65
"""Category of texts without a label, and the score that their answers must stay below."""
WORDS, REMARKS = "words", "remarks"
"""Categories of common texts, of which there are enough for a score; they are not counted among the failure cases."""


class SuiteError(ValueError):
    """A suite is missing or no YAML, or has a case that checks nothing or whose correct answer fails."""


def _compiles(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from error
    return pattern


Pattern = Annotated[str, AfterValidator(_compiles), Field(min_length=1)]
Text = Annotated[str, Field(min_length=1)]


class TranslationCase(Strict):
    """A sentence and the checks of its translation (model/evaluation/checks.py).

    Every translation must be no copy, not repeat itself, and have half to twice as many words, give or take two; two
    letters of Japanese count as a word. `length` replaces these bounds.
    """

    text: Text
    right: Text
    """A correct translation, which passes."""
    must: tuple[Pattern, ...] = ()
    never: tuple[Pattern, ...] = ()
    keep: tuple[Text, ...] = ()
    ends: Ending | None = None
    capitals: bool = False
    length: tuple[float, float] | None = None
    """Fewest and most words, as multiples of those of the source."""

    @model_validator(mode="after")
    def _can_be_failed(self) -> Self:
        if not (self.must or self.keep):
            raise ValueError(f"{self.text!r} needs `must` or `keep`, otherwise nearly anything passes")
        return self

    def problems(self, output: str, never: Sequence[str] = ()) -> list[str]:
        """Return the failed checks of a translation; `never` has patterns for all cases of a suite."""
        n = n_words(self.text)
        shortest, longest = (n * ratio for ratio in self.length) if self.length else (n / 2 - 2, 2 * n + 2)
        return problems_in(
            self.text,
            output,
            must=self.must,
            never=(*never, *self.never),
            keep=self.keep,
            ends=self.ends,
            capitals=self.capitals,
            shortest=max(1, math.floor(shortest)),
            longest=math.ceil(longest),
        )


class TranslationSuite(Strict):
    source: str
    target: str
    never: tuple[Pattern, ...] = ()
    """Words of the source language that the target language does not have."""
    cases: dict[str, tuple[TranslationCase, ...]] = Field(min_length=1)
    """Cases by category."""
    words: dict[Text, Annotated[tuple[Text, ...], Field(min_length=1)]] = Field(default_factory=dict)
    """Common words and buttons, each with its right translations, in any case, with or without an article."""

    @model_validator(mode="after")
    def _right_translations_pass(self) -> Self:
        for case in (case for cases in self.cases.values() for case in cases):
            if problems := case.problems(case.right, self.never):
                raise ValueError(f"{case.right!r} fails its own case: {'; '.join(problems)}")
        return self

    def problems_of_word(self, text: str, output: str) -> list[str]:
        """Return what is wrong with the translation of one of `words`."""
        translated = bare_word(output, self.target)
        if translated in {bare_word(answer, self.target) for answer in self.words[text]}:
            return []
        return ["untranslated" if translated == bare_word(text, self.target) else "another word"]


class LabelCase(Strict):
    text: Text
    label: str


class LabelSuite(Strict):
    labels: frozenset[str] = Field(min_length=2)
    cases: dict[str, tuple[LabelCase, ...]] = Field(min_length=1)
    neutral: tuple[Text, ...] = ()
    """Texts that no label fits: the answer must be unsure."""
    remarks: dict[str, tuple[Text, ...]] = Field(default_factory=dict)
    """Short remarks by label, or `neutral`, as people write them of what they use and buy."""

    @model_validator(mode="after")
    def _labels_are_known(self) -> Self:
        if unknown := self.remarks.keys() - self.labels - {NEUTRAL}:
            raise ValueError(f"`remarks` have labels {', '.join(sorted(unknown))}, which are not in `labels`")
        for case in (case for cases in self.cases.values() for case in cases):
            if case.label not in self.labels:
                raise ValueError(f"{case.text!r}: label {case.label!r} must be one of {', '.join(sorted(self.labels))}")
        return self


Suite = TranslationSuite | LabelSuite


class Answer(NamedTuple):
    """The answer to one text: a translation or a label."""

    output: str
    score: float = 1.0
    """Probability of a label."""


AnswerTexts = Callable[[Sequence[str]], Sequence[Answer]]
"""Function that answers texts, in order."""


@dataclass(frozen=True)
class CaseResult:
    category: str
    text: str
    output: str
    """The translation or the label."""
    right: str
    """An answer that passes."""
    problems: list[str]
    """Failed checks; empty if the output passed."""


def load_suite(path: Path) -> Suite:
    """Read and check a suite: of translations where it has a `source`, of labels otherwise. Raises SuiteError: the file
    is missing, or a value is wrong; the message names each key."""
    return load_yaml(path, _checked, SuiteError)


def _checked(content: Any) -> Suite:
    kind = TranslationSuite if isinstance(content, dict) and "source" in content else LabelSuite
    return kind.model_validate(content)


def suite_for(model: ModelConfig, directory: Path = SUITES) -> Suite | None:
    """Return the suite of a translator's direction or of a classifier's labels, if there is one."""
    for path in sorted(directory.glob("*.yaml")):
        suite = load_suite(path)
        if isinstance(suite, LabelSuite):
            fits = isinstance(model, ClassifierConfig) and suite.labels == set(model.labels)
        else:
            fits = isinstance(model, TransformerConfig | RecurrentConfig) and (suite.source, suite.target) == (
                model.source,
                model.target,
            )
        if fits:
            return suite
    return None


def run_suite(suite: Suite, answer: AnswerTexts) -> list[CaseResult]:
    """Answer each case of a suite and check the answers, in the order of the suite."""
    return _run_labels(suite, answer) if isinstance(suite, LabelSuite) else _run_translations(suite, answer)


def _run_translations(suite: TranslationSuite, answer: AnswerTexts) -> list[CaseResult]:
    cases = [(category, case) for category, cases in suite.cases.items() for case in cases]
    outputs = answer([*(case.text for _, case in cases), *suite.words])
    results = [
        CaseResult(category, case.text, output, case.right, case.problems(output, suite.never))
        for (category, case), (output, _) in zip(cases, outputs[: len(cases)], strict=True)
    ]
    return results + [
        CaseResult(WORDS, text, output, right, suite.problems_of_word(text, output))
        for (text, (right, *_)), (output, _) in zip(suite.words.items(), outputs[len(cases) :], strict=True)
    ]


def _run_labels(suite: LabelSuite, answer: AnswerTexts) -> list[CaseResult]:
    cases = [(category, case.text, case.label) for category, cases in suite.cases.items() for case in cases]
    cases += [(NEUTRAL, text, NEUTRAL) for text in suite.neutral]
    cases += [(REMARKS, text, label) for label, texts in suite.remarks.items() for text in texts]
    results = []
    for (category, text, label), (output, score) in zip(cases, answer([text for _, text, _ in cases]), strict=True):
        right, passed = label, output == label
        if category == NEUTRAL or label not in suite.labels:
            right, passed = f"either, below {UNSURE}", score < UNSURE
            output = f"{output}, {score:.2f}"
        results.append(CaseResult(category, text, output, right, [] if passed else [right]))
    return results


def answers_of(checkpoint: Checkpoint) -> AnswerTexts:
    """Return a function that answers with a checkpoint: by greedy translations, or the most probable labels. Raises
    CheckpointError: raised by the function if the checkpoint neither translates nor classifies."""

    def answer(texts: Sequence[str]) -> list[Answer]:
        if isinstance(checkpoint.model, TransformerClassifier):
            return [Answer(*max(scores.items(), key=itemgetter(1))) for scores in classify(checkpoint, texts)]
        return [Answer(output) for output, _ in translate(checkpoint, texts)]

    return answer


def pass_counts(results: Sequence[CaseResult]) -> dict[str, tuple[int, int]]:
    """Return the numbers of passed and of all cases by category: those of failure cases, in order, then `all` of these,
    then `words` or `remarks`."""
    counts: dict[str, tuple[int, int]] = {}
    for result in results:
        for name in (result.category, *(() if result.category in (WORDS, REMARKS) else ("all",))):
            passed, n = counts.pop(name, (0, 0)) if name == "all" else counts.get(name, (0, 0))
            counts[name] = passed + (not result.problems), n + 1
    return counts


def pass_rates(results: Sequence[CaseResult]) -> dict[str, float]:
    """Return the percentage of passed cases by category, in the order of `pass_counts`."""
    return {category: round(100 * passed / n, 1) for category, (passed, n) in pass_counts(results).items()}
