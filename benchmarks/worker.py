"""One engine in a process of its own, so that its memory and its threads are its own.

`python -m benchmarks.worker` reads one JSON object per line and answers with one: first what to load, then what to run.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.engines import TranslationEngine, Work, load


def main() -> None:
    """Load, then run until the input ends."""
    first = json.loads(sys.stdin.readline())
    before = resident_mb("VmRSS")
    engine = load(first["engine"], Path(first["model"]), first["settings"])
    works = [Work(*work) for work in first["works"]]
    _answer({"imported_mb": before, "loaded_mb": resident_mb("VmRSS")})
    for line in sys.stdin:
        _answer(_run(engine, works, **json.loads(line)))
    engine.close()


def resident_mb(field: str) -> float:
    """VmRSS, now, or VmHWM, at its highest, of this process in MB."""
    status = Path("/proc/self/status").read_text()
    (kilobytes,) = (line.split()[1] for line in status.splitlines() if line.startswith(field))
    return int(kilobytes) * 1024 / 1e6


def _run(engine: TranslationEngine, works: list[Work], beam_size: int, batch: int, count: int) -> dict[str, Any]:
    began = time.perf_counter()
    targets = engine.translate(works[:count], beam_size, batch)
    seconds = time.perf_counter() - began
    tokens = sum(len(target) + (not work.fixed_length) for target, work in zip(targets, works, strict=False))
    return {"seconds": seconds, "tokens": tokens, "peak_mb": resident_mb("VmHWM"), "targets": targets}


def _answer(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
