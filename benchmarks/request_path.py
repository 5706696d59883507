"""Counts the code that a request passes: `python -m benchmarks.request_path [--list]` in a directory with `service`.

The service runs with a translator and a classifier in one worker, and sys.setprofile logs every function of `service/`
that is entered in either process, with the time. A function counts if it was entered between the arrival of the body
(headers were sent before) and the end of the request, in each of several, and never while nobody asked; so the periodic
reports of the worker do not count. Lambdas are functions; comprehensions are listed apart, because later Pythons do not
call them.
"""

import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

ARTIFACTS = ("translate-en-fr", "sentiment-imdb")
REQUESTS = {
    "plain": ("/translate", {"text": "A dog runs on the beach."}),
    "placeholder": ("/translate", {"text": "Hello {name}, how are you?"}),
    "html": ("/translate", {"text": "<p>A <b>dog</b> runs on the beach.</p>", "format": "html"}),
    "classify": ("/classify", {"text": "I could watch this film every week."}),
}
"""Path and body of each request."""
TIMES = 9
PAUSE_S = 0.3
IDLE_S = 1.2
"""How long it is observed, after each request, what is entered while nobody asks: the loader looks after its workers
once a second."""
READY_S = 180
COMPREHENSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})

# Every Python process of the service imports it first, as sitecustomize.
TRACER = """
import os, sys, threading, time

FOLDER = os.path.join(os.getcwd(), "service") + os.sep
LOG = os.open(os.path.join(os.environ["REQUEST_PATH_LOGS"], str(os.getpid())), os.O_WRONLY | os.O_CREAT)

def profile(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(FOLDER):
        place = code.co_filename[len(FOLDER):], str(code.co_firstlineno), code.co_qualname, code.co_name
        os.write(LOG, "\\t".join((str(time.monotonic()), *place, "\\n")).encode())

threading.setprofile(profile)
sys.setprofile(profile)
"""

Function = tuple[str, ...]
"""File, line, qualified name, name."""


def main() -> None:
    for name, entered in passed(REQUESTS).items():
        print(
            f"{name}: {entered.n_files} files, {len(entered.functions)} functions, {len(entered.all)} in all, "
            f"{entered.n_calls} calls"
        )
        if "--list" in sys.argv:
            for file, line, qualified, _ in sorted(entered.all, key=lambda function: (function[0], int(function[1]))):
                print(f"    {file}:{line} {qualified}")


class Entered(NamedTuple):
    """What a request enters: functions, and comprehensions too.

    Attributes:
        n_calls: how many times; the least number of several requests.
    """

    all: set[Function]
    n_calls: int

    @property
    def functions(self) -> set[Function]:
        """The functions, without comprehensions."""
        return {function for function in self.all if function[-1] not in COMPREHENSIONS}

    @property
    def n_files(self) -> int:
        """Number of files."""
        return len({file for file, *_ in self.all})


def passed(names: Iterable[str], times: int = TIMES) -> dict[str, Entered]:
    """Return what each of these requests enters every time."""
    entered = {}
    with tempfile.TemporaryDirectory() as folder, _running_service(Path(folder)) as port:
        for name in names:
            every = [_functions(port, *REQUESTS[name], Path(folder)) for _ in range(times)]
            idle = set[Function]().union(*(idle for _, idle in every))
            counts = [Counter(function for function in calls if function not in idle) for calls, _ in every]
            entered[name] = Entered(set.intersection(*map(set, counts)), min(count.total() for count in counts))
    return entered


@contextmanager
def _running_service(folder: Path) -> Iterator[int]:
    """Yield the port of a service that is ready."""
    (folder / "sitecustomize.py").write_text(TRACER)
    (folder / "logs").mkdir()
    (folder / "artifacts").mkdir()
    for name in ARTIFACTS:
        (folder / "artifacts" / name).symlink_to(Path("artifacts", name).resolve())
    environment = os.environ | {
        "PYTHONPATH": str(folder),
        "REQUEST_PATH_LOGS": str(folder / "logs"),
        "ATTEND_ARTIFACTS": str(folder / "artifacts"),
        "ATTEND_PORT": "0",
        "ATTEND_PROVIDER": "cpu",
        "ATTEND_CACHE": "0",
        "ATTEND_THREADS": "1",
        "ATTEND_PROBE_INTERVAL_S": "3600",  # a probe in an idle moment enters what requests do
    }
    said = folder / "said"
    with said.open("wb") as file:
        process = subprocess.Popen([sys.executable, "-m", "service"], env=environment, stderr=file)
    try:
        ends_at = time.monotonic() + READY_S
        while not (ready := _ready_port(said)):
            assert process.poll() is None, said.read_text()
            assert time.monotonic() < ends_at, said.read_text()
            time.sleep(PAUSE_S)
        yield ready
    finally:
        process.terminate()
        process.wait()


def _ready_port(said: Path) -> int | None:
    _, announced, rest = said.read_text().partition(" running on http://127.0.0.1:")
    if not announced:
        return None
    port = int(rest.split()[0])
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=READY_S)) as connection:
        connection.request("GET", "/health/ready")
        return port if connection.getresponse().status == 200 else None


def _functions(port: int, path: str, request: dict[str, str], folder: Path) -> tuple[list[Function], set[Function]]:
    """Return each call during a request, and the functions that are entered while nothing happens after it."""
    body = json.dumps(request).encode()
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=READY_S)) as connection:
        connection.putrequest("POST", path)
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", str(len(body)))
        connection.endheaders()
        time.sleep(PAUSE_S)
        began = time.monotonic()
        connection.send(body)
        response = connection.getresponse()
        response.read()
    time.sleep(PAUSE_S)  # the server ends the request after the client has its answer
    ended = time.monotonic()
    assert response.status == 200, response.status
    time.sleep(IDLE_S)
    lines = [line for log in (folder / "logs").iterdir() for line in log.read_text().splitlines()]
    calls = [(float(at), tuple(function)) for at, *function in (line.rstrip("\t").split("\t") for line in lines)]
    during = [function for at, function in calls if began <= at <= ended]
    return during, {function for at, function in calls if at > ended}


if __name__ == "__main__":
    main()
