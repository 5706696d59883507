"""The table of a soak, for the screen and for docs/trust.md."""

import re
import subprocess
from collections import defaultdict
from pathlib import Path
from statistics import median

from tests.soak.result import Result

PLACE = re.compile(r"(?<=<!-- soak: written by make soak -->\n).*?(?=<!-- end of the soak -->)", re.DOTALL)
MB = 1e6


def table(result: Result) -> str:
    """Return the tables in Markdown."""
    parts = [_requests(result), _faults(result), _memory(result)]
    return "\n\n".join(parts) + "\n"


def write(page: Path, result: Result) -> None:
    """Write the tables into a page, between its marks."""
    text = page.read_text(encoding="utf-8")
    assert PLACE.search(text), f"{page} has no place for the tables"
    page.write_text(PLACE.sub(lambda _: f"\n{_head(result)}\n\n{table(result)}\n", text), encoding="utf-8")


def _head(result: Result) -> str:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    cpu = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    cores = len(re.findall(r"^processor", Path("/proc/cpuinfo").read_text(), re.MULTILINE))
    machine = f"{cpu[1] if cpu else 'unknown processor'}, {cores} cores"
    minutes = result.seconds / 60
    return (
        f"{result.ledger.n_requests:,} requests in {minutes:.0f} minutes, 100 at a time, on {machine}, "
        f"at {commit.stdout.strip()}:"
    )


def _requests(result: Result) -> str:
    by_kind: dict[str, dict[str, int]] = defaultdict(dict)
    for (kind, outcome), n in result.ledger.outcomes.items():
        by_kind[kind][outcome] = n
    lines = ["| requests | number | what came of them |", "|---|---:|---|"]
    for kind, outcomes in sorted(by_kind.items()):
        said = ", ".join(f"{outcome}: {n:,}" for outcome, n in sorted(outcomes.items(), key=lambda one: -one[1]))
        lines.append(f"| {kind} | {sum(outcomes.values()):,} | {said} |")
    return "\n".join(lines)


def _faults(result: Result) -> str:
    lines = [
        "| fault | times | requests with an error of it | seconds until ready: median, longest |",
        "|---|---:|---:|---|",
    ]
    for name, strikes in sorted(result.strikes.items()):
        seconds = strikes.seconds_until_ready
        ready = f"{median(seconds):.1f}, {max(seconds):.1f}" if seconds else ""
        lines.append(f"| {name} | {strikes.n} | {strikes.n_excused} | {ready} |")
    lines += [f"| {name} | 0 | | not tried: {why} |" for name, why in sorted(result.skipped.items())]
    return "\n".join(lines)


def _memory(result: Result) -> str:
    values = [n_bytes for _, n_bytes in result.memory]
    half = len(values) // 2
    if half == 0:
        return "Memory was not measured."
    first, second = median(values[:half]), median(values[half:])
    return (
        f"Memory of all processes: {first / MB:.0f} MB in the first half, {second / MB:.0f} MB in the second "
        f"(medians). Left over afterwards: {len(result.failures) or 'nothing'}."
    )
