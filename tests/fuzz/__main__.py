"""Fuzz targets and tell what was found: `make fuzz`.

    python -m tests.fuzz [TARGET ...] [--minutes 10] [--engine atheris]

Inputs that are wrong are in `.fuzz/TARGET/found`, each beside its traceback.
"""

import argparse
import json
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tests.fuzz.engines import ENGINES, has_atheris
from tests.fuzz.growth import measure_growth
from tests.fuzz.target import ROOT, load_target, target_names

OUTPUT = ROOT / ".fuzz"
AT_ONCE = 2
"""Targets that are fuzzed at a time."""
PROGRESS = re.compile(r"#(\d+)\s+\w+\s+cov: (\d+)")
FINAL = re.compile(r"stat::number_of_executed_units:\s+(\d+)")
CRASHES = ("crash-*", "timeout-*", "oom-*")
"""Files that libFuzzer writes before its process ends."""


@dataclass
class Result:
    """What became of a target.

    Args:
        edges: number of branches that were taken, if the engine is guided by them.
        places: the errors, and the structures that take more than linear time.
    """

    target: str
    engine: str
    executions: int
    edges: int | None
    places: list[str]


def main() -> int:
    """Run targets, two at a time. Return 1 if something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Fuzz readers of foreign bytes.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"one of {', '.join(target_names())}")
    parser.add_argument("--minutes", type=float, default=10.0, help="time for each target")
    parser.add_argument("--engine", choices=[*ENGINES], default="atheris" if has_atheris() else "hypothesis")
    parser.add_argument("--at-once", type=int, default=AT_ONCE, help="targets at a time")
    parser.add_argument("--growth", action="store_true", help="measure the growth of time alone")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    seconds = round(60 * arguments.minutes)
    names = arguments.targets or target_names()
    if unknown := {*names} - {*target_names()}:
        parser.error(f"unknown: {', '.join(unknown)}; available: {', '.join(target_names())}")
    if arguments.child:
        (name,) = names
        if arguments.growth:
            print(json.dumps(measure_growth(load_target(name), seconds)))
        else:
            ENGINES[arguments.engine](name, seconds, OUTPUT / name)
        return 0
    with ThreadPoolExecutor(arguments.at_once) as pool:
        results = [*pool.map(lambda name: _run(name, arguments.engine, seconds, arguments.growth), names)]
    print("\n| target | engine | executions | branches | found |\n|---|---|---:|---:|---:|")
    for one in results:
        print(f"| {one.target} | {one.engine} | {one.executions:,} | {one.edges or '-'} | {len(one.places)} |")
    for one in results:
        for place in one.places:
            print(f"{one.target}: {place}")
    return int(any(one.places for one in results))


def _run(name: str, engine: str, seconds: int, growth_only: bool) -> Result:
    """Measure the growth of a target's time, then fuzz it until its time is over."""
    folder = OUTPUT / name
    folder.mkdir(parents=True, exist_ok=True)
    result = Result(name, engine, 0, None, [])
    ends_at = time.monotonic() + seconds
    for_growth = seconds if growth_only else seconds // 2
    grown = subprocess.run(_command(name, engine, for_growth, "--growth"), capture_output=True, text=True, cwd=ROOT)
    lines = grown.stdout.splitlines()
    result.places += json.loads(lines[-1]) if grown.returncode == 0 else [grown.stderr[-2_000:]]
    while not growth_only and (left := round(ends_at - time.monotonic())) > 1:
        with (folder / "log").open("w", encoding="utf-8") as log:
            code = subprocess.run(_command(name, engine, left), stdout=log, stderr=log, cwd=ROOT).returncode
        written = (folder / "log").read_text(encoding="utf-8", errors="replace")
        _count(result, written)
        crashes = [path for pattern in CRASHES for path in folder.glob(pattern)]
        for path in crashes:
            (folder / "found").mkdir(exist_ok=True)
            path.replace(folder / "found" / path.name)
        if code and not crashes and time.monotonic() < ends_at - left + 5:  # it does not even start
            result.places.append(written[-2_000:])
            break
    found = folder / "found"
    texts = [path.read_text(encoding="utf-8").split("\n", 1)[0] for path in sorted(found.glob("*.txt"))]
    result.places += texts + [str(path) for pattern in CRASHES for path in sorted(found.glob(pattern))]
    return result


def _command(name: str, engine: str, seconds: int, *more: str) -> list[str]:
    options = ["--minutes", str(seconds / 60), "--engine", engine, "--child", *more]
    return [sys.executable, "-m", "tests.fuzz", name, *options]


def _count(result: Result, log: str) -> None:
    """Add the numbers of a process to the result."""
    progress = PROGRESS.findall(log)
    if found := FINAL.search(log):
        result.executions += int(found[1])
    elif progress:
        result.executions += int(progress[-1][0])
    else:
        result.executions += sum(json.loads(line)["executions"] for line in log.splitlines() if line.startswith("{"))
    if progress:
        result.edges = max(result.edges or 0, int(progress[-1][1]))


if __name__ == "__main__":
    sys.exit(main())
