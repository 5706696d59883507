"""The cache of sentences behind HTTP: answers stay as they are, callers and models stay apart."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from service.base.artifact import read_artifact
from service.base.backlog import Backlog
from service.base.errors import InferenceFailed
from service.base.metrics import Metrics
from service.base.settings import Settings
from service.front.assembly import _cached_searches
from service.front.models import Models
from service.jobs.translation import DocumentTranslator
from service.pool.sentence_cache import SentenceCache
from service.schemas.requests import TranslateRequest
from service.tasks.context import Context
from tests.service.conftest import Client, Serve, until_warm
from tests.service.in_process import LoopThread, load_in_process

pytestmark = pytest.mark.anyio

TEXTS = ["the dog runs. the cat sees the dog.", "a <b>cat</b> runs 12 {n}", "the cat sees the dog"]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"beam_size": 1},
    {"beam_size": 3, "alternatives": 2},
    {"length_penalty": 0.5, "alignment": True},
    {"attention": {}},
    {"format": "html"},
    {"max_target_tokens": 5, "checks": True},
    {"keep": ["dog"], "split_sentences": False},
    {"target_prefix": ["cat horse ", None, "the", "a. dog "], "beam_size": 3, "alternatives": 2},
]


async def found(client: Client) -> dict[str, float]:
    lines = (await client.get("/metrics")).text.splitlines()
    counted = [line.split('"') for line in lines if line.startswith("attend_cache_sentences_total")]
    return {result: float(value.removeprefix("}")) for _, result, value in counted}


async def answers(client: Client, turns: int) -> list[Any]:
    bodies = [{"text": [*TEXTS, TEXTS[0]], **options} for _ in range(turns) for options in OPTIONS]
    return [(await client.post("/translate", json=body)).json() for body in bodies]


async def test_a_cached_sentence_is_answered_though_the_queue_is_full(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serve() as client:

        async def status_of(text: str) -> int:
            return (await client.post("/translate", json={"text": text, "timeout_s": 5})).status_code

        assert await status_of(TEXTS[0]) == 200
        full = Backlog(n_waiting=50, work=1000.0, work_per_s=100.0)
        monkeypatch.setattr(LoopThread, "backlog", lambda *_: full)
        assert await status_of(TEXTS[0]) == 200
        assert await status_of("a bird") == 503
        assert await status_of("a bird sings. " * 100) == 503
        counts = (await client.get("/metrics")).text
    assert 'attend_rejected_total{reason="queue_full",task="translation"} 2.0' in counts


async def test_answers_are_the_same_with_and_without_a_cache(serve: Serve) -> None:
    async with serve(cache="0") as client:
        expected = await answers(client, 1)
        assert await found(client) == {"hit": 0, "joined": 0, "miss": 0}
    async with serve() as client:
        given = await answers(client, 2)
        counted = await found(client)
    assert all("translations" in answer for answer in expected)
    assert json.dumps(given) == json.dumps(expected * 2)
    assert counted["hit"] > counted["miss"] > 0
    assert counted["joined"] > 0


async def test_keys_share_no_sentences(serve: Serve) -> None:
    async with serve(api_keys="one,two") as client:
        for key in ("one", "two", "one", "two"):
            body, headers = {"text": "the dog runs"}, {"Authorization": f"Bearer {key}"}
            assert (await client.post("/translate", json=body, headers=headers)).status_code == 200
        assert await found(client) == {"hit": 2, "joined": 0, "miss": 2}


@pytest.mark.parametrize(("keys", "caller"), [("", ""), ("one", None)])
async def test_documents_share_sentences_only_where_there_are_no_keys(keys: str, caller: str | None) -> None:
    seen: list[Context] = []

    class Recorder:
        async def translate(self, _: TranslateRequest, context: Context) -> Any:
            seen.append(context)
            raise InferenceFailed("was told to fail")

    settings = Settings(api_keys=keys) if keys else Settings()  # type: ignore[arg-type]
    translator = DocumentTranslator(Recorder(), settings)  # type: ignore[arg-type]
    with pytest.raises(InferenceFailed):
        await translator._portion(TranslateRequest(text=["a"]), 1e12)
    assert [context.caller for context in seen] == [caller]


async def test_a_changed_model_that_is_loaded_anew_gives_no_old_answer(artifacts: Path, tmp_path: Path) -> None:
    root = tmp_path / "artifacts"
    shutil.copytree(artifacts / "tiny-en-fr", root / "tiny-en-fr")
    settings, metrics = Settings(artifacts=root, provider="cpu", threads=1, data=tmp_path), Metrics()
    cache = SentenceCache(10**6, metrics.cache)
    manifest = root / "tiny-en-fr" / "manifest.json"

    class Serving:
        def __init__(self, catalog: Any) -> None:
            self.catalog = catalog

    counts = []
    for change in (b"", b"", b"\n"):
        manifest.write_bytes(manifest.read_bytes() + change)
        catalog = load_in_process(settings, metrics, cache=cache)
        catalog.start()
        await until_warm(catalog)
        models = Models(Serving(catalog), settings, None, None)  # type: ignore[arg-type]
        await models.translate(TranslateRequest(text=["the dog runs"]), Context())
        catalog.stop(0)
        counts.append(metrics.registry.get_sample_value("attend_cache_sentences_total", {"result": "miss"}))
    assert counts == [1, 1, 2]


def test_there_is_no_cache_on_cuda_or_without_room(artifacts: Path) -> None:
    artifact, metrics = read_artifact(artifacts / "tiny-en-fr"), Metrics()
    cache = SentenceCache(1000, metrics.cache)
    assert _cached_searches(cache, artifact, "cpu") is not None
    assert _cached_searches(cache, artifact, "cuda") is None
    assert _cached_searches(SentenceCache(0, metrics.cache), artifact, "cpu") is None
