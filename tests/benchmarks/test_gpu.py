"""What can be seen of benchmarks/gpu without a GPU."""

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from benchmarks.engines import Work
from benchmarks.engines.attend import AttendEngine
from benchmarks.gpu.loop import CpuAsDevice, Loop
from benchmarks.gpu.pack import FATBIN, MACHINE_CODE, prune
from service.artifact import read_artifacts
from service.runner.translation import TranslationGraphs
from tests.service.tiny_artifacts import TinyTranslator


@pytest.mark.parametrize(("places", "fewest_empty"), [(1, 1), (4, 1), (4, 2), (16, 8)])
def test_the_loop_answers_as_the_service_does(places: int, fewest_empty: int, tmp_path: Path) -> None:
    TinyTranslator(seed=3).save(tmp_path / "tiny-en-fr")
    works = [Work([*range(4, 5 + i % 5), 9, 3], 4 + 3 * i) for i in range(11)]
    engine = AttendEngine(tmp_path, threads=1, loops=0)
    try:
        wanted = engine.translate(works, beam_size=1, batch=4)
    finally:
        engine.close()
    (artifact,) = read_artifacts(tmp_path)
    loop = Loop(TranslationGraphs(artifact, CpuAsDevice("cpu", 1)), works, places)
    loop.run(fewest_empty)
    assert loop.answers == wanted
    assert len(set(map(tuple, wanted))) > 1


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
