"""Fixtures that write each tiny checkpoint and each of its artifacts once per test run, in whichever process."""

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import torch
from filelock import FileLock

import export.tracing
from export.artifact import export as export_artifact
from manifest.schema import Precision
from tests.export.tiny_checkpoints import Kind, MakeArtifact, MakeCheckpoint, write_checkpoint
from tests.export.traced_once import traced_once

torch.set_num_threads(1)  # tensors this small only lose by sharing


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs an artifact of its own: an export takes seconds."""
    for item in items:
        if "artifact" in item.fixturenames and Path(__file__).parent in item.path.parents:  # type: ignore[attr-defined]
            item.add_marker("slow")


@pytest.fixture(scope="session", autouse=True)
def _graphs_are_traced_once(shared_directory: Path) -> Iterator[None]:
    graphs = shared_directory / "graphs"
    graphs.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(export.tracing, "trace", traced_once(export.tracing.trace, graphs))
        yield


@pytest.fixture(scope="session")
def shared_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory that all processes of this test run share, and no other run."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session")
def checkpoint(shared_directory: Path) -> MakeCheckpoint:
    """Return a function that writes the checkpoint of a kind of model."""

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
    """Return a function that exports the artifact of a kind of model at a precision."""

    @cache
    def make(kind: Kind, precision: Precision) -> Path:
        directory = shared_directory / "artifacts" / f"{kind}-{precision}"
        with FileLock(shared_directory / f"{directory.name}.lock"):
            if not directory.is_dir():
                export_artifact(checkpoint(kind), directory, precision)
        return directory

    return make
