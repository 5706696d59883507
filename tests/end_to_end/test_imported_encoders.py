"""Classifiers and sentence encoders that were trained elsewhere, from their directories to a client: probabilities are
transformers' own, and embeddings what is pooled of its states.
"""

import base64
import json
import re
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
from service.base.errors import InvalidFields, UnknownModel
from tests.model.importing.encoder_checkpoints import (
    FAMILIES,
    MODES,
    N_POSITIONS,
    TEXTS,
    original_ids,
    original_logits,
    original_states,
    original_tokenizer,
    pooled,
    write_encoder,
    write_modules,
)
from tests.running_service import running_service

pytestmark = pytest.mark.process

MULTI_LABEL = {"problem_type": "multi_label_classification"}
LABELS = {"id2label": {0: "bad", 1: "so so", 2: "good"}}
CLASSIFIERS: dict[str, dict[str, Any]] = dict.fromkeys(FAMILIES, LABELS) | {"roberta": LABELS | MULTI_LABEL}


PLAIN, RICH = "plain", "rich"
PROMPTS = {"query": "Ask: ", "passage": "Tell me of "}
D_PLAIN, D_RICH = 24, 12

Originals = dict[str, tuple[Path, Any]]


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Originals:
    """Directory and model of each; what follows the pooling of RICH is one of them."""
    root = tmp_path_factory.mktemp("originals")
    found: Originals = {
        name: (root / name, write_encoder(root / name, name, "ForSequenceClassification", **changes))
        for name, changes in CLASSIFIERS.items()
    }
    for name, family in ((PLAIN, "xlm-roberta"), (RICH, "bert")):
        found[name] = root / name, write_encoder(root / name, family, "Model")
    write_modules(root / PLAIN, {"pooling_mode_mean_tokens": True})
    dense = [(20, "Tanh", True), (D_RICH, "Identity", False)]
    pooling = {"pooling_mode": MODES, "include_prompt": False}
    first, second = write_modules(root / RICH, pooling, dense, normalize=False)
    said = {"prompts": PROMPTS, "default_prompt_name": "query"}
    (root / RICH / "config_sentence_transformers.json").write_text(json.dumps(said))
    found[f"{RICH} layers"] = root, torch.nn.Sequential(first, torch.nn.Tanh(), second)
    return found


@pytest.fixture(scope="module")
def imported(originals: Originals, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of a service that has them all, in float32."""
    root = tmp_path_factory.mktemp("imported")
    served_models = export.artifact.served_models
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("export.artifact.prove", lambda *_given: [])  # what follows shows more, and takes less time
        patch.setattr("export.artifact.served_models", lambda *given: {"cpu": served_models(*given)["cpu"]})
        for name in (*CLASSIFIERS, PLAIN, RICH):
            options = Options(prompts=PROMPTS if name == PLAIN else {})
            import_model(str(originals[name][0]), root / "checkpoints" / name, options)
            export_artifact(root / "checkpoints" / name, root / "artifacts" / name, "fp32")
    with running_service(
        root / "log", {"ATTEND_PROVIDER": "cpu", "ATTEND_ARTIFACTS": str(root / "artifacts")}
    ) as client:
        yield client


def ask(client: httpx.Client, path: str, **body: Any) -> Any:
    response = client.post(path, json=body)
    assert response.status_code == 200, response.text
    return response.json()


def windows_of(ids: list[int], n_prompt: int = 0) -> list[list[int]]:
    """In which a text is read: of nearly equal length, each with its prompt and its special tokens."""
    before, text, last = ids[: 1 + n_prompt], ids[1 + n_prompt : -1], ids[-1]
    bounds = np.linspace(0, len(text), -(-len(text) // (N_POSITIONS - 2 - n_prompt)) + 1).astype(int)
    return [[*before, *text[start:end], last] for start, end in pairwise(bounds)]


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
def test_probabilities_are_those_of_transformers(imported: httpx.Client, originals: Originals, name: str) -> None:
    directory, model = originals[name]
    predictions = ask(imported, "/classify", text=TEXTS, model=name)["predictions"]
    for text, prediction in zip(TEXTS, predictions, strict=True):
        found = [prediction["scores"][label] for label in LABELS["id2label"].values()]
        assert found == pytest.approx(expected_probabilities(directory, model, text), abs=1e-4), text
        assert prediction["score"] == max(found) == prediction["scores"][prediction["label"]]
        assert prediction["tokens"] == sum(map(len, windows_of(original_ids(directory, text))))
    assert predictions[-1]["tokens"] > N_POSITIONS, "the last one has windows"


PAIRS = [(first, second) for first in TEXTS[::2] for second in TEXTS[1::2]]


@torch.inference_mode()
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_pairs_are_read_and_cut_as_transformers_does(imported: httpx.Client, originals: Originals, name: str) -> None:
    directory, model = originals[name]
    firsts, seconds = (list(texts) for texts in zip(*PAIRS, strict=True))
    predictions = ask(imported, "/classify", text=firsts, text_pair=seconds, model=name, logits=True)["predictions"]
    options = {"truncation": "longest_first", "max_length": N_POSITIONS, "split_special_tokens": True}
    tokenizer = original_tokenizer(directory)
    for pair, prediction in zip(PAIRS, predictions, strict=True):
        read = tokenizer(*pair, return_tensors="pt", **options)
        found = [prediction["logits"][label] for label in LABELS["id2label"].values()]
        assert found == pytest.approx(model(**read).logits[0].tolist(), abs=1e-4), pair
        assert prediction["tokens"] == read["input_ids"].numel()
    assert {prediction["truncated"] for prediction in predictions} == {True, False}
    alone = [
        ask(imported, "/classify", text=first, text_pair=second, model=name, logits=True)["predictions"][0]
        for first, second in PAIRS[::5]
    ]
    assert alone == predictions[::5], "bit for bit"


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_answers_are_the_same_bits_alone_and_in_a_crowd(imported: httpx.Client, name: str) -> None:
    bodies = [{"text": [text, TEXTS[i % 3]], "model": name} for i, text in enumerate(TEXTS * 4)]
    alone = [ask(imported, "/classify", text=text, model=name)["predictions"][0] for text in TEXTS]
    with ThreadPoolExecutor(len(bodies)) as clients:
        together = list(clients.map(lambda body: ask(imported, "/classify", **body)["predictions"], bodies))
    assert [first for first, _ in together] == alone * 4
    assert [second for _, second in together] == [alone[i % 3] for i in range(len(bodies))]


@pytest.mark.parametrize("text", [TEXTS[0], "x"])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_evidence_is_what_logits_lose_without_each_token(
    imported: httpx.Client, originals: Originals, name: str, text: str
) -> None:
    directory, model = originals[name]
    ids = original_ids(directory, text)
    evidence = ask(imported, "/classify", text=text, model=name, evidence=True)["predictions"][0]["evidence"]
    whole = original_logits(model, ids)
    np.testing.assert_allclose([*evidence["logits"].values()], whole, atol=1e-4)
    assert len(evidence["tokens"]) == len(ids) - 2, "not of special tokens"
    for i, token in enumerate(evidence["tokens"], start=1):
        lost = whole - original_logits(model, [*ids[:i], *ids[i + 1 :]])
        np.testing.assert_allclose([*token["contributions"].values()], lost, atol=2e-4)


@pytest.mark.parametrize("name", ["bert", "mpnet", "deberta-v2", "modernbert"])
def test_attention_of_every_window_is_that_of_transformers(
    imported: httpx.Client, originals: Originals, name: str
) -> None:
    directory, model = originals[name]
    model.set_attn_implementation("eager")
    text = TEXTS[-1]
    (found,) = ask(imported, "/classify", text=text, model=name, attention=True)["predictions"]
    attention, windows = found["attention"], windows_of(original_ids(directory, text))
    assert len(windows) > 1
    tokens = [token["token"] for token in attention["source"]]
    assert len(tokens) == sum(map(len, windows))
    assert tokens.count(tokens[0]) == tokens.count(tokens[-1]) == len(windows), "special tokens of each window"
    covered = {i for token in attention["source"] for i in range(*token["span"])}
    assert covered >= {i for i, character in enumerate(text) if character != " "}
    first = 0
    for ids in windows:
        with torch.inference_mode():
            expected = model(input_ids=torch.tensor([ids]), output_attentions=True).attentions
        for one in (matrix for matrix in attention["matrices"] if matrix["first_row"] == first):
            np.testing.assert_allclose(one["weights"], expected[one["layer"]][0, one["head"]], atol=1e-4)
        assert sum(matrix["first_row"] == first for matrix in attention["matrices"]) == 2 * 3
        first += len(ids)


def expected_embedding(originals: Originals, name: str, text: str, prompt: str = "") -> list[float]:
    """The mean of the embeddings of all windows by their pooled tokens."""
    directory, model = originals[name]
    n_prompt = len(original_ids(directory, prompt)) - 2 if prompt else 0
    windows = windows_of(original_ids(directory, prompt + text), n_prompt)
    n_left_out = 1 + n_prompt if name == RICH and prompt else 0
    found = []
    for ids in windows:
        states = original_states(model, ids)
        with torch.inference_mode():
            of_rich = originals[f"{RICH} layers"][1]
            found.append(states.mean(dim=0) if name == PLAIN else of_rich(pooled(states, n_left_out)))
    weights = torch.tensor([len(ids) - n_left_out for ids in windows]).float()
    mean = (torch.stack(found) * weights[:, None]).sum(dim=0) / weights.sum()
    embedding: list[float] = (mean / mean.norm() if name == PLAIN else mean).tolist()
    return embedding


@pytest.mark.parametrize(
    ("name", "asked", "prompt"),
    [
        (PLAIN, {}, ""),
        (PLAIN, {"prompt": "passage"}, PROMPTS["passage"]),
        (RICH, {}, PROMPTS["query"]),
        (RICH, {"prompt": "passage"}, PROMPTS["passage"]),
    ],
)
def test_embeddings_are_what_the_model_pools(
    imported: httpx.Client, originals: Originals, name: str, asked: dict[str, str], prompt: str
) -> None:
    answer = ask(imported, "/embed", text=TEXTS, model=name, **asked)
    assert answer["dimensions"] == (D_PLAIN if name == PLAIN else D_RICH)
    for text, found in zip(TEXTS, answer["embeddings"], strict=True):
        assert found == {"embedding": pytest.approx(expected_embedding(originals, name, text, prompt), abs=1e-4)}, text


def test_a_request_may_ask_for_another_length_for_the_mean_or_for_every_token(
    imported: httpx.Client, originals: Originals
) -> None:
    directory, model = originals[PLAIN]
    text = TEXTS[0]
    states = original_states(model, original_ids(directory, text))
    (raw,) = ask(imported, "/embed", text=text, model=PLAIN, normalize=False)["embeddings"]
    assert raw["embedding"] == pytest.approx(states.mean(dim=0).tolist(), abs=1e-4)
    (mean,) = ask(imported, "/embed", text=text, model=RICH, pooling="mean")["embeddings"]
    assert len(mean["embedding"]) == 24
    for found in TEXTS[0], TEXTS[-1]:
        n_prompt = len(original_ids(directory, PROMPTS["query"])) - 2
        windows = windows_of(original_ids(directory, PROMPTS["query"] + found), n_prompt)
        asked = {"text": found, "model": PLAIN, "pooling": "none", "prompt": "query", "normalize": False}
        answer = ask(imported, "/embed", **asked, encoding="base64")
        (each,) = answer["embeddings"]
        rows = np.frombuffer(base64.b64decode(each["embeddings"]), "<f4").reshape(-1, answer["dimensions"])
        expected = torch.cat([original_states(model, ids) for ids in windows])
        np.testing.assert_allclose(rows, expected, atol=1e-4)
        assert len(each["tokens"]) == len(rows)
        assert [token["token"] for token in each["tokens"]].count("<s>") == len(windows)
        covered = {i for token in each["tokens"] for i in range(*token["span"])}
        assert covered >= {i for i, character in enumerate(found) if character != " "}


@pytest.mark.parametrize("name", [PLAIN, RICH])
def test_embeddings_are_the_same_bits_alone_and_in_a_crowd(imported: httpx.Client, name: str) -> None:
    alone = [ask(imported, "/embed", text=text, model=name, encoding="base64")["embeddings"] for text in TEXTS]
    with ThreadPoolExecutor(32) as clients:
        asked = [clients.submit(ask, imported, "/embed", text=t, model=name, encoding="base64") for t in TEXTS * 4]
        assert [one.result()["embeddings"] for one in asked] == alone * 4
    assert ask(imported, "/embed", text=TEXTS, model=name, encoding="base64")["embeddings"] == [one for (one,) in alone]


def test_an_encoder_tells_what_it_can(imported: httpx.Client) -> None:
    (card,) = (model for model in imported.get("/models").json()["models"] if model["name"] == RICH)
    assert card["task"] == "embedding"
    assert card["embedding"] == {
        "dimensions": D_RICH,
        "pooling": ["first", "max", "mean", "mean_sqrt_len", "weighted_mean", "last"],
        "normalize": False,
        "prompts": PROMPTS,
        "default_prompt": "query",
        "pool_prompt": False,
        "cut_to": [],
    }
    classifiers = ", ".join(CLASSIFIERS)  # in the order of their imports
    for path, error, body, part in (
        ("/embed", InvalidFields, {"prompt": "title"}, "`prompt` .* rich, not 'title'; .*: query, passage$"),
        ("/classify", UnknownModel, {}, rf"'rich' can classify .*: {classifiers} \(rich can embed\)$"),
        ("/translate", UnknownModel, {}, r"'rich' can translate .*: none \(rich can embed\)$"),
    ):
        response = imported.post(path, json={"text": "x", "model": RICH} | body)
        assert (response.status_code, response.json()["code"]) == (error.status, error.code)
        assert re.search(part, response.json()["detail"])


def test_an_encoder_tells_what_it_attended_to(imported: httpx.Client, originals: Originals) -> None:
    directory, model = originals[RICH]
    model.set_attn_implementation("eager")
    (found,) = ask(imported, "/embed", text=TEXTS[0], model=RICH, attention={"layers": [1], "heads": [2]})["embeddings"]
    ids = original_ids(directory, PROMPTS["query"] + TEXTS[0])
    with torch.inference_mode():
        expected = model(input_ids=torch.tensor([ids]), output_attentions=True).attentions[1][0, 2]
    (matrix,) = found["attention"]["matrices"]
    np.testing.assert_allclose(matrix["weights"], expected, atol=1e-4)
    assert len(found["attention"]["source"]) == len(ids)
