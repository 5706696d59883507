"""Classifiers that were trained elsewhere, from their directories to a client: probabilities are transformers' own."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import torch

import export.artifact
from export.artifact import export as export_artifact
from model.importing.families import import_model
from model.importing.imported import Options
from tests.model.importing.encoder_checkpoints import (
    FAMILIES,
    N_POSITIONS,
    TEXTS,
    original_ids,
    original_logits,
    write_encoder,
)
from tests.running_service import running_service

MULTI_LABEL = {"problem_type": "multi_label_classification"}
LABELS = {"id2label": {0: "bad", 1: "so so", 2: "good"}}
CLASSIFIERS: dict[str, dict[str, Any]] = dict.fromkeys(FAMILIES, LABELS) | {"roberta": LABELS | MULTI_LABEL}


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Any]]:
    """Directory and model of each classifier."""
    root = tmp_path_factory.mktemp("originals")
    return {
        name: (root / name, write_encoder(root / name, name, "ForSequenceClassification", **changes))
        for name, changes in CLASSIFIERS.items()
    }


@pytest.fixture(scope="module")
def imported(
    originals: dict[str, tuple[Path, Any]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx.Client]:
    """A client of a service that has them all, in float32."""
    root = tmp_path_factory.mktemp("imported")
    served_models = export.artifact.served_models
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("export.artifact.served_models", lambda *given: {"cpu": served_models(*given)["cpu"]})
        for name, (directory, _) in originals.items():
            import_model(str(directory), root / "checkpoints" / name, Options())
            export_artifact(root / "checkpoints" / name, root / "artifacts" / name, "fp32")
    with running_service(
        root / "log", {"ATTEND_PROVIDER": "cpu", "ATTEND_ARTIFACTS": str(root / "artifacts")}
    ) as client:
        yield client


def ask(client: httpx.Client, path: str, **body: Any) -> Any:
    response = client.post(path, json=body)
    assert response.status_code == 200, response.text
    return response.json()


def windows_of(ids: list[int]) -> list[list[int]]:
    """In which a text is read: of nearly equal length, each with its special tokens."""
    first, *text, last = ids
    bounds = np.linspace(0, len(text), -(-len(text) // (N_POSITIONS - 2)) + 1).astype(int)
    return [[first, *text[start:end], last] for start, end in pairwise(bounds)]


def expected_probabilities(directory: Path, model: Any, text: str) -> list[float]:
    """The mean of the logits of all windows by their tokens of text, as probabilities."""
    windows = windows_of(original_ids(directory, text))
    logits = torch.stack([original_logits(model, ids) for ids in windows])
    lengths = torch.tensor([len(ids) - 2 for ids in windows]).float()
    mean = (logits * lengths[:, None]).sum(dim=0) / lengths.sum()
    is_multi_label = model.config.problem_type is not None
    found: list[float] = (mean.sigmoid() if is_multi_label else mean.softmax(dim=0)).tolist()
    return found


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_probabilities_are_those_of_transformers(
    imported: httpx.Client, originals: dict[str, tuple[Path, Any]], name: str
) -> None:
    directory, model = originals[name]
    predictions = ask(imported, "/classify", text=TEXTS, model=name)["predictions"]
    for text, prediction in zip(TEXTS, predictions, strict=True):
        found = [prediction["scores"][label] for label in LABELS["id2label"].values()]
        assert found == pytest.approx(expected_probabilities(directory, model, text), abs=1e-4), text
        assert prediction["score"] == max(found) == prediction["scores"][prediction["label"]]
        assert prediction["tokens"] == sum(map(len, windows_of(original_ids(directory, text))))
    assert predictions[-1]["tokens"] > N_POSITIONS, "the last one has windows"


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_answers_are_the_same_bits_alone_and_in_a_crowd(imported: httpx.Client, name: str) -> None:
    bodies = [{"text": [text, TEXTS[i % 3]], "model": name} for i, text in enumerate(TEXTS * 4)]
    alone = [ask(imported, "/classify", text=text, model=name)["predictions"][0] for text in TEXTS]
    with ThreadPoolExecutor(len(bodies)) as clients:
        together = list(clients.map(lambda body: ask(imported, "/classify", **body)["predictions"], bodies))
    assert [first for first, _ in together] == alone * 4
    assert [second for _, second in together] == [alone[i % 3] for i in range(len(bodies))]


def test_there_is_no_evidence_where_logits_are_no_sums_over_tokens(imported: httpx.Client) -> None:
    response = imported.post("/classify", json={"text": "Good.", "model": "bert", "evidence": True})
    assert response.status_code == 422
    assert response.json()["detail"] == (
        "evidence: the logits of bert are made of what its first token has become, and are no sums over tokens; "
        'ask for "attention"'
    )


def test_attention_of_every_window_is_that_of_transformers(
    imported: httpx.Client, originals: dict[str, tuple[Path, Any]]
) -> None:
    directory, model = originals["bert"]
    model.set_attn_implementation("eager")
    text = TEXTS[-1]
    (found,) = ask(imported, "/classify", text=text, model="bert", attention=True)["predictions"]
    attention, windows = found["attention"], windows_of(original_ids(directory, text))
    assert len(windows) > 1
    tokens = [token["token"] for token in attention["source"]]
    assert len(tokens) == sum(map(len, windows))
    assert tokens.count("[CLS]") == tokens.count("[SEP]") == len(windows)
    covered = {i for token in attention["source"] for i in range(*token["span"])}
    assert covered == {i for i, character in enumerate(text) if character != " "}
    first = 0
    for ids in windows:
        with torch.inference_mode():
            expected = model(input_ids=torch.tensor([ids]), output_attentions=True).attentions
        for one in (one for one in attention["matrices"] if one["first_row"] == first):
            np.testing.assert_allclose(one["weights"], expected[one["layer"]][0, one["head"]], atol=1e-4)
        assert sum(one["first_row"] == first for one in attention["matrices"]) == 2 * 3
        first += len(ids)
