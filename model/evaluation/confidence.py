"""Confidence of translations: which share of the sentences with a score are good, by chrF of held-out sentences.

The statistic is the mean log-probability of a sentence's tokens, end of sequence included. An isotonic map makes a
probability of it (Zadrozny and Elkan 2002, "Transforming Classifier Scores into Accurate Multiclass Probabilities").
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.request import Request, urlopen

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.chrf import CHRF

from manifest.schema import MAX_CONFIDENCE_POINTS, Confidence
from model.checkpoint import Checkpoint
from model.data import DataError, Row, load_rows
from model.evaluation.reliability import calibration_error
from model.evaluation.scoring import sample_rows, translate
from model.recipe import DataSource

GOOD_CHRF = 60.0
"""A translation with this chrF or more is good."""
ROWS = 1200
"""Sentences that are translated, as many of each test set as possible."""
N_BINS = 10
"""Bins of the calibration error."""
SERVED_TEXTS = 25
"""Sentences of one request."""

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
TranslationsOf = Callable[[Sequence[str]], list[tuple[str, float]]]
"""Translates sentences: the text and the score of each translation."""
_Pool = tuple[float, float, int]
"""The sum of scores and of good sentences, and the number of sentences."""


def measure_confidence(
    translations_of: TranslationsOf, sources: Sequence[DataSource], data_dir: Path | None, n_rows: int = ROWS
) -> Confidence:
    """Calibrate a translator on test sets, each of which counts the same. Raises DataError: a corpus is missing, empty
    or malformed."""
    rows = [row for source in sources for row in sample_rows(load_rows(source, data_dir), n_rows // len(sources))]
    return calibrated(*judged(translations_of, rows))


def judged(translations_of: TranslationsOf, rows: Sequence[Row]) -> tuple[Floats, Booleans]:
    """Translate sentences, and return the score of each translation (N), and whether it is good (N)."""
    translations = translations_of([row.left for row in rows])
    chrf = CHRF()
    pairs = zip(translations, rows, strict=True)
    is_good = [chrf.sentence_score(text, [row.right]).score >= GOOD_CHRF for (text, _), row in pairs]
    return np.array([score for _, score in translations]), np.array(is_good)


def greedy(checkpoint: Checkpoint, texts: Sequence[str]) -> list[tuple[str, float]]:
    """Translate sentences by a checkpoint, without a beam: their texts and scores."""
    return [(text, hypothesis.score) for text, hypothesis in translate(checkpoint, texts)]


def served(url: str, checkpoint: Checkpoint, texts: Sequence[str]) -> list[tuple[str, float]]:
    """Translate sentences by a running service that has the model, as it searches by default: their texts and scores.
    Raises DataError: the service does not answer."""
    model = checkpoint.config.model
    asked = {"model": checkpoint.config.name, "split_sentences": False}
    asked |= {side: str(getattr(model, side)) for side in ("source", "target")}
    translations: list[tuple[str, float]] = []
    for start in range(0, len(texts), SERVED_TEXTS):
        body = json.dumps(asked | {"text": texts[start : start + SERVED_TEXTS]}).encode()
        request = Request(f"{url}/translate", body, {"Content-Type": "application/json"})
        try:
            with urlopen(request) as answer:
                content = json.load(answer)
        except OSError as error:
            raise DataError(f"{url} does not translate with {checkpoint.config.name}: {error}") from error
        translations += [(one["text"], one["score"]) for one in content["translations"]]
    return translations


def calibrated(scores: Floats, is_good: Booleans) -> Confidence:
    """Return the map from scores (N) to the share of good sentences, and its calibration error: each half of the
    sentences is judged by the map of the other half."""
    halves = np.arange(len(scores)) % 2 == 0
    judged = np.zeros(len(scores))
    for half in (halves, ~halves):
        fitted = Confidence(points=isotonic_points(scores[half], is_good[half]), error=0, sentences=1)
        judged[~half] = [fitted.of(score) for score in scores[~half].tolist()]
    error = round(100 * calibration_error(judged, is_good, N_BINS), 2)
    return Confidence(points=isotonic_points(scores, is_good), error=error, sentences=len(scores))


def isotonic_points(scores: Floats, is_good: Booleans) -> tuple[tuple[float, float], ...]:
    """Return points (score, share of good sentences) of a map that never falls, by pooling adjacent violators. Groups
    of similar scores are pooled rather than single sentences, so that the map has few points and does not follow
    chance."""
    order = np.argsort(scores, kind="stable")
    pools: list[_Pool] = []
    for group in np.array_split(order, min(MAX_CONFIDENCE_POINTS, len(order))):
        pool = float(scores[group].sum()), float(is_good[group].sum()), len(group)
        while pools and (_share(pools[-1]) >= _share(pool) or _score(pools[-1]) == _score(pool)):
            before = pools.pop()
            pool = before[0] + pool[0], before[1] + pool[1], before[2] + pool[2]
        pools.append(pool)
    return tuple((_score(pool), _share(pool)) for pool in pools)


def _score(pool: _Pool) -> float:
    return round(pool[0] / pool[2], 4)


def _share(pool: _Pool) -> float:
    return round(pool[1] / pool[2], 4)
