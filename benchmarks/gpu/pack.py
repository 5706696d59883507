"""Packs an archive for a machine with GPU but no network, with Python 3.12, PyTorch and the libraries of CUDA 13."""

import collections
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from packaging.requirements import Requirement

from benchmarks.gpu.inputs import CLASSIFIER, COMMIT, PACKED, commit
from benchmarks.models import RANDOM, SHIPPED, BenchmarkModel
from benchmarks.workspace import ROOT
from manifest.layout import WEIGHTS

PYTHON = "3.12"
TARGET = {
    "python_version": PYTHON,
    "python_full_version": f"{PYTHON}.0",
    "sys_platform": "linux",
    "platform_machine": "x86_64",
}
GLIBCS = range(17, 40)
BEYOND_SERVING = (
    *("ctranslate2", "markdown-it-py", "mdurl", "ml-dtypes", "onnx", "onnx-ir", "onnxscript", "pygments", "pyyaml"),
    *("rich", "safetensors", "sentencepiece", "setuptools", "shellingham", "typer"),
)
SOURCES = (
    "service",
    "model",
    "export",
    "benchmarks",
    "pyproject.toml",
    "docs/gpu.md",
    f"artifacts/{SHIPPED}",
    f"artifacts/{CLASSIFIER}",
)
UNPACK = Path(__file__).with_name("unpack.sh")

FATBIN, MACHINE_CODE = 0xBA55ED50, 2


def pack(out: Path, architecture: int, part_mb: int) -> None:
    """Write unpack.sh and the parts of an archive of packages, sources, two models and the inputs."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        packages, project = Path(folder) / "site", Path(folder) / "project"
        _install(packages)
        capi = packages / "onnxruntime" / "capi"
        prune(capi / "libonnxruntime_providers_cuda.so", architecture)
        (capi / "libonnxruntime_providers_tensorrt.so").unlink()
        files = subprocess.run(
            ["git", "ls-files", "-z", *SOURCES], cwd=ROOT, check=True, capture_output=True, text=True
        )
        for file in [*files.stdout.split("\0")[:-1], ".bench/gpu/inputs.json"]:
            (project / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / file, project / file)
        shutil.copytree(
            BenchmarkModel(RANDOM).artifacts("fp32"),
            project / PACKED.relative_to(ROOT),
            ignore=shutil.ignore_patterns(WEIGHTS),
        )
        (project / COMMIT.relative_to(ROOT)).write_text(commit(), encoding="utf-8")
        archive = f"tar c -C {folder} . | xz -T0 | split --bytes={part_mb}MB --numeric-suffixes - {out}/part."
        subprocess.run(["bash", "-o", "pipefail", "-c", archive], check=True)
    n_parts = len(list(out.glob("part.*")))
    text = UNPACK.read_text(encoding="utf-8")
    (out / UNPACK.name).write_text(text.replace("PARTS=1", f"PARTS={n_parts}"), encoding="utf-8")
    print(f"{out}: {n_parts} parts of at most {part_mb} MB")


def prune(library: Path, architecture: int) -> None:
    """Blank the machine code for other GPUs in a library, so that it packs small. Only for measuring: the rest runs on
    one architecture.
    """
    said = subprocess.run(["readelf", "-SW", library], check=True, capture_output=True, text=True).stdout
    section = re.search(r"\.nv_fatbin\s+PROGBITS\s+\w+\s+(\w+)\s+(\w+)", said)
    assert section is not None, f"{library} has no code for GPUs"
    place, end = (int(section[1], 16), int(section[1], 16) + int(section[2], 16))
    data = bytearray(library.read_bytes())
    blanked: collections.Counter[int] = collections.Counter()
    while place < end:
        magic, _, header_size, size = struct.unpack_from("<IHHQ", data, place)
        if magic != FATBIN:
            place += 8  # containers are aligned
            continue
        place, stop, others, has = place + header_size, place + header_size + size, [], False
        while place < stop:
            kind, _, header_size, size = struct.unpack_from("<HHIQ", data, place)
            (code_of,) = struct.unpack_from("<I", data, place + 28)
            if kind == MACHINE_CODE and code_of == architecture:
                has = True
            else:
                others.append((code_of, place + header_size, size))
            place += header_size + size
        for code_of, start, size in others if has else ():
            data[start : start + size] = bytes(size)
            blanked[code_of] += size
    library.write_bytes(data)
    print(f"{library.name}: blanked", {code_of: f"{size >> 20} MB" for code_of, size in sorted(blanked.items())})


def requirements() -> dict[str, str]:
    """Return the locked packages for serving on CUDA and for the benchmark by name, except CUDA's own libraries."""
    entries = {}
    for lock in ("dev", "cuda"):
        text = (ROOT / "requirements" / f"{lock}.txt").read_text(encoding="utf-8")
        for pin, hashes in re.findall(r"^([\w.-]+==.*?)((?: \\\n +--hash=\S+)+)\n", text, re.MULTILINE):
            wanted = Requirement(pin)
            is_needed = (lock == "cuda" and not wanted.name.startswith("nvidia-")) or wanted.name in BEYOND_SERVING
            if is_needed and (wanted.marker is None or wanted.marker.evaluate(TARGET)):
                entries[wanted.name] = f"{wanted.name}{wanted.specifier}{hashes}\n"
    return entries


def _install(packages: Path) -> None:
    platforms = [f"--platform=manylinux_2_{minor}_x86_64" for minor in GLIBCS] + ["--platform=manylinux2014_x86_64"]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as wanted:
        wanted.write("".join(requirements().values()))
        wanted.flush()
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:"]
        command += [f"--python-version={PYTHON}", "--implementation=cp", *platforms, "--no-compile"]
        subprocess.run(
            [*command, f"--target={packages}", "--require-hashes", f"--requirement={wanted.name}"], check=True
        )
