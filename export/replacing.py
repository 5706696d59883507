"""Which model an artifact has: another one must not take its place unnoticed."""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from export.tracing import ExportError
from model.checkpoint import Checkpoint
from model.config import ClassifierConfig, Config, ConfigError, TransformerConfig, load_config
from model.weights import WEIGHTS, WeightsError, read_weights

HALF_PRECISION = 1e-3
"""Error of a number in float16, relative to the number, or absolute if it is small."""


def refuse_other_model(checkpoint: Checkpoint, out: Path) -> None:
    """Refuse to replace the artifact at `out` by another model.

    A model that was trained here may have other weights than before, as it is trained again. An imported one is the
    same only if its weights are.

    Raises:
        ExportError: the artifact is of another model, or cannot be read.
    """
    try:
        former, weights = load_config(out), read_weights(out / WEIGHTS)
    except (ConfigError, WeightsError, OSError) as error:
        raise ExportError(f"{out} has a model that cannot be read ({error}); `--overwrite` replaces it") from error
    before, now = _facts(former), _facts(checkpoint.config)
    other = [
        f"{fact} {before.get(fact, 'none')} instead of {now.get(fact, 'none')}"
        for fact in {**before, **now}
        if before.get(fact) != now.get(fact)
    ]
    if not other and checkpoint.config.provenance is not None and _differ(weights, checkpoint.model.state_dict()):
        other = ["other weights"]
    if other:
        raise ExportError(f"{out} has another model, with {'; '.join(other)}; `--overwrite` replaces it")


def _facts(config: Config) -> dict[str, str]:
    model, provenance = config.model, config.provenance
    facts = {"the name": config.name, "the task": model.task}
    if isinstance(model, TransformerConfig):
        sources, targets = (", ".join(one.code for one in side) for side in (model.sources, model.targets))
        facts["the languages"] = f"{sources} to {targets}"
    if isinstance(model, ClassifierConfig):
        facts["the labels"] = ", ".join(model.labels)
    if provenance is not None:
        facts["the origin"] = f"{provenance.source} ({provenance.family})"
    return facts


def _differ(stored: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> bool:
    """Return whether weights differ by more than a precision changes them. Vectors suffice: none is stored in int8."""
    return any(
        name not in stored
        or stored[name].shape != vector.shape
        or not torch.allclose(stored[name].float(), vector.float(), rtol=HALF_PRECISION, atol=HALF_PRECISION)
        for name, vector in own.items()
        if vector.ndim == 1
    )
