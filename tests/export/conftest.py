"""Each tiny checkpoint and each of its artifacts is made once in a test run."""

from pathlib import Path

import pytest
import torch

from export.artifact import export
from export.manifest import Precision
from tests.export.tiny_checkpoints import Kind, MakeArtifact, MakeCheckpoint, write_checkpoint

torch.set_num_threads(1)  # tensors this small only lose by sharing


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> MakeCheckpoint:
    """The checkpoint directory of a kind of model."""
    made: dict[Kind, Path] = {}

    def make(kind: Kind) -> Path:
        if kind not in made:
            made[kind] = tmp_path_factory.mktemp(kind)
            write_checkpoint(made[kind], kind)
        return made[kind]

    return make


@pytest.fixture(scope="session")
def artifact(checkpoint: MakeCheckpoint, tmp_path_factory: pytest.TempPathFactory) -> MakeArtifact:
    """The artifact directory of a kind of model at a precision."""
    made: dict[tuple[Kind, Precision], Path] = {}

    def make(kind: Kind, precision: Precision) -> Path:
        if (kind, precision) not in made:
            out = tmp_path_factory.mktemp("artifacts") / f"{kind}-{precision}"
            export(checkpoint(kind), out, precision)
            made[kind, precision] = out
        return made[kind, precision]

    return make
