"""Each tiny checkpoint and each of its artifacts is made once in a test run, whichever of its processes needs it."""

import os
from functools import cache
from pathlib import Path

import onnx
import onnx_ir as ir
import pytest
import torch
from filelock import FileLock

from export.artifact import export
from export.manifest import Precision
from tests.export.tiny_checkpoints import Kind, MakeArtifact, MakeCheckpoint, MakeGraphs, write_checkpoint

torch.set_num_threads(1)  # tensors this small only lose by sharing


@pytest.fixture(scope="session")
def shared_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that all processes of this run have, and no other run."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session")
def checkpoint(shared_directory: Path) -> MakeCheckpoint:
    """The checkpoint directory of a kind of model."""

    @cache
    def make(kind: Kind) -> Path:
        directory = shared_directory / "checkpoints" / kind
        with FileLock(shared_directory / f"{kind}.lock"):
            if not directory.is_dir():
                write_checkpoint(directory, kind)
        return directory

    return make


@pytest.fixture(scope="session")
def artifact(checkpoint: MakeCheckpoint, shared_directory: Path) -> MakeArtifact:
    """The artifact directory of a kind of model at a precision."""

    @cache
    def make(kind: Kind, precision: Precision) -> Path:
        directory = shared_directory / "artifacts" / f"{kind}-{precision}"
        with FileLock(shared_directory / f"{directory.name}.lock"):
            if not directory.is_dir():
                export(checkpoint(kind), directory, precision)
        return directory

    return make


@pytest.fixture(scope="session")
def graphs(artifact: MakeArtifact) -> MakeGraphs:
    """The graphs of an artifact with their weights in memory, by file name."""
    return lambda kind, precision: {
        path.name: ir.from_proto(onnx.load(path)) for path in artifact(kind, precision).glob("*.onnx")
    }
