"""Runs all parts, each in its own process: one that dies or times out is reported, and the others continue."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import IO, Any

from benchmarks.gpu.inputs import ProviderName, commit
from benchmarks.models import RANDOM, SHIPPED
from benchmarks.results import describe_machine
from benchmarks.workspace import ROOT, workspace

BUDGET_S = 230.0
SOAK_S = 60.0
MIN_PART_S = 5.0
"""Least time left in which a part still starts."""
ENDING_S = 3.0

Line = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """A command that prints lines of JSON.

    Args:
        timeout_s: seconds after which it is stopped, if the budget is BUDGET_S.
    """

    name: str
    command: Sequence[str]
    timeout_s: float


def parts(budget_s: float, works: int | None) -> list[Part]:
    """Return the parts, the most important first: together they may exceed the budget.

    Args:
        works: number of works in each part that translates; None for all.
    """
    program = [sys.executable, "-m", "benchmarks.gpu"]
    some = [] if works is None else ["--works", str(works)]
    scale = budget_s / BUDGET_S
    once, briefly = ["--repetitions", "1"], ["--seconds", f"{3 * scale:.1f}"]

    def speed(engine: str, model: str, timeout_s: float) -> Part:
        return Part(
            f"speed {engine} {model}", [*program, "speed", engine, "--model", model, *once, *some], timeout_s * scale
        )

    return [
        Part("models", [*program, "models"], 90 * scale),
        Part("proof", [*program, "proof", *some], 50 * scale),
        speed("attend", SHIPPED, 60),
        speed("ctranslate2", SHIPPED, 20),
        Part("constants", [*program, "constants", *some], 60 * scale),
        Part("http, 1 server", [*program, "http", "--servers", "1", *briefly], 30 * scale),
        Part("http, default servers", [*program, "http", *briefly], 30 * scale),
        speed("attend", RANDOM, 40),
        speed("ctranslate2", RANDOM, 20),
        Part("soak", [*program, "soak", "--seconds", f"{SOAK_S * scale:.1f}"], (SOAK_S + 25) * scale),
        Part("steps", [*program, "steps"], 20 * scale),
        Part("counts", [*program, "counts", *some], 30 * scale),
    ]


def measured() -> Path:
    """Return the file of all results, one line of JSON each."""
    return workspace("gpu") / "measured.jsonl"


def run(provider: ProviderName, chosen: list[Part], budget_s: float, path: Path) -> None:
    """Run parts until the time is over; write their lines, and how each of them ended, to a file."""
    ends_at = time.monotonic() + budget_s
    with path.open("w", encoding="utf-8") as file:
        _write(file, {"part": "machine", "provider": provider, "budget_s": budget_s, **machine()})
        for part in chosen:
            left = ends_at - time.monotonic()
            began = time.monotonic()
            how = "no time was left" if left < MIN_PART_S else _run(part, file, min(part.timeout_s, left))
            took_s = round(time.monotonic() - began, 1)
            _write(file, {"part": "ended", "name": part.name, "seconds": took_s, "how": how})
            print(f"{part.name}: {how}, {took_s} s", flush=True)


def read_lines(path: Path) -> list[Line]:
    """Return all lines, except one that was cut off."""
    return list(_lines(path))


def _lines(path: Path) -> Iterator[Line]:
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            said = json.loads(line)
        except json.JSONDecodeError:
            continue
        if isinstance(said, dict):
            yield said


def _run(part: Part, file: IO[str], timeout_s: float) -> str:
    """Run a part and return how it ended."""
    log = workspace("gpu", "logs") / f"{part.name.replace(' ', '-')}.log"
    with log.open("w", encoding="utf-8") as errors:
        process = subprocess.Popen(part.command, cwd=ROOT, stdout=file, stderr=errors, start_new_session=True)
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            _end(process)
    if code is None:
        return f"ended after {timeout_s:.0f} s"
    said = log.read_text(encoding="utf-8", errors="replace").split("\n")
    last = next((line for line in reversed(said) if line.strip()), "")
    return "done" if code == 0 else f"died with {code}: {last[:200].replace('|', '/')}"


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a process with all processes that it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        ends_at = time.monotonic() + ENDING_S
        while process.poll() is None and time.monotonic() < ends_at:
            time.sleep(0.05)
    process.wait()


def _write(file: IO[str], line: Line) -> None:
    file.write(json.dumps(line) + "\n")
    file.flush()


def machine() -> Line:
    """Describe the machine, as results depend on it."""
    return {"device": _device(), "date": date.today().isoformat(), "commit": commit(), **describe_machine()}


def _device() -> str:
    if shutil.which("nvidia-smi") is None:
        return "no GPU"
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    lines = subprocess.run(query, check=True, capture_output=True, text=True).stdout.splitlines()
    return "; ".join(line.replace(", ", ", driver ") for line in lines)
