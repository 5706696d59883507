"""Which model an artifact has: another one must not take its place unnoticed."""

from pathlib import Path

from safetensors import SafetensorError

from export.tracing import ExportError
from model.checkpoint import Checkpoint
from model.config import ConfigError
from model.identity import HOW_TO_REPLACE, differences


def refuse_other_model(checkpoint: Checkpoint, out: Path) -> None:
    """Refuse to replace the artifact at `out` by another model. Raises ExportError: the artifact is of another model,
    or cannot be read."""
    try:
        other = differences(out, checkpoint.config, checkpoint.model.state_dict())
    except (ConfigError, SafetensorError, OSError) as error:
        raise ExportError(f"{out} has a model that cannot be read ({error}); {HOW_TO_REPLACE}") from error
    if other:
        raise ExportError(f"{out} has another model, with {'; '.join(other)}; {HOW_TO_REPLACE}")
