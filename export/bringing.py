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

ERRORS = (ModelImportError, CheckpointError, ConfigError, ExportError, ProofError, OSError, SafetensorError)
ELSEWHERE = (
    "`HF_ENDPOINT` names another hub, `HTTPS_PROXY` a proxy. On a machine that reaches one, "
    "attend pack writes a file with models, which attend unpack reads without a network"
)


def bring(source: str, artifacts: Path) -> bool:
    """Bring a model; return whether the hub has it. After any other failure nothing is left, and the process ends with
    a sentence."""
    name = source.rpartition("/")[2]
    try:
        artifacts.mkdir(parents=True, exist_ok=True)
        with progress_shown(), tempfile.TemporaryDirectory(dir=artifacts, prefix=f".{name}.") as workplace:
            checkpoint = Path(workplace) / name
            import_model(source, checkpoint, Options())
            export(checkpoint, artifacts / name, "int8")
    except NotOnHubError:
        return False
    except ERRORS as error:
        sys.exit(f"cannot bring {source}: {error}" + (f". {ELSEWHERE}" if isinstance(error, HubError) else ""))
    return True
