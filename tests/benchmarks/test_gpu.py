"""benchmarks/gpu, as far as it runs without a GPU."""

import json
import shutil
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from benchmarks.engines import Work
from benchmarks.gpu import everything, report, soak
from benchmarks.gpu.__main__ import app
from benchmarks.gpu.counts import ENGINES, CountingProvider, counted_copies, translated
from benchmarks.gpu.pack import FATBIN, MACHINE_CODE, prune, requirements
from benchmarks.workspace import ROOT
from service.base.artifact import read_artifacts
from service.base.settings import Settings
from service.runner.translation import TranslationGraphs
from tests.service.tiny_artifacts import TinyTranslator


@pytest.mark.parametrize(("kind", "beam_size"), [("greedy", 1), ("beam", 3)])
def test_a_device_is_asked_for_less_and_answers_the_same(kind: str, beam_size: int, tmp_path: Path) -> None:
    TinyTranslator(seed=3).save(tmp_path / "tiny-en-fr")
    (artifact,) = read_artifacts(tmp_path)
    works = [Work([*range(4, 5 + i % 5), 9, 3], 4 + 3 * i) for i in range(11)]
    answers, runs, shapes = {}, {}, {}
    for name, engines in ENGINES.items():
        provider = CountingProvider("cpu", 1)
        engine = engines(TranslationGraphs(artifact, provider), Settings(rows=8 * beam_size))[kind]
        with counted_copies(provider.runs):
            answers[name], _ = translated(engine, works, beam_size, artifact.manifest)
        passes = [shape for shape in provider.shapes if shape[0] != "copy"]  # a copy is not captured
        runs[name], shapes[name] = provider.runs, len(passes)
    assert answers["fixed"] == answers["compact"]
    assert len(set(map(tuple, answers["fixed"]))) > 1
    for counted in ("encoder", "copy"):
        assert 0 < runs["fixed"][counted] < runs["compact"][counted]
    assert shapes["fixed"] < shapes["compact"] / 3


@pytest.mark.process
def test_pruning_blanks_what_other_gpus_run_and_nothing_else(tmp_path: Path) -> None:
    if not all(map(shutil.which, ("cc", "readelf"))):
        pytest.skip("this needs a C compiler and readelf")
    codes = {(MACHINE_CODE, 80): b"a" * 64, (MACHINE_CODE, 90): b"b" * 64, (1, 90): b"c" * 64}
    library = library_of(tmp_path, [codes, {(MACHINE_CODE, 80): b"d" * 64}])
    whole = library.read_bytes()
    prune(library, 90)
    assert library.read_bytes() == whole.replace(b"a" * 64, bytes(64)).replace(b"c" * 64, bytes(64))


def library_of(folder: Path, containers: list[dict[tuple[int, int], bytes]]) -> Path:
    """Write a shared library with containers of code, by kind and architecture."""
    section = b""
    for codes in containers:
        entries = b"".join(
            struct.pack("<HHIQ", kind, 1, 32, len(code)) + bytes(12) + struct.pack("<I", architecture) + code
            for (kind, architecture), code in codes.items()
        )
        section += struct.pack("<IHHQ", FATBIN, 1, 16, len(entries)) + entries + bytes(8)
    source = folder / "code.c"
    numbers = ", ".join(map(str, section))
    source.write_text(f'__attribute__((section(".nv_fatbin"))) const unsigned char code[] = {{{numbers}}};\n')
    library = folder / "code.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    return library


WITH_PYTORCH = [
    *("filelock", "fsspec", "jinja2", "markupsafe", "mpmath", "networkx", "numpy", "setuptools", "sympy", "torch"),
    "typing-extensions",
]
IMPORT = """
import sys
from importlib.metadata import packages_distributions
for module, packages in packages_distributions().items():
    if not {name.lower().replace("_", "-") for name in packages} & {*sys.argv[1:]}:
        sys.modules[module] = None
import benchmarks.gpu.__main__, benchmarks.engines.ctranslate2, service.server.server
"""


@pytest.mark.process
def test_an_archive_has_every_package_that_is_imported() -> None:
    packed = {name.lower().replace("_", "-") for name in requirements()}
    there = subprocess.run([sys.executable, "-c", IMPORT, *packed, *WITH_PYTORCH], cwd=ROOT, stderr=-1, text=True)
    assert there.returncode == 0, there.stderr


SAYING = 'import json; print(json.dumps({"part": "steps", "rows": 8}), flush=True); '
SPEEDS = {"attend": 4000, "ctranslate2": 1600}


def part(name: str, script: str, timeout_s: float = 60) -> everything.Part:
    return everything.Part(name, [sys.executable, "-c", script], timeout_s)


@pytest.mark.process
def test_a_part_that_dies_or_hangs_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    chosen = [
        part("hangs", SAYING + "import signal; signal.pause()", timeout_s=5),
        part("dies", SAYING + "raise ValueError('no such kernel')"),
        part("ends", SAYING),
    ]
    everything.run("cpu", chosen, 100, tmp_path / "measured.jsonl")
    machine, *lines = everything.read_lines(tmp_path / "measured.jsonl")
    assert machine["provider"] == "cpu"
    ended = {line["name"]: line["how"] for line in lines if line["part"] == "ended"}
    assert ended == {"hangs": "ended after 5 s", "dies": "died with 1: ValueError: no such kernel", "ends": "done"}
    assert [line["part"] for line in lines] == ["steps", "ended"] * 3


def test_a_part_for_which_no_time_is_left_does_not_begin(tmp_path: Path) -> None:
    everything.run("cpu", [part("late", SAYING)], everything.MIN_PART_S / 2, tmp_path / "measured.jsonl")
    assert [line["part"] for line in everything.read_lines(tmp_path / "measured.jsonl")] == ["machine", "ended"]


def test_every_part_is_a_command_and_the_proof_comes_first() -> None:
    chosen = everything.parts(everything.BUDGET_S, works=8)
    assert [one.name for one in chosen][:2] == ["models", "proof"]
    assert sum(one.timeout_s for one in chosen[1:5]) < everything.BUDGET_S, "what is most important fits"
    commands = get_command(app)
    assert isinstance(commands, TyperGroup)
    for one in chosen:
        _, command, arguments = commands.resolve_command(commands.make_context("gpu", ["all"]), [*one.command[3:]])
        assert command is not None
        command.make_context(one.name, arguments)


def test_the_report_has_the_ratio_of_the_engines_and_what_went_wrong(tmp_path: Path) -> None:
    speed = {"part": "speed", "model": "m", "beam_size": 4, "batch": 64}
    lines = [
        {"part": "machine", "provider": "cuda", **everything.machine()},
        {"part": "proof", "graph": "m/encoder.onnx", "nodes": 9, "elsewhere": ["Where"]},
        {"part": "proof", "engine": "attend", "beam_size": 1, "as_float32_on_cpu": "7 of 8", "as_alone": "8 of 8"},
        *({**speed, "engine": engine, "tokens_per_s": speed_of} for engine, speed_of in SPEEDS.items()),
        {"part": "constants", "size_factor": 2, "beam_size": 1, "batch": 256, "tokens_per_s": 9000},
        {"part": "http", "path": "/embed", "status": 500, "ms": 1.0, "answer": "oh"},
        {"part": "ended", "name": "soak", "seconds": 85.0, "how": "ended after 85 s"},
    ]
    (tmp_path / "measured.jsonl").write_text("\n".join(map(json.dumps, lines)) + '\n{"part": "spe', encoding="utf-8")
    out = tmp_path / "gpu.md"
    report.write(everything.read_lines(tmp_path / "measured.jsonl"), ROOT / "docs" / "gpu.md", out)
    page = out.read_text(encoding="utf-8")
    for told in (
        "| m/encoder.onnx | 9 | Where |",
        "| attend | 1 | 7 of 8 | 8 of 8 |",
        "| m | 4 | 64 | 4,000 | 1,600 | **2.50** |",
        "| – | – | 2 | 1 | 256 | 9,000 |",  # noqa: RUF001
        "`/embed` was answered with 500: `oh`",
        "| soak | 85.0 | ended after 85 s |",
    ):
        assert told in page
    before = (ROOT / "docs" / "gpu.md").read_text(encoding="utf-8")
    assert report.PLACE.sub("", page) == report.PLACE.sub("", before)


class Forgetful(BaseHTTPRequestHandler):
    """Server that changes each tenth answer and refuses each tenth request."""

    protocol_version = "HTTP/1.1"
    numbers: Iterator[int]

    def do_GET(self) -> None:
        number = next(self.numbers) % 10
        said = json.dumps({"text": "other" if number == 3 else "same", "score": 0.5 + number / 1e4}).encode()
        self.send_response(503 if number == 7 else 200)
        self.send_header("content-length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_: object) -> None:
        pass


def test_a_soak_counts_what_is_no_answer_or_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    Forgetful.numbers = count()
    monkeypatch.setattr(soak, "time", SimpleNamespace(monotonic=count().__next__))  # a request takes a second
    with ThreadingHTTPServer(("127.0.0.1", 0), Forgetful) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            address, requests = f"127.0.0.1:{server.server_port}", [soak.Request("/models", None)]
            first = [soak.answer(address, request) for request in requests]
            counted = soak.clients(address, requests, first, 201, 0)
        finally:
            server.shutdown()
    assert first == [(200, {"text": "same", "score": 0.5})]
    assert counted == {"same": 160, "different": 20, "failed": 20}


@pytest.mark.parametrize(
    ("other", "is_alike"),
    [
        ({"text": "a", "scores": [0.51, 1]}, True),
        ({"text": "a", "scores": [0.6, 1]}, False),
        ({"text": "b", "scores": [0.5, 1]}, False),
        ({"text": "a", "scores": [0.5]}, False),
        ({"text": "a", "scores": [0.5, 2]}, False),
        ({"text": "a"}, False),
    ],
)
def test_answers_are_alike_but_for_what_float16_does_to_numbers(other: object, is_alike: bool) -> None:
    assert soak.alike({"text": "a", "scores": [0.5, 1]}, other) is is_alike
