"""Runs one engine in its own process, to measure its own memory and threads.

`python -m benchmarks.worker` reads one JSON object per line and answers each with one: first what to load, then what to
run. If an engine does not support a request, it answers with an `error` and continues.
"""

import contextlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.engines import TranslationEngine, Work, load


def main() -> None:
    """Load an engine and run it until the input ends."""
    first = json.loads(sys.stdin.readline())
    works = [Work(*work) for work in first["works"]]
    engine = load(first["engine"], Path(first["model"]), first["settings"])
    _answer({"loaded": True})
    for line in sys.stdin:
        try:
            _answer(_run(engine, works, **json.loads(line)))
        except NotImplementedError as error:
            _answer({"error": str(error)})
    engine.close()


def peak_mb() -> float:
    """Return the peak memory in MB of this process and its children; shared pages are divided among processes."""
    return sum(_peak_bytes(process) for process in [Path("/proc/self"), *_children()]) / 1e6


def _children() -> list[Path]:
    children = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # the process has just ended
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid():
                children.append(stat.parent)
    return children


def _peak_bytes(process: Path) -> int:
    lines = [*(process / "status").read_text().splitlines(), *(process / "smaps_rollup").read_text().splitlines()]
    kilobytes = {line.split(":")[0]: int(line.split()[1]) for line in lines if line.endswith(" kB")}
    return 1024 * (kilobytes["VmHWM"] - kilobytes["Rss"] + kilobytes["Pss"])


def _run(engine: TranslationEngine, works: list[Work], beam_size: int, batch: int, count: int) -> dict[str, Any]:
    began = time.perf_counter()
    targets = engine.translate(works[:count], beam_size, batch)
    seconds = time.perf_counter() - began
    ends = sum(not work.fixed_length for work in works[:count])  # every </s> is a step too
    tokens = sum(len(target) for target in targets) + ends
    return {"seconds": seconds, "tokens": tokens, "peak_mb": peak_mb(), "targets": targets}


def _answer(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
