"""The dashboard is up to date, and a Prometheus that scrapes the service has data for every query of it."""

import json
import math
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import httpx
import pytest
import yaml

from deploy.grafana.dashboard import FILE, build
from tests.running_service import ROOT, Service
from tests.waiting import wait_until

DASHBOARD: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
QUERIES = [
    pytest.param(target["expr"], id=f"{panel['title']} {target.get('refId', '')}".strip())
    for panel in DASHBOARD["panels"]
    for target in panel.get("targets", ())
]
WINDOW = "30s"
"""What a rate looks at: more than the test takes."""


def test_the_file_is_up_to_date() -> None:
    assert FILE.read_text(encoding="utf-8") == build(), "python -m deploy.grafana.dashboard writes it"


def test_panels_have_places_of_their_own() -> None:
    taken = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert max(x for x, _ in cells) < 24
        assert not cells & taken, panel["title"]
        taken |= cells


@pytest.fixture(scope="module")
def prometheus(server: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A Prometheus that has scraped the service before and after some work."""
    if shutil.which("prometheus") is None:
        pytest.skip("prometheus is not installed")
    folder = tmp_path_factory.mktemp("prometheus")
    target = f"{server.base_url.host}:{server.base_url.port}"
    scraping = {"job_name": "attend", "static_configs": [{"targets": [target]}]}
    configuration = {
        "global": {"scrape_interval": "200ms", "evaluation_interval": "200ms"},
        "rule_files": [str(ROOT / "docker" / "alerts.yml")],
        "scrape_configs": [scraping],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration), encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [
        "prometheus",
        f"--config.file={folder}/prometheus.yml",
        f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address={address}",
    ]
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            with httpx.Client(base_url=f"http://{address}") as client:
                fail(server)  # a series that begins with 1 has no rate: each error counts from the second one on
                wait_until(lambda: is_scraped(client, server))
                work(server)
                fail(server)
                wait_until(lambda: is_scraped(client, server))
                yield client
        finally:
            process.terminate()


def work(server: Service) -> None:
    def translate(_: int) -> None:
        texts = ["A dog runs in the snow.", "Two men play the guitar in the street. They sing."]
        server.post("/translate", json={"text": texts, "source": "en", "target": "fr"}).raise_for_status()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(translate, range(12)))
    server.post("/classify", json={"text": "Nice."}).raise_for_status()
    server.post("/libretranslate/translate", json={"q": "A dog.", "source": "en", "target": "fr"}).raise_for_status()


def fail(server: Service) -> None:
    assert server.post("/translate", json={"text": []}).status_code == 422
    assert server.get("/nothing").status_code == 404


def is_scraped(client: httpx.Client, server: Service) -> bool:
    """Whether Prometheus has seen what the service counts now."""
    counted = re.findall(r'attend_requests_total{.*status="404"} (.*)', server.get("/metrics").text)
    return samples(client, 'sum(attend_requests_total{status="404"})') == [sum(map(float, counted))]


def samples(client: httpx.Client, query: str) -> list[float]:
    try:
        answer = client.get("/api/v1/query", params={"query": query})
    except httpx.TransportError:  # it still starts
        return []
    if answer.status_code == 503:
        return []
    assert answer.status_code == 200, answer.text
    return [float(found["value"][1]) for found in answer.json()["data"]["result"]]


@pytest.mark.process
@pytest.mark.parametrize("query", QUERIES)
def test_a_query_has_data(prometheus: httpx.Client, query: str) -> None:
    query = query.replace("$instance", ".*").replace("$__rate_interval", WINDOW)
    assert "$" not in query
    wait_until(lambda: not all(map(math.isnan, samples(prometheus, query))))  # workers report five times a second


@pytest.mark.process
def test_charts_of_work_see_it(prometheus: httpx.Client) -> None:
    """Work that was done is more than nothing in each chart that is about it."""
    quiet = "Failures|Sentences in|Evictions|Refused|Workers that|Changed|wait|Waiting|failed|full|closed|Padding"
    for panel in DASHBOARD["panels"]:
        if re.search(quiet, panel["title"]) is None:
            for target in panel.get("targets", ())[:1]:
                query = target["expr"].replace("$instance", ".*").replace("$__rate_interval", WINDOW)
                wait_until(partial(is_positive, prometheus, query))


def is_positive(client: httpx.Client, query: str) -> bool:
    return max(samples(client, query), default=0.0) > 0


@pytest.mark.process
def test_no_alert_fires_in_calm(prometheus: httpx.Client) -> None:
    def healths() -> set[str]:
        groups = prometheus.get("/api/v1/rules").json()["data"]["groups"]
        return {rule["health"] for group in groups for rule in group["rules"]}

    wait_until(lambda: healths() == {"ok"})  # each has been asked
    assert prometheus.get("/api/v1/alerts").json()["data"]["alerts"] == []
