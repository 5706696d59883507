"""Vectors of the shipped models, through a real server."""

import base64
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import numpy as np
import pytest

from tests.end_to_end.test_shipped_models import SENTENCES

pytestmark = pytest.mark.process


def embed(server: httpx.Client, **body: Any) -> Any:
    return server.post("/embed", json=body).raise_for_status().json()


@pytest.mark.parametrize(
    ("model", "sentence", "same", "others"),
    [
        ("translate-en-fr", "Can you decipher the message?", "Can you decode the message?", ["Can you read the book?"]),
        ("translate-en-fr", "I'm starving.", "I am very hungry.", ["I am very tall.", "He is starting."]),
        ("translate-fr-en", "Il est rentré à la maison.", "Il est revenu chez lui.", ["Il est resté à la gare."]),
    ],
)  # fmt: skip
def test_a_sentence_is_nearest_to_the_one_that_means_the_same(
    server: httpx.Client, model: str, sentence: str, same: str, others: list[str]
) -> None:
    found = embed(server, text=[sentence, same, *others], model=model)["embeddings"]
    vectors = np.array([one["embedding"] for one in found])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert (vectors[1:] @ vectors[0]).argmax() == 0


@pytest.mark.parametrize("model", ["translate-en-fr", "sentiment-imdb"])
def test_sixty_four_clients_at_once_get_the_vectors_of_one_at_a_time_to_the_last_bit(
    server: httpx.Client, model: str
) -> None:
    bodies = [
        {
            "text": [f"{SENTENCES[i % 8]} {SENTENCES[i % 7]}" * (1 + i % 3), "A" * (1 + i % 2)],
            "model": model,
            "pooling": ("mean", "none")[i % 2],
            "encoding": "base64",
        }
        for i in range(64)
    ]

    def ask(body: dict[str, Any]) -> Any:
        return embed(server, **body)

    alone = [ask(body) for body in bodies]
    with ThreadPoolExecutor(64) as clients:
        together = list(clients.map(ask, bodies))
    assert together == alone


@pytest.mark.parametrize("model", ["translate-en-fr", "sentiment-imdb"])
def test_the_mean_of_a_long_text_is_that_of_all_its_tokens(server: httpx.Client, model: str) -> None:
    text = " ".join(SENTENCES) * 12
    asked = {"text": text, "model": model, "normalize": False, "encoding": "base64"}
    (mean,) = embed(server, **asked)["embeddings"]
    answer = embed(server, **asked, pooling="none")
    (each,) = answer["embeddings"]
    rows = np.frombuffer(base64.b64decode(each["embeddings"]), "<f4").reshape(-1, answer["dimensions"])
    assert len(rows) == len(each["tokens"]) == answer["usage"]["tokens"] > 512
    covered = {i for token in each["tokens"] for i in range(*token["span"])}
    assert {i for i, character in enumerate(text) if not character.isspace()} <= covered
    vector = np.frombuffer(base64.b64decode(mean["embedding"]), "<f4")
    np.testing.assert_allclose(vector, rows.mean(axis=0, dtype=np.float64), atol=1e-5)
