"""`dimensions` cuts the embeddings of models that were trained for it, and of no others."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from service.base.errors import InvalidFields
from tests.service.conftest import Client, Serve, post, problem
from tests.service.tiny_classifier import TinyClassifier
from tests.service.tiny_graph import E

pytestmark = pytest.mark.anyio

CUT, WHOLE, REVIEWS = "tiny-matryoshka", "tiny-vectors", "tiny-sentiment"
TEXTS = ["the dog runs", "a cat", "the old man sees the red horse on the beach"]


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory: pytest.TempPathFactory, tiny_classifier: TinyClassifier) -> Path:
    root = tmp_path_factory.mktemp("artifacts")
    tiny_classifier.save_for_embeddings(root / CUT, CUT, cut_to=(8, 16))
    tiny_classifier.save_for_embeddings(root / WHOLE, WHOLE)
    tiny_classifier.save(root / REVIEWS, REVIEWS)
    return root


@pytest.fixture
async def client(serve: Serve) -> AsyncIterator[httpx.AsyncClient]:
    async with serve() as client:
        yield client


def rows(body: Any) -> np.ndarray[Any, Any]:
    return np.array([embedding["embedding"] for embedding in body["embeddings"]])


@pytest.mark.parametrize("dimensions", [8, 16, E])
async def test_an_embedding_is_cut_and_scaled_again(client: Client, dimensions: int) -> None:
    whole = rows(await post(client, "/embed", text=TEXTS, model=CUT, normalize=False))
    raw = await post(client, "/embed", text=TEXTS, model=CUT, normalize=False, dimensions=dimensions)
    cut = await post(client, "/embed", text=TEXTS, model=CUT, dimensions=dimensions)
    assert raw["dimensions"] == cut["dimensions"] == dimensions
    np.testing.assert_array_equal(rows(raw), whole[:, :dimensions])
    expected = whole[:, :dimensions] / np.linalg.norm(whole[:, :dimensions], axis=1, keepdims=True)
    np.testing.assert_allclose(rows(cut), expected, atol=1e-6)
    openai = await post(client, "/v1/embeddings", input=TEXTS, model=CUT, dimensions=dimensions)
    np.testing.assert_allclose([embedding["embedding"] for embedding in openai["data"]], expected, atol=1e-6)
    hub = await post(client, f"/models/{CUT}", inputs=TEXTS, dimensions=dimensions)
    np.testing.assert_allclose(hub, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"model": CUT, "dimensions": 12}, f"must be 8 or 16 or {E} for {CUT}, not 12"),
        ({"model": CUT, "dimensions": 0}, "must be greater than or equal to 1, not 0"),
        ({"model": CUT, "dimensions": 8, "pooling": "mean"}, "must not be given with `pooling`"),
        ({"model": WHOLE, "dimensions": 8}, f"must be {E} for {WHOLE}, not 8: it was not trained to"),
        ({"model": REVIEWS, "dimensions": 8}, f"must be {E} for {REVIEWS}, not 8: it was not trained to"),
    ],
)
async def test_other_dimensions_are_refused(client: Client, body: dict[str, Any], message: str) -> None:
    answer = await client.post("/embed", json={"text": "a cat", **body})
    assert f"`dimensions` {message}" in problem(answer, InvalidFields)["detail"]
    refused = await client.post("/v1/embeddings", json={"input": "a cat", "model": WHOLE, "dimensions": 8})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "dimensions")


async def test_models_tell_the_dimensions(client: Client) -> None:
    models = {model["name"]: model for model in (await client.get("/models")).json()["models"]}
    assert (models[CUT]["embedding"]["dimensions"], models[CUT]["embedding"]["cut_to"]) == (E, [8, 16])
