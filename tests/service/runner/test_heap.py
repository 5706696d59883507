"""Memory of models: an unloaded model leaves none behind, and loaded models share the memory of activations."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.service.fakes import PATIENCE_S

pytestmark = pytest.mark.process

TRANSLATOR = Path(__file__).parents[3] / "artifacts" / "translate-en-fr"

SCRIPT = """
import sys
from pathlib import Path
from service.base.artifact import read_artifact
from service.worker.on_demand import _bytes_of_this_process
from service.worker.artifact_source import ArtifactSource
from service.base.settings import Settings

artifact = read_artifact(Path(sys.argv[1]))
source = ArtifactSource({"model": artifact}, Settings(provider="cpu", threads=1, model_memory="1GB")).resolved()
for _ in range(4):
    before = _bytes_of_this_process()
    models = [source.load("model", alone=False) for _ in range(2)]
    for engines in models:
        for engine in engines.values():
            engine.probe()
    loaded = _bytes_of_this_process()
    del models, engines, engine
    source.trim()
    print(loaded - before, _bytes_of_this_process() - before)
"""

COMPUTING = """
import sys
from pathlib import Path
import numpy as np
from service.base.artifact import read_artifact
from service.worker.on_demand import _bytes_of_this_process
from service.runner.provider import Provider
from service.runner.weights import load_session

artifact = read_artifact(Path(sys.argv[1]))
sessions = [load_session(artifact, Provider("cpu", 1, shares_arena=True), "encoder.onnx") for _ in range(2)]
for session in sessions:
    before = _bytes_of_this_process()
    for B, S in ((20, 50), (10, 120), (4, 250)):
        session.run(None, {"input_ids": np.full((B, S), 5), "source_lengths": np.full(B, S)})
    print(_bytes_of_this_process() - before)
"""

CACHES = """
import os
import numpy as np
from service.base.memory import proportional_bytes
from service.runner import heap
from service.runner.caches import CacheShapes, HostCaches

np.ones(3_000_000)  # from now on glibc has blocks of 24 MB on its heap
free, above = np.ones(3_000_000), np.ones(100_000)
del free
heap.trim()
caches = HostCaches(CacheShapes(["0.decoder.key"], (), 1000), n_rows=100)
before = proportional_bytes(os.getpid())
caches.resize(50, rows=0)
caches.write(0, np.ones((1, 50, 1000), np.float32))
print(proportional_bytes(os.getpid()) - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_caches_take_memory_for_rows_that_are_written() -> None:
    output = subprocess.run([sys.executable, "-c", CACHES], check=True, capture_output=True, timeout=PATIENCE_S)
    assert 0 < int(output.stdout) < 2e6


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_memory_of_a_model_is_the_same_every_time_and_is_given_back() -> None:
    command = [sys.executable, "-c", SCRIPT, str(TRANSLATOR)]
    output = subprocess.run(command, check=True, capture_output=True, timeout=6 * PATIENCE_S)
    _, *others = [tuple(map(int, line.split())) for line in output.stdout.splitlines()]
    for taken, kept in others:
        assert 20e6 < taken < 70e6
        assert abs(kept) < 5e6


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_sessions_that_share_an_arena_compute_in_the_same_memory() -> None:
    command = [sys.executable, "-c", COMPUTING, str(TRANSLATOR)]
    output = subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE_S)
    first, second = map(int, output.stdout.split())
    assert first > 8e6
    assert second < first / 4
