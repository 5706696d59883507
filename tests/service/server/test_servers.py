"""Several server processes on one port: with one or with two, a client sees the same service."""

import asyncio
import json
import math
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from service import __version__
from service.base.errors import RateLimited
from tests.collector import Collector, attributes, collector
from tests.running_service import Service, running_service
from tests.service.conftest import problem
from tests.service.fakes import PATIENCE_S
from tests.service.tiny_artifacts import WORDS
from tests.service.worker_services import children
from tests.waiting import wait_until

pytestmark = [pytest.mark.anyio, pytest.mark.process]


def environment(artifacts: Path, **settings: object) -> dict[str, str]:
    given = {"artifacts": artifacts, "provider": "cpu", "workers": 2, "servers": 2, "rows": 16} | settings
    return {f"ATTEND_{name.upper()}": str(value) for name, value in given.items()}


@pytest.fixture(scope="module")
def collected() -> Iterator[Collector]:
    with collector() as found:
        yield found


@pytest.fixture(scope="module")
def service(artifacts: Path, tmp_path_factory: pytest.TempPathFactory, collected: Collector) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("two")
    settings = environment(artifacts, run_directory=folder, log_format="json", thredds=1)
    traces = {"OTEL_EXPORTER_OTLP_ENDPOINT": collected.url, "OTEL_BSP_SCHEDULE_DELAY": "50"}
    with running_service(folder / "log", settings | traces) as client:
        yield client


def bodies(n: int) -> list[tuple[str, dict[str, Any]]]:
    rng = np.random.default_rng(n)
    made = []
    for i in range(n):
        text = " ".join(rng.choice(WORDS, int(rng.integers(1, 30))))
        kinds: list[tuple[str, dict[str, Any]]] = [
            ("/translate", {"text": [text] * int(rng.integers(1, 5)), "beam_size": int(rng.integers(1, 5))}),
            ("/translate", {"text": text, "alignment": True}),
            ("/classify", {"text": text, "evidence": True}),
            ("/embed", {"text": text, "model": "tiny-en-fr"}),
            ("/translate", {"text": text, "target": "xx"}),
            ("/translate", {"txet": text}),
            ("/translate", {"text": text, "timeout_s": 1e-9}),
        ]
        made.append(kinds[i % len(kinds)])
    return made


async def test_in_a_storm_everybody_gets_the_answer_of_calm_or_a_named_error(artifacts: Path, tmp_path: Path) -> None:
    """By one server; tests/soak has two, and faults."""
    requests = bodies(210)
    with running_service(tmp_path / "log", environment(artifacts, servers=1)) as calm:
        expected = [calm.post(path, json=body) for path, body in requests]

        async def ask(client: httpx.AsyncClient, number: int) -> httpx.Response | None:
            path, body = requests[number]
            timeout_s = 0.001 if number % 11 == 0 else 60  # some leave
            try:
                return await asyncio.wait_for(client.post(path, json=body), timeout_s)
            except (TimeoutError, httpx.TransportError):
                assert number % 11 == 0, "nobody is left without an answer"
                return None

        async with httpx.AsyncClient(base_url=calm.base_url, timeout=60) as client:
            found = await asyncio.gather(*(ask(client, number) for number in range(len(requests))))
    statuses = set()
    for before, after in zip(expected, found, strict=True):
        if after is None or after.status_code in (503, 504):
            continue
        statuses.add(after.status_code)
        assert after.status_code == before.status_code, after.text
        answers = [response.json() for response in (before, after)]
        for answer in answers:
            answer.pop("request_id", None)
            for translation in answer.get("translations", []):
                translation["score"] = pytest.approx(translation["score"], abs=1e-4)
        assert answers[0] == answers[1]
    assert statuses == {200, 422}


def test_metrics_add_up_over_the_servers(service: Service) -> None:
    def answered() -> float:
        lines = service.get("/metrics").text.splitlines()
        series = 'attend_requests_total{dialect="native",route="/embed",status="200"}'
        found = [line for line in lines if line.startswith(series)]
        return float(found[0].split()[-1]) if found else 0.0

    before = answered()
    for number in range(20):
        with httpx.Client(base_url=service.base_url) as client:  # each connection may be with another server
            client.post("/embed", json={"text": WORDS[number % 5], "model": "tiny-en-fr"}).raise_for_status()
    wait_until(lambda: answered() == before + 20)  # a server counts an answer after it is sent
    usages = []
    for _ in range(8):
        with httpx.Client(base_url=service.base_url) as client:
            client.post("/v2/translate", json={"text": ["the dog"], "target_lang": "fr"}).raise_for_status()
            usages.append(client.get("/v2/usage").json()["character_count"])
    assert usages == [*range(usages[0], usages[0] + 8 * 7, 7)], "whichever server counts"
    metrics = service.get("/metrics").text.splitlines()
    assert 'attend_rows{task="translation"} 128.0' in metrics, "two searches, also in the background, in each worker"
    assert metrics.count(f'attend_build_info{{version="{__version__}"}} 1.0') == 1
    assert metrics.count('attend_rejected_total{reason="starting",task="embedding"} 0.0') == 1
    assert metrics.count('attend_requests_total{dialect="native",route="/",status="200"} 0.0') == 1


def test_every_server_sends_its_spans(service: Service, collected: Collector) -> None:
    sent = {bytes([number]) * 16 for number in range(1, 9)}
    for trace_id in sent:
        with httpx.Client(base_url=service.base_url) as client:  # each connection may be with another server
            headers = {"traceparent": f"00-{trace_id.hex()}-{'1' * 16}-01"}
            client.post("/translate", json={"text": "a zebra " * trace_id[0]}, headers=headers).raise_for_status()
    wait_until(lambda: sent <= {span.trace_id for span in collected.server_spans()})
    for span in (span for span in collected.server_spans() if span.trace_id in sent):
        assert attributes(span)["http.route"] == "/translate"
        assert {"queue", "tokenize", "encode", "decode"} <= {phase.name for phase in collected.below(span)}
    assert b"zebra" not in b"".join(collected.bodies)


def test_limits_count_once_over_the_servers(artifacts: Path, tmp_path: Path) -> None:
    with running_service(tmp_path / "log", environment(artifacts, rate_limit="7/hour", servers=3)) as service:
        statuses = []
        for _ in range(12):
            with httpx.Client(base_url=service.base_url) as client:
                statuses.append(client.get("/models").status_code)
                last = client.get("/models")
        assert statuses.count(200) <= 7
        assert "7 per 1 hour" in problem(last, RateLimited)["detail"]
        assert int(last.headers["Retry-After"]) > 0


def test_a_killed_server_is_replaced_and_the_others_go_on(service: Service) -> None:
    supervisor = service.process_id
    servers = children(supervisor, "supervised")
    assert len(servers) == 2
    address = service.base_url.host, service.base_url.port or 80
    with ExitStack() as idle, httpx.Client(base_url=service.base_url) as client:
        for _ in range(20):
            idle.enter_context(socket.create_connection(address))
        wait_until(lambda: connections_of(service) >= 20)
        os.kill(servers[0], signal.SIGKILL)

        def is_replaced() -> bool:
            with suppress(httpx.TransportError):  # a connection may have been with the one that was killed
                assert client.get("/health/live", headers={"Connection": "close"}).status_code == 200
            return len(now := children(supervisor, "supervised")) == 2 and now != servers

        wait_until(is_replaced, 3 * PATIENCE_S)
        client.post("/translate", json={"text": "the dog"}).raise_for_status()
    wait_until(lambda: connections_of(service) <= 2)  # this question's own, and that of the fixture


def connections_of(service: Service) -> float:
    """As metrics tell it; not a number, which is neither more nor less than any, while they cannot be asked."""
    with suppress(httpx.TransportError):
        lines = httpx.get(f"{service.base_url}/metrics").text.splitlines()
        return float(next(line for line in lines if line.startswith("attend_connections ")).split()[1])
    return math.nan


def test_every_process_logs_in_one_form_and_a_start_is_told_once(service: Service) -> None:
    [loader] = children(service.process_id, "loader_process")
    os.kill(next(iter(children(loader))), signal.SIGKILL)
    wait_until(lambda: "worker 0 has died" in service.log.read_text(encoding="utf-8"))
    events = [json.loads(line)["event"] for line in service.log.read_text(encoding="utf-8").splitlines()]
    once = [
        "ATTEND_THREDDS is no setting; did you mean ATTEND_THREADS?",
        f"attend {__version__} running on {str(service.base_url).rstrip('/')}",
        f"attend {__version__}: tiny-en-fr, tiny-sentiment on cpu, 2 workers (as ATTEND_WORKERS says)",
        "attend is ready",
        "traces are sent to 127.0.0.1",
    ]
    assert [events.count(event) for event in once] == [1] * len(once)


def test_a_wrong_file_of_keys_is_logged_once_by_all_servers(artifacts: Path, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("one")
    with running_service(tmp_path / "log", environment(artifacts, api_keys_file=keys)) as service:
        for content, said in (("[[keys]]\nname = 1\n", "the API keys stay as they were"), ("two", "read again: 1")):
            keys.write_text(content)
            os.kill(service.process_id, signal.SIGHUP)
            wait_until(lambda said=said: said in service.log.read_text(encoding="utf-8"))  # type: ignore[misc]
        for _ in range(10):  # of both servers
            with httpx.Client(base_url=service.base_url, headers={"Authorization": "Bearer two"}) as client:
                wait_until(lambda client=client: client.get("/models").status_code == 200)  # type: ignore[misc]
        log = service.log.read_text(encoding="utf-8")
        assert log.count("stay as they were") == log.count("(at line 2)") == log.count("read again") == 1


def test_no_server_outlives_a_supervisor_that_was_killed(artifacts: Path, tmp_path: Path) -> None:
    with running_service(tmp_path / "log", environment(artifacts)) as service:
        supervisor = service.process_id
        processes = children(supervisor)
        os.kill(supervisor, signal.SIGKILL)
        wait_until(lambda: not any(Path(f"/proc/{process}").exists() for process in processes))
