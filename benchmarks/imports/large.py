"""Cost of a model of the size of NLLB-200 distilled 600M, with random weights: `python -m benchmarks large`.

It is imported, exported in int8 and served; CTranslate2 runs the result of its own converter. Both translate one
sentence into the same number of tokens by greedy search. Memory is the peak of a process that makes files, and the
proportional set size of one that serves, after a few sentences.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.footprint import started
from benchmarks.memory import footprint
from benchmarks.workspace import ROOT, made_from, workspace

NAME = "nllb-600m"
SENTENCE, N_TOKENS, N_SENTENCES = "The old house on the hill is wonderful.", 32, 3


def measure() -> dict[str, float]:
    """Return seconds and MB of each step."""
    sources = [ROOT / "benchmarks" / "imports" / "random_nllb.py"]
    directory = made_from(sources, workspace("models", "transformers") / NAME, _make)
    checkpoint, artifacts = workspace("models") / NAME, workspace("models", "attend-large")
    converted = workspace("models", "ctranslate2") / f"{NAME}.int8"
    for path in (checkpoint, artifacts / NAME, converted):
        shutil.rmtree(path, ignore_errors=True)
    figures: dict[str, float] = {}
    steps = {
        "import": ["-m", "model", "import", directory, checkpoint, "--name", NAME],
        "export": ["-m", "export", checkpoint, artifacts / NAME, "--precision", "int8", "--nearness", "0"],
        "conversion": [
            *("-m", "ctranslate2.converters.transformers", "--model", directory, "--output_dir", converted),
            *("--quantization", "int8", "--low_cpu_mem_usage"),
        ],
    }
    for name, arguments in steps.items():
        figures |= {f"{name}_{what}": value for what, value in _run([str(argument) for argument in arguments]).items()}
    return figures | serve(artifacts) | run_ctranslate2(converted)


def serve(artifacts: Path) -> dict[str, float]:
    """Serve the artifacts; return the seconds until ready, tokens per second of the last sentence, and memory."""
    with started(artifacts) as (client, process_id, ready_s):
        body = {"text": SENTENCE, "source": "en", "target": "fr", "beam_size": 1, "max_target_tokens": N_TOKENS}
        for _ in range(N_SENTENCES):
            began = time.monotonic()
            answer = client.post("/translate", json=body).raise_for_status().json()
            elapsed_s = time.monotonic() - began
        rate = answer["usage"]["target_tokens"] / elapsed_s
        return {"ready_s": ready_s, "tokens_per_s": rate} | footprint(process_id)


def run_ctranslate2(converted: Path) -> dict[str, float]:
    """Run CTranslate2 alone; return its tokens per second and memory."""
    pieces = ["eng_Latn", *("▁" + SENTENCE.replace(" ", "▁")), "</s>"]
    command = [sys.executable, "-m", "benchmarks.imports.ctranslate2_alone", str(converted)]
    command += ["fra_Latn", str(N_TOKENS), str(N_SENTENCES), *pieces]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rate, megabytes = map(float, output.split())
    return {"ctranslate2_tokens_per_s": rate, "ctranslate2_mb": megabytes}


def _make(directory: Path) -> None:
    """In a process of its own: the peak of a process counts for those that it starts."""
    _run(["-m", "benchmarks.imports.random_nllb", str(directory)])


def _run(arguments: Sequence[str]) -> dict[str, float]:
    began = time.monotonic()
    process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(arguments)} failed with code {process.returncode}")
    cpu_s = usage.ru_utime + usage.ru_stime
    return {"s": time.monotonic() - began, "cpu_s": cpu_s, "peak_mb": usage.ru_maxrss * 1024 / 1e6}
