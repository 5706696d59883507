"""What traces cost the server: `python -m benchmarks.tracing [REQUESTS TURNS]`.

Services without traces, with traces of every request and of one in ten run side by side, and are asked in turns, one
request at a time. Processor time of the server process counts, not of workers. The collector keeps nothing.
"""

import http.client
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

READY_S = 120
BODY = json.dumps({"text": "Yes.", "source": "en", "target": "fr"})
SETTINGS = {
    "ATTEND_PORT": "0",
    "ATTEND_PROVIDER": "cpu",
    "ATTEND_CACHE": "0",
    "ATTEND_MODELS": "translate-en-fr",
    "ATTEND_SERVERS": "1",
    "ATTEND_WORKERS": "1",
    "ATTEND_PROBE_INTERVAL_S": "3600",
}
SAMPLED = {"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.1"}


def main(n_requests: int = 400, turns: int = 7) -> None:
    with ExitStack() as open_until_the_end:
        collector = {"OTEL_EXPORTER_OTLP_ENDPOINT": open_until_the_end.enter_context(_collector())}
        kinds = {"no traces": {}, "every request": collector, "one request in ten": collector | SAMPLED}
        services = {kind: open_until_the_end.enter_context(_service(given)) for kind, given in kinds.items()}
        times: dict[str, list[float]] = {kind: [] for kind in kinds}
        for turn in range(turns + 1):  # the first one only warms up
            for kind, (process_id, port) in services.items():
                before = _processor_s(process_id)
                _ask(port, n_requests)
                if turn:
                    times[kind].append(1e3 * (_processor_s(process_id) - before) / n_requests)
    without = statistics.median(times["no traces"])
    for kind, of_kind in times.items():
        median = statistics.median(of_kind)
        print(f"{kind}: {median:.2f} ms of the server for a request, {median / without:.2f} of that without traces")


def _ask(port: int, n_requests: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for _ in range(n_requests):
        connection.request("POST", "/translate", BODY, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        answer.read()
    connection.close()


def _processor_s(process_id: int) -> float:
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _service(given: dict[str, str]) -> Iterator[tuple[int, int]]:
    """A service that is ready: the id of its server's process, and its port."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("ATTEND_", "OTEL_"))}
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "service"], env=environment | SETTINGS | {"ATTEND_DATA": folder} | given, stderr=log
        )
        try:
            yield process.pid, _ready_port(Path(log.name))
        finally:
            process.terminate()
            process.wait()


def _ready_port(log: Path) -> int:
    ends_at = time.monotonic() + READY_S
    while time.monotonic() < ends_at:
        time.sleep(0.1)
        if (match := re.search(r"running on http://\S+:(\d+)", log.read_text())) is not None:
            connection = http.client.HTTPConnection("127.0.0.1", int(match[1]))
            connection.request("GET", "/health/ready")
            if connection.getresponse().status == 200:
                return int(match[1])
    raise TimeoutError(log.read_text())


@contextmanager
def _collector() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
