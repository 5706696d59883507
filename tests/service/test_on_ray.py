"""attend on a local Ray, behind its HAProxy. The tests need `ray[serve]`, which is an extra, and take a minute."""

import os
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest

from tests.running_service import ROOT, running_service
from tests.service.ray_cluster import Cluster, command_of, descendants, has_ended, running_cluster
from tests.waiting import wait_until

pytest.importorskip("ray.serve", reason="needs ray[serve], the extra `ray`")

from service.base.errors import ReloadRefused
from service.on_ray import Attend, SequencesPolicy, refuse_reload

SETTINGS = {
    "ATTEND_ARTIFACTS": str(ROOT / "artifacts"),
    "ATTEND_MODELS": "translate-en-fr",
    "ATTEND_PROVIDER": "cpu",
}
N_CONNECTIONS = 8
WORDS = (
    ("The", "A", "My"),
    ("red", "old", "small", "new"),
    ("dog", "car", "house", "friend", "letter"),
    ("is here", "was lost in the garden", "costs 25 euros", "has arrived too late", "will be sold tomorrow"),
)
TEXTS = [f"{' '.join(words)}." for words in product(*WORDS)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("ray")
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    with running_cluster(port, folder / "log", SETTINGS | {"ATTEND_DATA": str(folder / "data")}) as cluster:
        cluster.deploy(2)
        yield cluster


def translate(client: httpx.Client, text: str) -> dict[str, Any]:
    """Translate a text. Raises httpx.HTTPError: there is no answer, or no good one."""
    answer = client.post("/translate", json={"text": text, "target": "fr", "beam_size": 4})
    return cast(dict[str, Any], answer.raise_for_status().json())


def is_answered(client: httpx.Client, text: str) -> bool:
    try:
        return bool(translate(client, text))
    except httpx.HTTPError:
        return False


def begin_load(cluster: Cluster, n: int) -> Iterator[bool]:
    """Begin to send n requests on a few connections; yield whether each was answered."""
    pool = ThreadPoolExecutor(N_CONNECTIONS)
    return pool.map(partial(is_answered, cluster), islice(TEXTS * n, n))


@pytest.mark.process
def test_answers_are_those_of_attend_alone(cluster: Cluster, tmp_path: Path) -> None:
    with running_service(tmp_path / "log", SETTINGS) as alone, ThreadPoolExecutor(N_CONNECTIONS) as pool:
        assert len(TEXTS) == 300
        expected = pool.map(partial(translate, alone), TEXTS)
        assert list(pool.map(partial(translate, cluster), TEXTS)) == list(expected)


@pytest.mark.process
def test_official_clients_are_served(cluster: Cluster) -> None:
    deepl, openai = pytest.importorskip("deepl"), pytest.importorskip("openai")
    libretranslatepy = pytest.importorskip("libretranslatepy")
    url, french = str(cluster.base_url).rstrip("/"), translate(cluster, TEXTS[0])["translations"][0]["text"]
    assert deepl.DeepLClient("key", server_url=url).translate_text(TEXTS[0], target_lang="FR").text == french
    libretranslate = libretranslatepy.LibreTranslateAPI(f"{url}/libretranslate/")
    assert libretranslate.translate(TEXTS[0], "en", "fr") == french
    client = openai.OpenAI(api_key="key", base_url=f"{url}/v1")
    assert len(client.embeddings.create(model="translate-en-fr", input=TEXTS[:2]).data) == 2


@pytest.mark.process
def test_a_request_id_comes_back_once(cluster: Cluster) -> None:
    for given, sent in ({"X-Request-ID": "mine"}, "mine"), ({}, None):
        answer = cluster.post("/translate", json={"text": TEXTS[0], "target": "fr"}, headers=given)
        [name] = answer.headers.get_list("X-Request-ID")
        assert sent in (None, name)


@pytest.mark.process
def test_prometheus_finds_each_replica(cluster: Cluster) -> None:
    wait_until(lambda: len(targets(cluster)) == 2)
    assert all(map(is_ready, targets(cluster)))


def targets(cluster: Cluster) -> set[str]:
    """Return the addresses of the replicas' metrics. A request may be lost with a replica that was killed."""
    try:
        groups = cluster.get("/metrics/targets").raise_for_status().json()
    except httpx.HTTPError:
        return set()
    return {f"http://{one}{group['labels']['__metrics_path__']}" for group in groups for one in group["targets"]}


def is_ready(target: str) -> bool:
    try:
        return "attend_ready 1.0" in httpx.get(target).text
    except httpx.HTTPError:
        return False


@pytest.mark.process
def test_models_of_one_replica_are_not_reloaded_alone(cluster: Cluster) -> None:
    answer = cluster.post("/models/reload")
    assert (answer.status_code, answer.json()["code"]) == (409, "reload_refused")


@pytest.mark.process
def test_nothing_is_reported_to_the_makers_of_ray(cluster: Cluster) -> None:
    [raylet] = [one for one in descendants(cluster.process.pid) if "/raylet/raylet" in command_of(one).split("\0")[0]]
    assert "RAY_USAGE_STATS_ENABLED=0" in Path(f"/proc/{raylet}/environ").read_text().split("\0")


@pytest.mark.process
def test_a_killed_replica_is_replaced_and_loses_what_it_held_and_what_comes_before_haproxy_notices(
    cluster: Cluster,
) -> None:
    """Each connection may lose the request that the replica held, and its next one, which is sent some milliseconds
    later."""
    wait_until(lambda: len(targets(cluster)) == 2)
    before, (killed, _) = targets(cluster), cluster.replicas()
    family = descendants(killed)
    assert len(family) >= 2, "a loader and a worker"
    answers = begin_load(cluster, 900)
    begun = [next(answers) for _ in range(50)]
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: all(map(has_ended, family)), 60)
    wait_until(lambda: len(now := targets(cluster)) == 2 and now != before and all(map(is_ready, now)), 60)
    answered = begun + list(answers)
    assert len(answered) == 900
    assert answered.count(False) <= 2 * N_CONNECTIONS


@pytest.mark.process
def test_one_replica_fewer_loses_no_request(cluster: Cluster) -> None:
    cluster.deploy(2)
    removed = {one: descendants(one) for one in cluster.replicas()}
    answers = begin_load(cluster, 1500)
    assert next(answers)
    cluster.deploy(1)
    assert list(answers).count(False) == 0
    wait_until(lambda: len(cluster.replicas()) == 1, 60)
    [stays] = cluster.replicas()
    assert all(has_ended(one) for replica, family in removed.items() if replica != stays for one in family)


@pytest.mark.anyio
async def test_only_a_broken_model_fails_the_check_of_a_replica() -> None:
    replica: Any = Attend()
    replica.serving = SimpleNamespace(draining=False, unready_reason=lambda: None)
    await replica.check_health()
    replica.serving = SimpleNamespace(draining=True, unready_reason=lambda: "draining")
    await replica.check_health()
    replica.serving = SimpleNamespace(draining=False, unready_reason=lambda: "tiny: broken")
    with pytest.raises(RuntimeError, match="tiny: broken"):
        await replica.check_health()


@pytest.mark.anyio
async def test_replicas_follow_the_sequences_that_wait_and_run() -> None:
    replica: Any = Attend()
    states = [SimpleNamespace(waiting=40, running=20), SimpleNamespace(waiting=0, running=12)]
    replica.serving = SimpleNamespace(states=lambda: states)
    counts = await replica.record_autoscaling_stats()
    assert counts == {"sequences": 72}
    policy = SequencesPolicy(target_sequences=24)
    context = SimpleNamespace(aggregated_metrics={"sequences": {"a": 72.0, "b": 24.0}}, target_num_replicas=2)
    assert policy(context)[0] == 4
    assert policy(SimpleNamespace(aggregated_metrics={}, target_num_replicas=2))[0] == 2, "none has told yet"


@pytest.mark.anyio
async def test_a_reload_is_refused_with_what_to_do() -> None:
    with pytest.raises(ReloadRefused, match="deploy the application anew"):
        await refuse_reload()
