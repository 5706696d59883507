"""Brings a model of a hub into a folder of artifacts: fetched, imported, exported and proved, or not there."""

import sys
import tempfile
from pathlib import Path

from safetensors import SafetensorError

from export.artifact import export
from export.proof import ProofError
from export.tracing import ExportError
from model.checkpoint import CheckpointError
from model.config import ConfigError
from model.importing.families import import_model
from model.importing.imported import HubError, ModelImportError, NotOnHubError, Options
from model.progress import progress_shown

__all__ = ["HubError", "NotOnHubError", "bring"]
ERRORS = (ModelImportError, CheckpointError, ConfigError, ExportError, ProofError, OSError, SafetensorError)


def bring(source: str, artifacts: Path) -> None:
    """Bring a model. After a failure nothing is left. Raises HubError: the hub cannot be reached, or does not have the
    model. After any other failure the process ends with a sentence."""
    name = source.rpartition("/")[2]
    try:
        artifacts.mkdir(parents=True, exist_ok=True)
        with progress_shown(), tempfile.TemporaryDirectory(dir=artifacts, prefix=f".{name}.") as workplace:
            checkpoint = Path(workplace) / name
            import_model(source, checkpoint, Options())
            export(checkpoint, artifacts / name, "int8")
    except HubError:
        raise
    except ERRORS as error:
        sys.exit(f"cannot bring {source}: {error}")
