"""What can be seen of benchmarks/gpu without a GPU."""

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from benchmarks.engines import Work
from benchmarks.gpu.counts import ENGINES, CountingProvider, counted_copies, translated
from benchmarks.gpu.pack import FATBIN, MACHINE_CODE, prune
from service.artifact import read_artifacts
from service.runner.steps import TranslationGraphs
from service.settings import Settings
from tests.service.tiny_artifacts import TinyTranslator


@pytest.mark.parametrize(("kind", "beam_size"), [("greedy", 1), ("beam", 3)])
def test_a_device_is_asked_for_less_and_answers_the_same(kind: str, beam_size: int, tmp_path: Path) -> None:
    TinyTranslator(seed=3).save(tmp_path / "tiny-en-fr")
    (artifact,) = read_artifacts(tmp_path)
    works = [Work([*range(4, 5 + i % 5), 9, 3], 4 + 3 * i) for i in range(11)]
    answers, runs, shapes = {}, {}, {}
    for name, engines in ENGINES.items():
        provider = CountingProvider("cpu", 1)
        engine = engines(TranslationGraphs(artifact, provider), Settings(slots=8 * beam_size))[kind]
        with counted_copies(provider.runs):
            answers[name], _ = translated(engine, works, beam_size, artifact.manifest)
        runs[name], shapes[name] = provider.runs, len(provider.shapes)
    assert answers["fixed"] == answers["compact"]
    assert len(set(map(tuple, answers["fixed"]))) > 1
    for counted in ("encoder", "copy"):
        assert 0 < runs["fixed"][counted] < runs["compact"][counted]
    assert shapes["fixed"] < shapes["compact"] / 2


def test_pruning_blanks_what_other_gpus_run_and_nothing_else(tmp_path: Path) -> None:
    if not all(map(shutil.which, ("cc", "readelf"))):
        pytest.skip("this needs a C compiler and readelf")
    codes = {(MACHINE_CODE, 80): b"a" * 64, (MACHINE_CODE, 90): b"b" * 64, (1, 90): b"c" * 64}
    library = library_of(tmp_path, [codes, {(MACHINE_CODE, 80): b"d" * 64}])
    whole = library.read_bytes()
    prune(library, 90)
    assert library.read_bytes() == whole.replace(b"a" * 64, bytes(64)).replace(b"c" * 64, bytes(64))


def library_of(folder: Path, containers: list[dict[tuple[int, int], bytes]]) -> Path:
    """A shared library with containers of code, by its kind and the architecture that runs it."""
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
