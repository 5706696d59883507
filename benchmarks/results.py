"""Keeps results as JSON, so that each part can run alone and the report has all of them."""

import json
import os
import platform
import subprocess
import sys
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.workspace import ROOT, workspace

PACKAGES = ("onnxruntime-gpu", "onnxruntime", "ctranslate2", "torch", "tokenizers", "fastapi", "uvicorn", "numpy")

Record = dict[str, Any]


def save(part: str, key: list[str], records: list[Record], quick: bool) -> None:
    """Save records of a part; they replace older ones that agree in every field of `key`.

    Records of another machine are dropped: no table mixes two.
    """
    path = _path(part, quick)
    machine = describe_machine()
    stored: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    kept = stored.get("records", []) if stored.get("machine") == machine else []
    new = {tuple(str(record[name]) for name in key) for record in records}
    kept = [record for record in kept if tuple(str(record[name]) for name in key) not in new]
    dated = [{**record, "date": date.today().isoformat(), "commit": commit()} for record in records]
    path.write_text(json.dumps({"machine": machine, "records": [*kept, *dated]}, indent=1))


def load(part: str, quick: bool) -> list[Record]:
    """Return the records of a part, if any."""
    path = _path(part, quick)
    records: list[Record] = json.loads(path.read_text())["records"] if path.exists() else []
    return records


def machine(part: str, quick: bool) -> dict[str, str]:
    """Return the machine of a part's records, if any."""
    path = _path(part, quick)
    described: dict[str, str] = json.loads(path.read_text())["machine"] if path.exists() else {}
    return described


def describe_machine() -> dict[str, str]:
    """Describe the machine: processor, memory, system and versions."""
    versions = {f"{name} version": version for name in PACKAGES if (version := _version(name))}
    return {
        "processor": _processor(),
        "cores of this process": str(len(os.sched_getaffinity(0))),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 1e9:.0f} GB",
        "system": f"{platform.system()} {platform.machine()}",
        "Python version": platform.python_version(),
        **versions,
    }


def command() -> str:
    """Return the running command as a reader would type it; the data directory is named DATA."""
    arguments = list(sys.argv[1:])
    for i, argument in enumerate(arguments[:-1]):
        if argument == "--data":
            arguments[i + 1] = "DATA"
    return " ".join(["python -m benchmarks", *arguments])


def _path(part: str, quick: bool) -> Path:
    return workspace("results", "quick" if quick else "full") / f"{part}.json"


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    fields = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    name = f"{fields.get('model name', platform.machine())} (family {fields.get('cpu family')})"
    flags = fields.get("flags", "").split()
    vector = [flag for flag in ("avx2", "avx512f", "avx512_vnni", "amx_int8") if flag in flags]
    return f"{name}, {', '.join(vector)}"


def commit() -> str:
    """Return the checked out commit."""
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return described.stdout.strip() or "unknown"
