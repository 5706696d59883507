import io
import json
import math
import shutil
from pathlib import Path
from typing import Any
from urllib.request import Request

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from manifest.file import read_manifest
from manifest.schema import MAX_CONFIDENCE_POINTS, Confidence
from model.__main__ import app
from model.checkpoint import CONFIDENCE, EVALUATION, load_checkpoint
from model.evaluation.confidence import calibrated, isotonic_points, served
from model.evaluation.reliability import calibration_error
from model.evaluation.scoring import translate
from model.evaluation.sentences import sentences_for
from model.networks.transformer import Transformer
from tests.running_service import ROOT

SHIPPED = ROOT / "artifacts" / "translate-en-fr"


def sentences(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Scores, and translations that are good with the probability of exp(2 * score)."""
    rng = np.random.default_rng(seed)
    scores = -rng.exponential(0.4, n)
    return scores, rng.random(n) < np.exp(2 * scores)


@pytest.mark.parametrize("n", [1, 7, 400])
def test_the_map_rises_and_has_few_points(n: int) -> None:
    points = isotonic_points(*sentences(n))
    assert 1 <= len(points) <= MAX_CONFIDENCE_POINTS
    assert [*points] == sorted(points)
    assert all(0 <= value <= 1 for _, value in points)


def test_equal_scores_have_one_confidence() -> None:
    assert isotonic_points(np.full(40, -0.5), np.arange(40) < 10) == ((-0.5, 0.25),)


def test_of_sentences_with_a_confidence_as_many_are_good() -> None:
    confidence = calibrated(*sentences(2000))
    scores, is_good = sentences(5000, seed=1)
    values = np.array([confidence.of(score) for score in scores.tolist()])
    assert calibration_error(values, is_good, 10) < 0.05
    assert confidence.error < 5
    assert calibration_error(np.exp(scores), is_good, 10) > 0.1, "without the map it is not calibrated"


@pytest.mark.parametrize(
    ("score", "value"), [(-9.0, 0.1), (-1.0, 0.1), (-0.75, 0.2), (-0.5, 0.3), (-0.3, 0.6), (-0.1, 0.9), (0.0, 0.9)]
)
def test_a_confidence_lies_on_the_line_between_its_points(score: float, value: float) -> None:
    confidence = Confidence(points=((-1.0, 0.1), (-0.5, 0.3), (-0.1, 0.9)), error=1.0, sentences=10)
    assert math.isclose(confidence.of(score), value)


@pytest.mark.parametrize(
    "points", [(), ((0.0, 0.5), (-1.0, 0.6)), ((-1.0, 0.6), (0.0, 0.5)), ((-1.0, 0.1), (0.0, 1.1)), ((0.0, 0.1),) * 2]
)
def test_a_map_that_falls_or_leaves_its_range_is_refused(points: tuple[tuple[float, float], ...]) -> None:
    with pytest.raises(ValueError, match="points"):
        Confidence(points=points, error=1.0, sentences=10)


@pytest.mark.slow
def test_a_finished_artifact_gets_its_confidence_without_an_export(tmp_path: Path) -> None:
    artifact = tmp_path / SHIPPED.name
    shutil.copytree(SHIPPED, artifact)
    rows = (ROOT / "model" / "suites" / "en-fr.tsv").read_text(encoding="utf-8").splitlines()[:40]
    (tmp_path / "test.tsv").write_text("\n".join(rows), encoding="utf-8")
    recipe = artifact / "recipe.yaml"
    text = recipe.read_text(encoding="utf-8")
    before, _, after = text.partition("  test:\n")
    test = "  test:\n    - file: test.tsv\n      licence: our own\n"
    recipe.write_text(f"{before}{test}\n{after[after.index('training:') :]}", encoding="utf-8")
    CliRunner().invoke(app, ["confidence", str(artifact), "--data", str(tmp_path)], catch_exceptions=False)
    written = json.loads((artifact / EVALUATION).read_text(encoding="utf-8"))[CONFIDENCE]
    manifest = read_manifest(artifact)
    assert manifest.confidence == Confidence.model_validate(written) == load_checkpoint(artifact).confidence
    assert manifest.confidence.sentences == len(rows)
    assert manifest.model_copy(update={"confidence": None}) == read_manifest(SHIPPED).model_copy(
        update={"confidence": None}
    )


def test_a_service_is_asked_for_its_own_translations_and_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    def answer(request: Request) -> io.BytesIO:
        assert isinstance(request.data, bytes)
        asked.append(json.loads(request.data))
        translations = [{"text": text.upper(), "score": -0.01 * len(text)} for text in asked[-1]["text"]]
        return io.BytesIO(json.dumps({"translations": translations}).encode())

    monkeypatch.setattr("model.evaluation.confidence.urlopen", answer)
    texts = ["a" * n for n in range(1, 40)]
    checkpoint = load_checkpoint(SHIPPED)
    assert served("http://attend", checkpoint, texts) == [(text.upper(), -0.01 * len(text)) for text in texts]
    assert [text for body in asked for text in body["text"]] == texts
    wanted = {"model": "translate-en-fr", "source": "en", "target": "fr", "split_sentences": False}
    assert all({name: value for name, value in body.items() if name != "text"} == wanted for body in asked)


@pytest.mark.slow
def test_translations_with_a_fault_are_among_the_least_sure() -> None:
    """A half of the sentence is missing, or a word is that of another sentence."""
    checkpoint = load_checkpoint(SHIPPED)
    assert isinstance(checkpoint.model, Transformer)
    assert checkpoint.confidence is not None
    texts = [row.left for row in sentences_for(checkpoint.config.model)]
    translated = [hypothesis.ids for _, hypothesis in translate(checkpoint, texts)]
    numbered = [*zip(checkpoint.encode(texts), translated, strict=True)]
    pairs = [(source, ids) for source, ids in numbered if len(ids) >= 6]
    halves = [(source, ids[: len(ids) // 2]) for source, ids in pairs]
    others = [other[2] for _, other in pairs[1:] + pairs[:1]]
    changed = [(source, [*ids[:2], other, *ids[3:]]) for (source, ids), other in zip(pairs, others, strict=True)]
    whole, *faulty = (
        [checkpoint.confidence.of(forced_score(checkpoint.model, *pair)) for pair in some]
        for some in (pairs, halves, changed)
    )
    least = np.quantile(whole, 0.25)
    for found in faulty:
        assert np.mean(np.array(found) <= least) >= 0.7


@torch.inference_mode()
def forced_score(model: Transformer, source: list[int], target: list[int]) -> float:
    """The mean log-probability of the tokens of a given target, and of end of sequence behind them."""
    special = model.config.special_tokens
    read, written = torch.tensor([[special.bos, *target]]), torch.tensor([*target, special.eos])
    hidden = model(torch.tensor([source]), torch.tensor([len(source)]), read)
    log_probs = model.logits(hidden)[0].log_softmax(dim=-1)
    return float(log_probs[torch.arange(len(written)), written].mean())
