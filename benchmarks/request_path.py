"""Counts what a request does: `python -m benchmarks.request_path [--list]` in a directory with `service`.

The service runs with a translator and a classifier in one worker, and sys.setprofile logs every function of `service/`
that is entered in either process, with the time. A function counts if it was entered between the arrival of the body
(headers were sent before) and the end of the request, in each of several, and never while nobody asked; so the periodic
reports of the worker do not count. Lambdas are functions; comprehensions are listed apart, because later Pythons do not
call them. A message counts as a call of `packed`, by its kind.

Then nothing is logged any more, and batches of requests show how many objects survive a request in the server and its
workers, and how many system calls the server makes. Calls that wait or read are not counted: reports cause some.
"""

import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from service.base.memory import family

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
N_IN_BATCH = 150
WAITING = frozenset({"epoll_pwait", "epoll_wait", "read", "futex", "restart_syscall"})
READY_S = 180
COMPREHENSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})

# Every Python process of the service imports it first, as sitecustomize. SIGUSR1 ends the log of functions, and counts
# the objects that can be part of a cycle.
TRACER = """
import gc, os, signal, sys, threading, time

FOLDER = os.path.join(os.getcwd(), "service") + os.sep
LOG = os.open(os.path.join(os.environ["REQUEST_PATH_LOGS"], str(os.getpid())), os.O_WRONLY | os.O_CREAT)

def profile(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(FOLDER):
        kind = f":{frame.f_locals['content'][0]}" if code.co_qualname == "packed" else ""
        place = code.co_filename[len(FOLDER):], str(code.co_firstlineno), code.co_qualname + kind, code.co_name
        os.write(LOG, "\\t".join((str(time.monotonic()), *place, "\\n")).encode())

def count_objects(*_):
    sys.setprofile(None)
    gc.collect()
    path = os.path.join(os.environ["REQUEST_PATH_LOGS"], "..", f"objects.{os.getpid()}")
    with open(path + ".new", "w") as file:
        file.write(str(len(gc.get_objects())))
    os.rename(path + ".new", path)

signal.signal(signal.SIGUSR1, count_objects)
threading.setprofile(profile)
sys.setprofile(profile)
"""

Function = tuple[str, ...]
"""File, line, qualified name, name."""


def main() -> None:
    for name, (entered, costs) in prices(REQUESTS).items():
        print(f"{name}: {', '.join(f'{number} {what}' for what, number in costs.items())}")
        if "--list" in sys.argv:
            for file, line, qualified, _ in sorted(entered, key=lambda function: (function[0], int(function[1]))):
                print(f"    {file}:{line} {qualified}")


class Price(NamedTuple):
    """What a request does.

    Attributes:
        entered: the functions that it enters, and comprehensions too.
        costs: numbers of files and functions, calls of functions in either process, messages between these, objects
            that survive, and system calls. The last are missing where strace is not installed, or may not attach.
    """

    entered: set[Function]
    costs: dict[str, int]


def prices(names: Iterable[str], times: int = TIMES) -> dict[str, Price]:
    """Return what each of these requests does every time."""
    prices = {}
    with tempfile.TemporaryDirectory() as temporary, _running_service(folder := Path(temporary)) as (server, port):
        for name in names:
            every = [_functions(server, port, *REQUESTS[name], folder) for _ in range(times)]
            idle = set[Function]().union(*(idle for *_, idle in every))
            counts = [[Counter(f for f in calls if f not in idle) for calls in both] for *both, _ in every]
            together = [of_server + of_worker for of_server, of_worker in counts]
            every_time = set.intersection(*map(set, together))
            messages = {function for function in every_time if function[-1] == "packed"}
            entered = every_time - messages
            costs = {
                "files": len({file for file, *_ in entered}),
                "functions": len({function for function in entered if function[-1] not in COMPREHENSIONS}),
                "server_calls": min(of_server.total() for of_server, _ in counts),
                "worker_calls": min(of_worker.total() for _, of_worker in counts),
                "messages": min(sum(calls[message] for message in messages) for calls in together),
            }
            prices[name] = Price(entered, costs)
        _count_objects(folder, server)  # from now on nothing is logged
        for name, price in prices.items():
            price.costs.update(_of_batches(name, folder, server, port))
    return prices


def _of_batches(name: str, folder: Path, server: int, port: int) -> dict[str, int]:
    counts = []
    for _ in range(2):  # the first batch fills caches
        _send_batch(port, name)
        time.sleep(IDLE_S)  # until the connection is closed, and what the workers did is reported
        counts.append(_count_objects(folder, server))
    costs = {"survivors": round((counts[1] - counts[0]) / N_IN_BATCH)}
    n_system_calls = _system_calls(server, name, port)
    return costs if n_system_calls is None else costs | {"system_calls": round(n_system_calls / N_IN_BATCH)}


def _send_batch(port: int, name: str) -> None:
    path, request = REQUESTS[name]
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=READY_S)) as connection:
        for _ in range(N_IN_BATCH):
            connection.request("POST", path, json.dumps(request), {"Content-Type": "application/json"})
            response = connection.getresponse()
            response.read()
            assert response.status == 200, response.status


def _count_objects(folder: Path, server: int) -> int:
    """Return how many objects the server and its workers have."""
    count = 0
    for process_id in family(server):
        counted = folder / f"objects.{process_id}"
        counted.unlink(missing_ok=True)
        os.kill(process_id, signal.SIGUSR1)
        ends_at = time.monotonic() + READY_S
        while not counted.exists():
            assert time.monotonic() < ends_at, "a process does not take signals"
            time.sleep(PAUSE_S / 10)
        count += int(counted.read_text())
    return count


def _system_calls(process_id: int, name: str, port: int) -> int | None:
    """Return how many system calls a process makes during a batch; None without strace, or if it may not attach."""
    if shutil.which("strace") is None:
        return None
    command = ["strace", "-c", "-f", "-p", str(process_id)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as strace:
        assert strace.stderr is not None
        if "attached" not in strace.stderr.readline():
            return None
        _send_batch(port, name)
        strace.send_signal(signal.SIGINT)
        table = strace.stderr.read()
    rows = [line.split() for line in table.splitlines() if line[:1].isspace()]  # share, seconds, each, calls, ..., name
    return sum(int(row[3]) for row in rows if row[-1] not in {"total", *WAITING})


@contextmanager
def _running_service(folder: Path) -> Iterator[tuple[int, int]]:
    """Yield the id of the server's process, and its port, once it is ready."""
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
        yield process.pid, ready
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


def _functions(
    server: int, port: int, path: str, request: dict[str, str], folder: Path
) -> tuple[list[Function], list[Function], set[Function]]:
    """Return each call during a request in the server and in the worker, and the functions that are entered while
    nothing happens after it."""
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
    during: dict[bool, list[Function]] = {True: [], False: []}
    idle = set[Function]()
    for log in (folder / "logs").iterdir():
        for at, *function in (line.rstrip("\t").split("\t") for line in log.read_text().splitlines()):
            if began <= float(at) <= ended:
                during[log.name == str(server)].append(tuple(function))
            elif float(at) > ended:
                idle.add(tuple(function))
    return during[True], during[False], idle


if __name__ == "__main__":
    main()
