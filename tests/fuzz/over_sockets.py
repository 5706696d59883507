"""Send the inputs of the target `http` to a real service over sockets.

    python -m tests.fuzz.over_sockets [--corpus .fuzz/http/corpus]

The service must stay ready, log no traceback, answer with no 500, and have as much memory and as many descriptors at the
end as after the first round.
"""

import argparse
import re
import socket
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.fuzz.target import corpus_of, load_target
from tests.running_service import Service, running_service
from tests.service.tiny_artifacts import TinyTranslator
from tests.service.tiny_classifier import TinyClassifier
from tests.waiting import wait_until

STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) [^\r\n]*\r\n")
N_ROUNDS, AT_ONCE = 4, 16
ANSWER_S = 1.0
MAX_GROWTH_BYTES = 100_000_000
PAGE = 4096
SETTINGS = {"ATTEND_WORKERS": "1", "ATTEND_SERVERS": "1", "ATTEND_PROVIDER": "cpu", "ATTEND_CLIENT_TIMEOUT_S": "2"}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.over_sockets", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--corpus", type=Path, help="a folder with more inputs")
    arguments = parser.parse_args()
    more = sorted(arguments.corpus.iterdir()) if arguments.corpus else []
    inputs = [*load_target("http").seeds(), *(path.read_bytes() for path in [*corpus_of("http"), *more])]
    folder = Path(tempfile.mkdtemp(prefix="attend-fuzz-"))
    TinyTranslator(seed=3).save(folder / "artifacts" / "tiny-en-fr")
    TinyClassifier(seed=5, pooling="mean").save(folder / "artifacts" / "tiny-sentiment")
    places = {"ATTEND_ARTIFACTS": str(folder / "artifacts"), "ATTEND_DATA": str(folder / "data")}
    with running_service(folder / "log", SETTINGS | places) as service:
        return _judged(service, inputs)


def _judged(service: Service, inputs: Sequence[bytes]) -> int:
    """Send all inputs several times; say what is wrong, and return 1 if something is."""
    statuses: Counter[str] = Counter()
    before = (0, 0)
    for i in range(N_ROUNDS):
        statuses += _sent(service.base_url.port or 0, inputs)
        wait_until(lambda: service.get("/health/ready").status_code == 200)
        before = before if i else _used(service.process_id)
    after = _used(service.process_id)
    log = service.log.read_text(encoding="utf-8")
    wrong = {
        "an answer is 500": statuses["500"] > 0,
        "the log has a traceback": "Traceback" in log,
        "memory grows": after[0] - before[0] > MAX_GROWTH_BYTES,
        "descriptors are left open": after[1] - before[1] > AT_ONCE,
    }
    print(f"{N_ROUNDS} times {len(inputs)} inputs: {dict(sorted(statuses.items()))}")
    print(f"memory {before[0] / 1e6:.0f} to {after[0] / 1e6:.0f} MB, descriptors {before[1]} to {after[1]}")
    for what, is_wrong in wrong.items():
        if is_wrong:
            print(f"{what}: {service.log}")
    return int(any(wrong.values()))


def _sent(port: int, inputs: Iterable[bytes]) -> Counter[str]:
    """Send each input on a connection of its own. Return the statuses of the answers."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = pool.map(lambda data: _answer(port, data), inputs)
        return Counter(status.decode() for answer in answers for status in STATUS.findall(answer))


def _answer(port: int, data: bytes) -> bytes:
    """Return what comes until the service closes the connection, or until nothing comes for a while."""
    received = b""
    with socket.create_connection(("127.0.0.1", port), timeout=ANSWER_S) as connected:
        try:
            connected.sendall(data)
            while piece := connected.recv(65_536):
                received += piece
        except OSError:  # it waits for the rest of a request, or has closed the connection already
            pass
    return received


def _used(process_id: int) -> tuple[int, int]:
    """Return the bytes and the number of descriptors of a process."""
    place = Path("/proc") / str(process_id)
    pages = int((place / "statm").read_text(encoding="ascii").split()[1])
    return pages * PAGE, len(list((place / "fd").iterdir()))


if __name__ == "__main__":
    sys.exit(main())
