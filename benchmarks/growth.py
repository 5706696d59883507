"""Growth of cost: decoder steps by rows and by cache length, the encoder by source length, memory by sentences in
flight.

`benchmarks.probe` times forward passes in its own process.
"""

import json
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from tokenizers import Tokenizer

from benchmarks.models import SHIPPED, BenchmarkModel
from benchmarks.processes import Candidate, EngineProcess
from benchmarks.results import Record, command, save
from benchmarks.texts import load_sentences, works_of
from benchmarks.workspace import ROOT

KEY = ["curve", "engine", "x"]
IN_FLIGHT = (1, 4, 16, 64)


def measure(data: Path | None, quick: bool, console: Console) -> None:
    """Measure the four curves of the shipped model in int8, with one thread, and save them."""
    model = BenchmarkModel(SHIPPED)
    records = _timed(model.artifacts("int8"), seconds_per_point=0.1 if quick else 0.5)
    records += _memory(model, data, count=64 if quick else 256)
    for record in records:
        console.print(f"{record['curve']}: {record['engine']} {record['x']}: {record['y']:.3g}")
    save("growth", KEY, [{**record, "command": command()} for record in records], quick)


def _timed(artifacts: Path, seconds_per_point: float) -> list[Record]:
    question = json.dumps({"artifacts": str(artifacts), "seconds_per_point": seconds_per_point})
    answer = subprocess.run(
        [sys.executable, "-m", "benchmarks.probe", question], check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    records: list[Record] = json.loads(answer.stdout)
    return records


def _memory(model: BenchmarkModel, data: Path | None, count: int) -> list[Record]:
    """Measure the peak memory of a fresh process for each number of sentences in flight."""
    tokenizer = Tokenizer.from_file(str(model.checkpoint() / "tokenizer.json"))
    works = works_of(load_sentences(data, count), tokenizer)
    one_thread = {"compute_type": "int8", "inter_threads": 1, "intra_threads": 1}
    candidates = (Candidate("attend", "", {"threads": 1, "rows": 64}), Candidate("ctranslate2", "", one_thread))
    records = []
    for candidate in candidates:
        for in_flight in IN_FLIGHT:
            with EngineProcess(candidate, model.path(candidate.engine, "int8"), works) as engine:
                peak_mb = engine.run(beam_size=1, batch=in_flight).peak_mb
            records.append({"curve": "memory", "engine": candidate.engine, "x": in_flight, "y": peak_mb})
    return records
