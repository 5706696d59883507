"""Suites of cases that models fail, each with a check of what any good answer fulfils: `suites/*.yaml`.

A test set's score is a mean over sentences like those of training; a suite says what happens to the others.
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
from model.evaluation.checks import Ending, list_problems, n_words
from model.evaluation.scoring import classify, translate
from model.networks.transformer import TransformerClassifier

SUITES = Path(__file__).parents[1] / "suites"


class SuiteError(ValueError):
    """A suite is missing, is not YAML, or holds a case that checks nothing or that its own right answer fails."""


def _compiles(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from error
    return pattern


Pattern = Annotated[str, AfterValidator(_compiles), Field(min_length=1)]
Text = Annotated[str, Field(min_length=1)]


class TranslationCase(Strict):
    """A sentence, and what its translation must fulfil (model/evaluation/checks.py).

    Of every translation it is asked that it is no copy, does not repeat itself, and is half to twice as long in words,
    give or take two, of which two letters of Japanese are one; `length` asks for more.
    """

    text: Text
    right: Text
    """A translation that passes."""
    must: tuple[Pattern, ...] = ()
    never: tuple[Pattern, ...] = ()
    keep: tuple[Text, ...] = ()
    ends: Ending | None = None
    capitals: bool = False
    length: tuple[float, float] | None = None
    """Least and most words, as multiples of the source's."""

    @model_validator(mode="after")
    def _can_be_failed(self) -> Self:
        if not (self.must or self.keep):
            raise ValueError(f"{self.text!r} has neither must nor keep: nearly anything would pass")
        return self

    def problems(self, output: str, never: Sequence[str] = ()) -> list[str]:
        """What a translation lacks; `never` holds for all cases of a suite."""
        n = n_words(self.text)
        shortest, longest = (n * ratio for ratio in self.length) if self.length else (n / 2 - 2, 2 * n + 2)
        return list_problems(
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
    """Words of the source language that are none of the target language."""
    cases: dict[str, tuple[TranslationCase, ...]] = Field(min_length=1)
    """By category."""

    @model_validator(mode="after")
    def _right_translations_pass(self) -> Self:
        for case in (case for cases in self.cases.values() for case in cases):
            if problems := case.problems(case.right, self.never):
                raise ValueError(f"{case.right!r} does not pass its own case: {'; '.join(problems)}")
        return self


class LabelCase(Strict):
    text: Text
    label: str


class LabelSuite(Strict):
    labels: frozenset[str] = Field(min_length=2)
    cases: dict[str, tuple[LabelCase, ...]] = Field(min_length=1)
    neutral: tuple[Text, ...] = ()
    """Texts of which no label is right: the answer must be unsure."""

    @model_validator(mode="after")
    def _labels_are_known(self) -> Self:
        for case in (case for cases in self.cases.values() for case in cases):
            if case.label not in self.labels:
                raise ValueError(f"{case.text!r}: label {case.label!r} is none of {', '.join(sorted(self.labels))}")
        return self


Suite = TranslationSuite | LabelSuite


class Answer(NamedTuple):
    """A translation or a label."""

    output: str
    score: float = 1.0
    """Of a label, its probability."""


AnswerTexts = Callable[[Sequence[str]], Sequence[Answer]]
"""Of each text."""

NEUTRAL, UNSURE = "neutral", 0.65
"""The category of texts without a label, and the score that none of theirs may reach."""


@dataclass(frozen=True)
class CaseResult:
    category: str
    text: str
    output: str
    """The translation or the label."""
    right: str
    """One that passes."""
    problems: list[str]
    """What the output lacks; empty where it passed."""


def load_suite(path: Path) -> Suite:
    """Read and check a suite: of translations where it has a `source`, of labels otherwise.

    Raises:
        SuiteError: with the file's name and each offending key.
    """
    return load_yaml(path, _checked, SuiteError)


def _checked(content: Any) -> Suite:
    kind = TranslationSuite if isinstance(content, dict) and "source" in content else LabelSuite
    return kind.model_validate(content)


def suite_for(model: ModelConfig, directory: Path = SUITES) -> Suite | None:
    """The suite of a translator's direction or of a classifier's labels, if there is one."""
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
    """What is answered to each case, and what that lacks, in the order of the suite."""
    if isinstance(suite, LabelSuite):
        labelled = [(category, case) for category, cases in suite.cases.items() for case in cases]
        labels = answer([case.text for _, case in labelled])
        results = [
            CaseResult(category, case.text, label, case.label, [] if label == case.label else [case.label])
            for (category, case), (label, _) in zip(labelled, labels, strict=True)
        ]
        right = f"either, below {UNSURE}"
        return results + [
            CaseResult(NEUTRAL, text, f"{label}, {score:.2f}", right, [] if score < UNSURE else [right])
            for text, (label, score) in zip(suite.neutral, answer(suite.neutral) if suite.neutral else [], strict=True)
        ]
    translated = [(category, case) for category, cases in suite.cases.items() for case in cases]
    outputs = answer([case.text for _, case in translated])
    return [
        CaseResult(category, case.text, output, case.right, case.problems(output, suite.never))
        for (category, case), (output, _) in zip(translated, outputs, strict=True)
    ]


def answers_of(checkpoint: Checkpoint) -> AnswerTexts:
    """What a checkpoint itself answers: its greedy translations, or the likeliest labels.

    Raises:
        CheckpointError: when it is asked, if it neither translates nor classifies.
    """

    def answer(texts: Sequence[str]) -> list[Answer]:
        if isinstance(checkpoint.model, TransformerClassifier):
            return [Answer(*max(scores.items(), key=itemgetter(1))) for scores in classify(checkpoint, texts)]
        return [Answer(output) for output, _ in translate(checkpoint, texts)]

    return answer


def pass_counts(results: Sequence[CaseResult]) -> dict[str, tuple[int, int]]:
    """Cases passed and cases, by category, in order; `all` of them last."""
    counts: dict[str, tuple[int, int]] = {}
    for result in results:
        for name in (result.category, "all"):
            passed, n = counts.pop(name, (0, 0)) if name == "all" else counts.get(name, (0, 0))
            counts[name] = passed + (not result.problems), n + 1
    return counts


def pass_rates(results: Sequence[CaseResult]) -> dict[str, float]:
    """Percentage of cases passed, by category; `all` of them last."""
    return {category: round(100 * passed / n, 1) for category, (passed, n) in pass_counts(results).items()}
